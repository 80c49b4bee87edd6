package main

import (
	"context"
	"slices"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/nemesis/sandbox"
	"ackproof/nemesis/seccomp"
)

// autoBackend is the value of --backend that leaves the choice to the faults that are wanted.
const autoBackend = "auto"

// stand puts a test on its ground. done means that everything has been said and done: the test has run inside the sandbox, with err for its exit code, or cannot
// run at all.
func (f testFlags) stand(t *harness.Test) (done bool, err error) {
	wanted := t.Options.Nemesis
	if t.Schedule != nil {
		wanted = t.Schedule.Uses()
	}
	if t.Options.Backend == "" {
		t.Options.Backend = simplest(t.Options.System, wanted)
		if t.Schedule != nil && slices.ContainsFunc(t.Schedule.Faults, func(f nemesis.Fault) bool { return f.Cut.Plane != "" }) {
			t.Options.Backend = harness.BackendSandbox // proxies do not tell planes apart
		}
		if t.Options.Backend == harness.BackendSandbox && !t.Options.Require && !sandbox.Inside() {
			if _, err := askInside(context.Background()); err != nil { // better some of the faults than none
				t.Options.Backend = harness.BackendProxies
				t.Notes = append(t.Notes, "on proxies, without some of the faults that are wanted: "+err.Error())
			}
		}
	}
	if t.Options.Backend == harness.BackendSandbox {
		inside, code, err := sandbox.Enter()
		switch {
		case err == nil && !inside:
			if code == model.ExitHeld {
				return true, nil
			}
			return true, exitError{code: code}
		case err == nil:
			t.Ground = newSandbox
		default:
			return true, exitError{code: model.ExitInfrastructure, message: "the infrastructure could not run: " + err.Error()}
		}
	}
	if redirect, _ := seccomp.Available(); redirect && t.Options.Backend == harness.BackendProxies && !movable(t.Options.System) {
		t.Ground = func() (nemesis.Backend, error) { return nemesis.WithRedirection(nemesis.NewProxies()), nil }
	}
	return false, nil
}

// newSandbox is sandbox.New as the harness wants it.
func newSandbox() (nemesis.Backend, error) {
	b, err := sandbox.New()
	if err != nil {
		return nil, err
	}
	return b, nil
}

// simplest is the name of the first back end that has all those faults for the system, of the last one if none has.
func simplest(system string, wanted []nemesis.Kind) string {
	if (slices.Contains(wanted, nemesis.Partition) || slices.Contains(wanted, nemesis.MachineDeath)) && !movable(system) {
		return harness.BackendSandbox
	}
	proxies := nemesis.WithCalls(nemesis.NewProxies())
	defer proxies.Close()
	if slices.ContainsFunc(wanted, func(k nemesis.Kind) bool { ok, _ := proxies.Can(k); return !ok }) {
		return harness.BackendSandbox
	}
	return harness.BackendProxies
}
