package nemesis

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ackproof/model"
	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// able skips the test where the machine refuses the kind.
func able(t *testing.T, k Kind) {
	t.Helper()
	if ok, why := (&Proxies{}).Can(k); !ok {
		t.Skipf("%s: %s", k, why)
	}
}

func TestEachFaultOfAProcessProvesItsEffect(t *testing.T) {
	c := newCluster(t, 2, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	one := Target{Role: RoleNode, Node: 1}
	for _, x := range []struct {
		fault Fault
		proof []string
	}{
		{Fault{Kind: ClockSkew, ForMS: 60, AmountMS: 3000}, []string{"expected +3000", "afterwards"}},
		{Fault{Kind: ClockSkew, ForMS: 60, AmountMS: -900}, []string{"expected -900", "afterwards"}},
		{Fault{Kind: ClockDrift, ForMS: 800, AmountMS: 250}, []string{"tells a time that is +", "afterwards"}},
		{Fault{Kind: ClockDrift, ForMS: 800, AmountMS: -250}, []string{"tells a time that is -", "afterwards"}},
		{Fault{Kind: ClockStrobe, ForMS: 250, AmountMS: 700}, []string{"expected +700", "times, afterwards"}},
		{Fault{Kind: CPUStarve, ForMS: 700, AmountMS: 5}, []string{"ran 5 of each 100 ms"}},
		{Fault{Kind: Descriptors, ForMS: 250}, []string{"served an open connection and no new one, a new one again"}},
	} {
		t.Run(fmt.Sprintf("%s %d", x.fault.Kind, x.fault.AmountMS), func(t *testing.T) {
			able(t, x.fault.Kind)
			before, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.nodes[0].PID()))
			if err != nil && x.fault.Kind == Descriptors {
				t.Skip(err)
			}
			x.fault.Target = one
			results, _ := run(t, r, x.fault)
			if !results[0].Effective {
				t.Errorf("%+v, expected an effect", results[0])
			}
			for _, p := range x.proof {
				if !strings.Contains(results[0].Proof, p) {
					t.Errorf("proof %q lacks %q", results[0].Proof, p)
				}
			}
			if after, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", c.nodes[0].PID())); string(after) != string(before) {
				t.Errorf("limits are\n%s\nand were\n%s", after, before)
			}
		})
	}
	if err := r.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}

// ask the node for the time; how far it is off.
func (c *cluster) off(n *child) time.Duration {
	c.t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	defer conn.Close()
	its, err := c.Time(conn, n)
	if err != nil {
		c.t.Error(err)
	}
	return time.Until(its)
}

func TestOnlyTheTargetHasAWrongClockAlsoAfterARestart(t *testing.T) {
	able(t, ClockSkew)
	c := newCluster(t, 2, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	one, zero := Target{Role: RoleNode, Node: 1}, 0
	seen := false
	r.Event = func(s FaultStep) {
		if s.Fault == 1 && s.Step == Healed {
			eventually(t, "a restarted node has the wrong clock of the one before", func() bool { return c.off(c.nodes[0]) > time.Minute })
			seen = true
		}
		if s.Step == Began {
			if off := c.off(c.nodes[1]); off.Abs() > 10*time.Second {
				t.Errorf("the neighbour is off by %v", off)
			}
		}
	}
	r.Run(t.Context(), Schedule{Version: 1, Faults: []Fault{
		{Kind: ClockSkew, ForMS: 700, AmountMS: 3_600_000, Target: one},
		{Kind: Kill, ForMS: 20, Target: one, Start: Trigger{Fault: &zero, AfterMS: 50}},
	}})
	if !seen {
		t.Error("the node was not killed")
	}
	if off := c.off(c.nodes[0]); off.Abs() > 10*time.Second {
		t.Errorf("the clock is off by %v after the heal", off)
	}
}

// What several faults want of one clock adds up, and what one of them had is taken away at its end.
func TestWrongClocksAddUp(t *testing.T) {
	able(t, ClockSkew)
	c := newCluster(t, 1, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	one, zero := Target{Role: RoleNode, Node: 1}, 0
	both := make(chan time.Duration, 1)
	r.Event = func(s FaultStep) {
		if s.Fault == 1 && s.Step == Began {
			both <- c.off(c.nodes[0])
		}
	}
	r.Run(t.Context(), Schedule{Version: 1, Faults: []Fault{
		{Kind: ClockSkew, ForMS: 300, AmountMS: 3_600_000, Target: one},
		{Kind: ClockSkew, ForMS: 50, AmountMS: 7_200_000, Target: one, Start: Trigger{Fault: &zero, AfterMS: 50}},
	}})
	if off := <-both; (off - 3*time.Hour).Abs() > time.Minute {
		t.Errorf("off by %v, expected 3 h", off)
	}
	if off := c.off(c.nodes[0]); off.Abs() > 10*time.Second {
		t.Errorf("the clock is off by %v after the heal", off)
	}
}

// A pause lasts although other faults stop the node and let it go all the time.
func TestStopsOfSeveralFaultsAddUp(t *testing.T) {
	c := newCluster(t, 1, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	one, zero := Target{Role: RoleNode, Node: 1}, 0
	results, _ := run(t, r,
		Fault{Kind: CPUStarve, ForMS: 900, AmountMS: 50, Target: one},
		Fault{Kind: Pause, ForMS: 300, Target: one, Start: Trigger{Fault: &zero, AfterMS: 60}},
	)
	if !results[1].Effective {
		t.Errorf("%+v, expected a pause that lasts", results[1])
	}
	if state := processState(c.nodes[0].PID()); state == "T" {
		t.Error("the node stands still after the heal")
	}
}

func TestWantOfMemoryEndsTheNodeAndIsHealed(t *testing.T) {
	able(t, Memory)
	c := newCluster(t, 1, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	fault := Fault{Kind: Memory, ForMS: 2000, Target: Target{Role: RoleNode, Node: 1}}
	first := c.nodes[0].PID()
	r.Event = func(s FaultStep) {
		if s.Step == Began {
			if conn, err := net.Dial("tcp", c.nodes[0].addr); err == nil {
				t.Cleanup(func() { conn.Close() })
				conn.Write([]byte{0, 0, 0, 4, 'e', 'a', 't', '!'})
			}
		}
	}
	results := r.Run(t.Context(), Schedule{Version: 1, Faults: []Fault{fault}})
	if !results[0].Effective || !strings.Contains(results[0].Proof, "ended for want of memory") || !strings.Contains(results[0].Proof, "answered") {
		t.Errorf("%+v", results[0])
	}
	if now := c.nodes[0].PID(); now == 0 || now == first {
		t.Errorf("pid %d, and before %d, expected another one", now, first)
	}
}

// truthful is a system whose nodes tell the harness's own time, whatever their clock says.
type truthful struct{ *cluster }

func (truthful) Time(net.Conn, systems.Node) (time.Time, error) { return time.Now(), nil }

// mute is a system that cannot be asked for the time.
type mute struct {
	systems.System
	systems.Prober
}

func TestFaultsOfAProcessWithoutEffectAreNotCalledEffective(t *testing.T) {
	c := newCluster(t, 2, 1)
	m := c.mesh(0)
	one := Target{Role: RoleNode, Node: 1}
	for _, x := range []struct {
		name   string
		system systems.System
		fault  Fault
		why    string
	}{
		{"a clock that nobody reads", truthful{c}, Fault{Kind: ClockSkew, ForMS: 50, AmountMS: 5000}, "ms off, expected +5000"},
		{"a skew below what can be seen", c, Fault{Kind: ClockSkew, ForMS: 50, AmountMS: 1}, "too little to be seen"},
		{"descriptors that a probe does not need", leaky{c, c.nodes[1].addr}, Fault{Kind: Descriptors, ForMS: 50}, "served a new connection"},
	} {
		t.Run(x.name, func(t *testing.T) {
			able(t, x.fault.Kind)
			x.fault.Target = one
			results, _ := run(t, &Runner{System: x.system, Backend: &Proxies{mesh: m}}, x.fault)
			if results[0].Effective || !strings.Contains(results[0].Proof, x.why) {
				t.Errorf("%+v, expected no effect because of %q", results[0], x.why)
			}
		})
	}
	t.Run("memory that nobody asks for", func(t *testing.T) {
		able(t, Memory)
		// Whether a process that runs asks for memory is its own affair; one that stands still does not.
		results, _ := run(t, &Runner{System: c, Backend: &Proxies{mesh: m}}, Fault{Kind: Pause, ForMS: 400, Target: one},
			Fault{Kind: Memory, ForMS: 50, Target: one, Start: Trigger{Fault: at(0), AfterMS: 50}})
		if results[1].Effective || !strings.Contains(results[1].Proof, "asked for no more memory") {
			t.Errorf("%+v, expected no effect because it asked for no more memory", results[1])
		}
	})
	t.Run("a system that cannot be asked for the time is read", func(t *testing.T) {
		able(t, ClockSkew)
		results, _ := run(t, &Runner{System: mute{c, c}, Backend: &Proxies{mesh: m}}, Fault{Kind: ClockSkew, ForMS: 50, AmountMS: 5000, Target: one})
		if !results[0].Effective || !strings.Contains(results[0].Proof, "as its memory says") {
			t.Errorf("%+v", results[0])
		}
	})
}

// A node that ends while its clock is held, or is down when it should be, is no error.
func TestClocksOfNodesThatEnd(t *testing.T) {
	able(t, ClockSkew)
	c := newCluster(t, 1, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var results []model.FaultResult
	r.Event = func(s FaultStep) {
		if s.Step == Began {
			c.nodes[0].Kill()
			cancel()
		}
	}
	results = r.Run(ctx, Schedule{Version: 1, Faults: []Fault{{Kind: ClockSkew, ForMS: 60_000, AmountMS: 5000, Target: Target{Role: RoleNode, Node: 1}}}})
	if results[0].Effective || strings.Contains(results[0].Proof, "take hold") {
		t.Errorf("%+v", results[0])
	}
}

// Frames that were answered with themselves, of so many that asked the node to write and flush a line.
func saves(c *cluster, frames int) (answered int) {
	conn, err := net.Dial("tcp", c.nodes[0].addr)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	defer conn.Close()
	for range frames {
		out := "\x00\x00\x00\x04save"
		if _, err := conn.Write([]byte(out)); err != nil {
			break
		}
		in := make([]byte, len(out))
		if _, err := io.ReadFull(conn, in); err != nil {
			break
		}
		if string(in) == out {
			answered++
		}
	}
	return answered
}

func TestTheNodeDiesOrFailsAtTheNthCallOnItsData(t *testing.T) {
	for _, x := range []struct {
		fault    Fault
		answered int // of 6
		lines    int // in the file
		proof    string
	}{
		{Fault{Kind: CrashAtCall, Call: seccomp.Write, Nth: 3}, 2, 2, "was killed at write number 3, before write of "},
		{Fault{Kind: CrashAtCall, Call: seccomp.Flush, Nth: 3}, 2, 3, "was killed at flush number 3, before fsync of "},
		{Fault{Kind: ErrorAtCall, Call: seccomp.Flush, Nth: 3}, 5, 6, `was given "input/output error" for flush number 3, fsync of `},
		{Fault{Kind: ErrorAtCall, Call: seccomp.Write, Nth: 3, Error: "ENOSPC"}, 5, 5, `was given "no space left on device" for write number 3, write of `},
		{Fault{Kind: CrashAtCall, Call: seccomp.Rename, Nth: 1}, 6, 6, "made 0 of 1 calls of the class rename"},
	} {
		t.Run(fmt.Sprintf("%s %s %d", x.fault.Kind, x.fault.Call, x.fault.Nth), func(t *testing.T) {
			c := newCluster(t, 1, 1)
			b := WithCalls(&Proxies{mesh: c.mesh(0)})
			if ok, why := b.Can(x.fault.Kind); !ok {
				t.Skip(why)
			}
			n := c.nodes[0]
			n.host, n.data = b, t.TempDir()
			n.Kill()
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			first, answered := n.PID(), 0
			r := &Runner{System: c, Backend: b, Event: func(s FaultStep) {
				if s.Step == Began {
					answered = saves(c, 6)
				}
			}}
			x.fault.ForMS, x.fault.Target = 100, Target{Role: RoleNode, Node: 1}
			s := Schedule{Version: 1, Faults: []Fault{x.fault}}
			if err := s.Validate(1, 1, 0); err != nil {
				t.Fatal(err)
			}
			result := r.Run(t.Context(), s)[0]
			hit := x.fault.Call != seccomp.Rename
			if result.Effective != hit || !strings.Contains(result.Proof, x.proof) {
				t.Errorf("%+v, expected effect %t and %q", result, hit, x.proof)
			}
			saved, _ := os.ReadFile(n.data + "/saved")
			if lines := strings.Count(string(saved), "\n"); answered != x.answered || lines != x.lines {
				t.Errorf("%d answered and %d lines saved, expected %d and %d", answered, lines, x.answered, x.lines)
			}
			if again := n.PID() != first; again != hit || n.PID() == 0 {
				t.Errorf("pid %d, and before %d", n.PID(), first)
			}
		})
	}
}

// Whoever asks for a kind gets it, in sequences that make sense.
func TestKindsThatAreAskedForAreDrawn(t *testing.T) {
	for _, k := range []Kind{ClockSkew, ClockDrift, ClockStrobe, CPUStarve, Descriptors, Memory, CrashAtCall, ErrorAtCall} {
		for seed := range int64(8) {
			s := Generate(seed, GenerateOptions{Kinds: []Kind{k, Kill}, Nodes: 3, Partitions: 4, Clients: 4, Load: 15 * time.Second})
			if err := s.Validate(3, 4, 4); err != nil {
				t.Errorf("%s: %v", k, err)
			}
			if !slices.Contains(s.Uses(), k) {
				t.Errorf("%s, seed %d: the schedule uses %v", k, seed, s.Uses())
			}
		}
	}
	for _, f := range []Fault{
		{Kind: ClockDrift, ForMS: 1, AmountMS: maxDriftMS + 1}, {Kind: ClockSkew, ForMS: 1}, {Kind: CPUStarve, ForMS: 1}, {Kind: CPUStarve, ForMS: 1, AmountMS: maxStarveMS + 1},
		{Kind: CrashAtCall, ForMS: 1, Nth: 1}, {Kind: CrashAtCall, ForMS: 1, Call: seccomp.Write}, {Kind: CrashAtCall, ForMS: 1, Call: "read", Nth: 1},
		{Kind: CrashAtCall, ForMS: 1, Call: seccomp.Write, Nth: 1, Error: "EIO"}, {Kind: ErrorAtCall, ForMS: 1, Call: seccomp.Write, Nth: 1, Error: "EPERM"}, {Kind: Kill, Nth: 1},
	} {
		f.Target = Target{Role: RoleAll}
		if err := (Schedule{Version: 1, Faults: []Fault{f}}).Validate(3, 4, 4); err == nil {
			t.Errorf("%+v is taken for sensible", f)
		}
	}
}
