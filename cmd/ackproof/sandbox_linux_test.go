package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
)

func TestARunInTheSandboxHoldsAndItsFaultsAreFelt(t *testing.T) {
	t.Setenv(asCommand, "1")
	if _, err := askInside(t.Context()); err != nil {
		t.Skip("there is no sandbox here: ", err)
	}
	store := t.TempDir()
	code, stdout, stderr := outcome(t, command(t, "test", "--backend", "sandbox", "--require", "--nemesis", "kill,pause,partition", "--time", "8s", "--seed", "3",
		"--store", store, "--json"))
	var r model.Results
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit %d: %v\n%s", code, err, stderr)
	}
	if r.Verdict == model.Violated || r.Verdict == model.Undecided || r.Records.Acked < 1000 || len(r.Faults) < 3 {
		t.Errorf("exit %d, %s, %d acknowledged, %d faults\n%s", code, r.Verdict, r.Records.Acked, len(r.Faults), stderr)
	}
	for _, f := range r.Faults {
		if !f.Effective {
			t.Errorf("%s of %v had no effect: %s", f.Kind, f.Targets, f.Proof)
		}
	}
	plan, err := harness.LoadPlan(store + "/latest")
	if err != nil || plan.Options.Backend != harness.BackendSandbox || !strings.Contains(fmt.Sprint(r.Faults), "10.77.0.") {
		t.Errorf("the run says that it stood on %q (%v), with faults %v", plan.Options.Backend, err, r.Faults)
	}
}

func TestAFaultThatCannotBeInjectedIsToldOrForbidsTheRun(t *testing.T) {
	store := t.TempDir()
	code, _, stderr := outcome(t, command(t, "test", "--backend", "proxies", "--require", "--nemesis", "packet-loss", "--time", "1s", "--store", store))
	if code != model.ExitInfrastructure || !strings.Contains(stderr, "packet-loss") {
		t.Errorf("exit %d, expected 3\n%s", code, stderr)
	}
	code, stdout, stderr := outcome(t, command(t, "test", "--backend", "proxies", "--nemesis", "packet-loss", "--time", "4s", "--rate", "1000", "--partitions", "1", "--store", store, "--json"))
	var r model.Results
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != model.ExitUndecided {
		t.Fatalf("exit %d, %v, expected 2\n%s", code, err, stderr)
	}
	if len(r.Faults) == 0 || slices.ContainsFunc(r.Faults, func(f model.FaultResult) bool { return f.Effective || !strings.Contains(f.Proof, "not started") }) {
		t.Errorf("faults %+v, expected that none has started", r.Faults)
	}
}

// refusedEnv makes the test binary take all rights from itself first: no user namespace, no FUSE, no TUN, no capability.
const refusedEnv = "ACKPROOF_TEST_REFUSED"

func init() {
	if os.Getenv(refusedEnv) == "" {
		return
	}
	if err := refuse(); err != nil {
		fmt.Println(err)
		os.Exit(99)
	}
}

// refuse goes on as a process of a namespace in which nothing is allowed.
func refuse() error {
	runtime.LockOSThread()
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return err
	}
	for _, device := range []string{"/dev/fuse", "/dev/net/tun"} {
		if err := unix.Mount("/dev/null", device, "", unix.MS_BIND, ""); err != nil && err != unix.ENOENT {
			return fmt.Errorf("hide %s: %w", device, err)
		}
	}
	const noRoot = 1 // SECBIT_NOROOT: user 0 is given no capabilities by execve
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return err
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, refusedEnv+"=") })
	return syscall.Exec("/proc/self/exe", os.Args, env)
}

func TestDoctorIsRightWhereEverythingIsRefused(t *testing.T) {
	cmd := command(t, "doctor", "--json")
	cmd.Env = append(cmd.Env, refusedEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	code, stdout, stderr := outcome(t, cmd)
	if code == 99 || code == -1 {
		t.Skip("this machine has no namespace in which to refuse anything: ", stdout, stderr)
	}
	var d diagnosis
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("exit %d: %v\n%s", code, err, stderr)
	}
	for _, a := range d.Faults {
		want := a.World == "sim" && slices.Contains(nemesis.SimulatedKinds(), a.Fault) || a.Backend == harness.BackendProxies &&
			slices.Contains([]nemesis.Kind{nemesis.Kill, nemesis.Pause, nemesis.Partition, nemesis.MachineDeath, nemesis.CPUStarve, nemesis.Descriptors, nemesis.Memory}, a.Fault)
		// These are as the processor and the kernel's settings have it: no namespace takes them away.
		free := a.Backend == harness.BackendProxies && (strings.HasPrefix(string(a.Fault), "clock-") || strings.HasSuffix(string(a.Fault), "-at-call"))
		if a.Available != want && !free {
			t.Errorf("%s on %s%s: available %t, %s", a.Fault, a.World, a.Backend, a.Available, a.Reason)
		}
		if a.Backend == harness.BackendSandbox && !strings.Contains(a.Reason, "max_user_namespaces") {
			t.Errorf("%s in the sandbox: %s, expected the reason", a.Fault, a.Reason)
		}
	}
}
