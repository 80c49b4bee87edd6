package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// Calls is a back end that stands between its nodes and the kernel: a chosen system call of a node can be its last, or fail (WithCalls), and what a node connects to can be
// led through a proxy (WithRedirection). All else is as the back end within has it. main of this program must begin with seccomp.Shim.
type Calls struct {
	Backend
	traps []seccomp.Call
	doors *doors // nil: connections are not redirected

	mu   sync.Mutex
	held map[int]*seccomp.Supervisor // by node, of its present process
}

// WithCalls lets the calls of all nodes be trapped. Every write, flush, rename, removal and truncation of theirs then takes some ten microseconds more.
func WithCalls(within Backend) *Calls {
	c := supervised(within)
	c.traps = seccomp.Calls()
	return c
}

// supervised is the back end itself if it is one of these already: a process has one supervisor at most.
func supervised(within Backend) *Calls {
	if c, ok := within.(*Calls); ok {
		return c
	}
	return &Calls{Backend: within, held: map[int]*seccomp.Supervisor{}}
}

// Start implements systems.Host.
func (c *Calls) Start(node int, cmd *exec.Cmd) error {
	o := seccomp.Options{Calls: c.traps}
	if c.doors != nil {
		o.Redirect = func(to netip.AddrPort) (uint16, syscall.Errno) { return c.doors.of(node, to), 0 }
	}
	s, err := seccomp.Start(cmd, o, func(cmd *exec.Cmd) error { return c.Backend.Start(node, cmd) })
	if err != nil {
		if cmd.Process != nil {
			cmd.Wait()
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[node] = s
	return nil
}

// Machine implements Backend.
func (c *Calls) Machine(n systems.Node) Machine {
	m := c.Backend.Machine(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.traps) > 0 {
		m.Calls = c.held[n.ID()]
	}
	return m
}

// Can implements Backend.
func (c *Calls) Can(k Kind) (ok bool, how string) {
	if !k.ofCall() || len(c.traps) == 0 {
		return c.Backend.Can(k)
	}
	return seccomp.Available()
}

// ofCall tells kinds that act at one system call.
func (k Kind) ofCall() bool { return k == CrashAtCall || k == ErrorAtCall }

// UsesCalls tells whether any of the kinds acts at a system call (WithCalls).
func UsesCalls(kinds []Kind) bool { return slices.ContainsFunc(kinds, Kind.ofCall) }

// errnos are what an error-at-call can give, by the names that a schedule has for them.
var errnos = map[string]syscall.Errno{"": syscall.EIO, "EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT, "EINTR": syscall.EINTR}

// atCall kills the node at one of its system calls on its data, or gives it an error for it. It is healed by a restart: what a process that was refused a write or flush
// says of its files is not to be trusted before. Its effect: the call came.
type atCall struct {
	kill
	errno syscall.Errno
	traps []*seccomp.Supervisor
}

func newAtCall(w wound) *atCall {
	a := &atCall{kill: kill{wound: w}}
	if w.l.fault.Kind == ErrorAtCall {
		a.errno = errnos[w.l.fault.Error]
	}
	return a
}

func (a *atCall) strike() error {
	a.traps = make([]*seccomp.Supervisor, len(a.nodes))
	return a.each(func(i int, n systems.Node) error {
		m := a.x.r.Backend.Machine(n)
		mortal, ok := n.(systems.Mortal)
		switch {
		case m.Process == 0:
			a.proofs[i] = n.Name() + " was down already"
			return nil
		case m.Calls == nil:
			return fmt.Errorf("set a trap for %s: its calls are not supervised (nemesis.WithCalls)", n.Name())
		case !ok:
			return fmt.Errorf("set a trap for %s: its end could not be told from one that nobody asked for (systems.Mortal)", n.Name())
		case n.Data() == "":
			return fmt.Errorf("set a trap for %s: it keeps no data that the harness knows of", n.Name())
		}
		a.pids[i], a.traps[i] = m.Process, m.Calls
		m.Calls.Set(seccomp.Trap{Calls: []seccomp.Call{a.l.fault.Call}, Under: n.Data(), Nth: a.l.fault.Nth, Errno: a.errno, Fired: func(seccomp.Hit) { mortal.Expect() }})
		return nil
	})
}

func (a *atCall) during(ctx context.Context) {
	a.each(func(i int, n systems.Node) error {
		if a.traps[i] == nil {
			return nil
		}
		for a.look(i, n); !a.gone[i] && sleep(ctx, followEach); a.look(i, n) {
		}
		return nil
	})
}

// look whether the trap of the i-th node has fired.
func (a *atCall) look(i int, n systems.Node) {
	f := a.l.fault
	count, hit := a.traps[i].Seen()
	switch {
	case hit == nil:
		a.proofs[i] = fmt.Sprintf("%s: pid %d made %d of %d calls of the class %s", n.Name(), a.pids[i], count, f.Nth, f.Call)
	case a.errno != 0:
		a.gone[i] = true
		a.proofs[i] = fmt.Sprintf("%s: pid %d was given \"%v\" for %s number %d, %s of %s", n.Name(), a.pids[i], a.errno, f.Call, f.Nth, hit.Name, hit.Path)
	default:
		a.gone[i] = a.x.r.Backend.Machine(n).Process != a.pids[i]
		a.proofs[i] = fmt.Sprintf("%s: pid %d was killed at %s number %d, before %s of %s", n.Name(), a.pids[i], f.Call, f.Nth, hit.Name, hit.Path)
	}
}

func (a *atCall) after(ctx context.Context) {
	if !slices.Contains(a.gone, true) {
		return // nothing was restarted
	}
	a.kill.after(ctx)
}

func (a *atCall) heal(ctx context.Context) error {
	err := a.each(func(i int, n systems.Node) error {
		if a.traps[i] == nil || a.x.r.Backend.Machine(n).Process != a.pids[i] {
			return nil
		}
		a.traps[i].Unset()
		if a.look(i, n); !a.gone[i] {
			if _, hit := a.traps[i].Seen(); hit == nil {
				return nil // it was never refused anything
			}
			for end := time.Now().Add(silentWait); a.x.r.Backend.Machine(n).Process == a.pids[i] && time.Now().Before(end); {
				time.Sleep(time.Millisecond) // it is dying
			}
			a.look(i, n)
		}
		return n.Kill()
	})
	return errors.Join(err, a.kill.heal(ctx))
}
