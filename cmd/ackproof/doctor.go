package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ackproof/broker/fault"
	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/nemesis/lossy"
	"ackproof/nemesis/sandbox"
)

// ability is one fault in one world. JSON.
type ability struct {
	Fault     nemesis.Kind `json:"fault"`
	World     string       `json:"world"`             // "real" or "sim"
	Backend   string       `json:"backend,omitempty"` // of the real world
	Available bool         `json:"available"`
	Reason    string       `json:"reason"` // how it is done, or why it is not
}

// diagnosis is what doctor tells. JSON.
type diagnosis struct {
	Faults     []ability `json:"faults"`
	Plants     bool      `json:"plants"`      // this binary can carry planted bugs
	NotInSim   []string  `json:"not_in_sim"`  // what of the real program the simulator does not run
	NotOutside []string  `json:"not_in_real"` // what only the simulator has
}

func newDoctorCommand() *cobra.Command {
	var asJSON, inside bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "which faults can be injected here, which not, and why",
		Long: `Prints, for every fault, whether it can be injected on this machine and how, or why not: with
real processes on each back end (see ackproof test --backend), and in the simulator; and what the
simulator does not cover of the real program. Each answer comes from trying.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inside {
				return tellFromInside(os.Stdout)
			}
			return diagnose(orBackground(cmd.Context())).print(os.Stdout, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the diagnosis as JSON")
	cmd.Flags().BoolVar(&inside, insideFlag, false, "what can be injected in the sandbox, told from inside it")
	cmd.Flags().MarkHidden(insideFlag) // the program's own question to itself
	return cmd
}

// insideFlag makes doctor speak from inside the sandbox.
const insideFlag = "inside"

func diagnose(ctx context.Context) diagnosis {
	d := diagnosis{Plants: fault.Built, NotInSim: []string{
		"the real shell's goroutines, locks and sockets (broker/node, broker/wire): requests travel as decoded structs, batches as bytes",
		"the wal store and the control plane's log on disk: partitions live on segment or memory logs, and a voter's memory survives every fault",
		"franz-go's producer, which starts goroutines: the simulator's clients are the raw ones",
	}, NotOutside: []string{"invariants that are looked at after every step", "shrinking"}}
	proxies := nemesis.NewProxies()
	defer proxies.Close()
	d.Faults = abilities(proxies)
	inside, err := askInside(ctx)
	if err != nil {
		for _, k := range nemesis.AllKinds() {
			inside = append(inside, ability{Fault: k, World: "real", Backend: harness.BackendSandbox, Reason: err.Error()})
		}
	}
	d.Faults = append(d.Faults, inside...)
	for _, k := range nemesis.AllKinds() {
		sim := ability{Fault: k, World: "sim", Available: slices.Contains(nemesis.SimulatedKinds(), k), Reason: "part of the simulated world"}
		if !sim.Available {
			sim.Reason = "the simulated world has no counterpart of it"
		}
		d.Faults = append(d.Faults, sim)
	}
	slices.SortStableFunc(d.Faults, func(a, b ability) int {
		return slices.Index(nemesis.AllKinds(), a.Fault) - slices.Index(nemesis.AllKinds(), b.Fault)
	})
	return d
}

// abilities asks the back end for every kind, with disks that can be hurt under the nodes and with a hold on their system calls, as a run has them that wants such
// faults.
func abilities(b nemesis.Backend) []ability {
	whole := nemesis.WithDisks(nemesis.WithCalls(b), lossy.Options{})
	var out []ability
	for _, k := range nemesis.AllKinds() {
		a := ability{Fault: k, World: "real", Backend: b.Name()}
		a.Available, a.Reason = whole.Can(k)
		out = append(out, a)
	}
	return out
}

// insideTimeout bounds the question to the inside of the sandbox.
const insideTimeout = 20 * time.Second

// askInside runs this program in the sandbox and asks what can be injected there. An error says why there is no sandbox.
func askInside(ctx context.Context) ([]ability, error) {
	ctx, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	cmd, release, err := sandbox.Command("doctor", "--"+insideFlag)
	if err != nil {
		return nil, err
	}
	defer release.Close()
	runtime.LockOSThread() // it lives as long as this thread
	defer runtime.UnlockOSThread()
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Start(); err != nil {
		return nil, sandbox.Explain(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return nil, fmt.Errorf("%s (%w)", strings.TrimPrefix(lines[len(lines)-1], "ackproof: "), err)
	}
	var told []ability
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		return nil, fmt.Errorf("the answer from inside the sandbox: %w", err)
	}
	return told, nil
}

// tellFromInside makes the sandbox with a place for one node and tells what can be injected in it.
func tellFromInside(out io.Writer) error {
	unavailable := func(err error) error { return exitError{model.ExitInfrastructure, err.Error()} }
	inside, code, err := sandbox.Enter()
	switch {
	case err != nil:
		return unavailable(err)
	case !inside:
		return exitError{code: code}
	}
	b, err := sandbox.New()
	if err != nil {
		return unavailable(err)
	}
	defer b.Close()
	if _, err := b.Address(1, 0); err != nil {
		return unavailable(err)
	}
	return json.NewEncoder(out).Encode(abilities(b))
}

func (d diagnosis) print(out io.Writer, asJSON bool) error {
	if asJSON {
		raw, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return exitError{model.ExitCrash, "encode the diagnosis: " + err.Error()}
		}
		_, err = fmt.Fprintf(out, "%s\n", raw)
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tback end\tavailable\thow, or why not")
	for _, a := range d.Faults {
		yes := "no"
		if a.Available {
			yes = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.Fault, cmp.Or(a.Backend, a.World), yes, a.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	plants := "this binary carries none (build with -tags failpoints)"
	if d.Plants {
		plants = "this binary can carry them"
	}
	fmt.Fprintf(out, "\nplanted bugs: %s\n\nthe simulator does not run:\n  %s\nonly the simulator has:\n  %s\n", plants, strings.Join(d.NotInSim, "\n  "), strings.Join(d.NotOutside, "\n  "))
	return nil
}
