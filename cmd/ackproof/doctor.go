package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ackproof/broker/fault"
	"ackproof/model"
	"ackproof/nemesis"
)

// ability is one fault in one world. JSON.
type ability struct {
	Fault     nemesis.Kind `json:"fault"`
	World     string       `json:"world"` // "real" or "sim"
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "which faults can be injected here, which not, and why",
		Long: `Prints, for every fault and each of the two worlds (real processes, and the simulator), whether
it can be injected on this machine and how, or why not; and what the simulator does not cover of
the real program.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return diagnose().print(os.Stdout, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the diagnosis as JSON")
	return cmd
}

func diagnose() diagnosis {
	d := diagnosis{Plants: fault.Built, NotInSim: []string{
		"the real shell's goroutines, locks and sockets (broker/node, broker/wire): requests travel as decoded structs, batches as bytes",
		"the wal store and the control plane's log on disk: partitions live on segment or memory logs, and a voter's memory survives every fault",
		"franz-go's producer, which starts goroutines: the simulator's clients are the raw ones",
		"consumer groups",
	}, NotOutside: []string{"invariants that are looked at after every step", "shrinking"}}
	l, loopback := net.Listen("tcp", "127.0.0.1:0")
	if loopback == nil {
		l.Close()
	}
	signals := runtime.GOOS != "windows" && runtime.GOOS != "plan9"
	for _, k := range nemesis.AllKinds() {
		real := ability{Fault: k, World: "real"}
		switch k {
		case nemesis.Kill:
			real.Available, real.Reason = true, "SIGKILL, and a restart with the same address and data"
		case nemesis.Pause:
			if real.Available, real.Reason = signals, "SIGSTOP and SIGCONT"; !signals {
				real.Reason = runtime.GOOS + " has no SIGSTOP"
			}
		case nemesis.Partition:
			if real.Available, real.Reason = loopback == nil, "stream proxies on loopback between all parties"; loopback != nil {
				real.Reason = loopback.Error()
			}
		default:
			real.Reason = "takes a hold on the machine that this version has not"
		}
		d.Faults = append(d.Faults, real, ability{Fault: k, World: "sim", Available: true, Reason: "part of the simulated world"})
	}
	return d
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
	fmt.Fprintln(t, "fault\tworld\tavailable\thow, or why not")
	for _, a := range d.Faults {
		yes := "no"
		if a.Available {
			yes = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.Fault, a.World, yes, a.Reason)
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
