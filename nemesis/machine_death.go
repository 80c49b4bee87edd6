package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ackproof/systems"
)

// machineDeath is a kill of which the others hear nothing, as when a machine loses its power or its network card: a process that dies on a machine that lives
// is told of at once, by the FIN or RST of each of its connections and by the refusal of new ones. All links of the node are cut first and stay cut until it runs
// again. Its effect: the process is gone, and whoever talked to it meets silence, not the end of the connection.
type machineDeath struct {
	wound
	deaths []death
}

// death is that of one target.
type death struct {
	lanes  []Lane   // all of the node
	past   []string // nodes that reach it past this network, and hear of its end
	from   Party    // whose connection is the witness
	conn   net.Conn
	pid    int
	proven bool
	proof  string
	back   string
}

func (m *machineDeath) prepare(ctx context.Context) {
	m.deaths = make([]death, len(m.nodes))
	network := m.x.r.Backend.Network()
	m.each(func(i int, n systems.Node) error {
		d, self := &m.deaths[i], NodeParty(n.ID())
		for _, id := range m.x.nodeIDs() {
			if id != n.ID() {
				if other := NodeParty(id); !slices.Contains(network.Dialers(self), other) && !slices.Contains(network.Dialers(other), self) {
					d.past = append(d.past, other.String())
				}
				d.lanes = append(d.lanes, append(Flow(self, NodeParty(id)), Flow(NodeParty(id), self)...)...)
			}
		}
		for _, id := range network.Clients() {
			client := Lane{Dialer: ClientParty(id), Acceptor: self}
			d.lanes = append(d.lanes, client, client.reverse())
		}
		if m.prober == nil {
			return nil
		}
		witnesses := slices.DeleteFunc(network.Dialers(self), func(p Party) bool { return !p.Client && slices.Contains(m.l.nodes, p.ID) })
		if len(witnesses) == 0 {
			d.proof = n.Name() + ": nobody has a link to it"
			return nil
		}
		d.from = witnesses[0]
		c, err := ask(ctx, m.prober, over(network, d.from, self), beforeWait)
		if err != nil {
			d.proof = fmt.Sprintf("%s did not answer %v before: %v", n.Name(), d.from, err)
			return nil
		}
		d.conn = c
		return nil
	})
}

func (m *machineDeath) strike() error {
	for i := range m.deaths {
		m.x.r.Backend.Network().Hold(m.deaths[i].lanes...)
	}
	return m.each(func(i int, n systems.Node) error {
		if m.deaths[i].pid = n.PID(); m.deaths[i].pid == 0 {
			return nil
		}
		if err := n.Kill(); err != nil {
			return fmt.Errorf("kill %s: %w", n.Name(), err)
		}
		return nil
	})
}

// during takes silentWait at least, however short the fault is meant to be: less would not be silence.
func (m *machineDeath) during(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	network := m.x.r.Backend.Network()
	m.each(func(i int, n systems.Node) error {
		d := &m.deaths[i]
		switch {
		case d.pid == 0:
			d.proof = n.Name() + " was down already"
			return nil
		case d.conn == nil:
			return nil
		}
		gone := errors.Is(syscall.Kill(d.pid, 0), syscall.ESRCH)
		var old, fresh error
		var both sync.WaitGroup
		both.Go(func() { old = pingOn(ctx, m.prober, d.conn, silentWait) })
		both.Go(func() {
			var c net.Conn
			if c, fresh = ask(ctx, m.prober, over(network, d.from, NodeParty(n.ID())), silentWait); c != nil {
				c.Close()
			}
		})
		both.Wait()
		d.proven = gone && silent(old) && silentDial(fresh)
		switch {
		case !gone:
			d.proof = fmt.Sprintf("%s: pid %d is still there", n.Name(), d.pid)
		case !d.proven:
			d.proof = fmt.Sprintf("%s: pid %d gone, but %v was not left in silence: its connection gave %v, a new one %v", n.Name(), d.pid, d.from, old, fresh)
		default:
			d.proof = fmt.Sprintf("%s: pid %d gone, and %v met silence on its connection and on a new one", n.Name(), d.pid, d.from)
		}
		return nil
	})
}

func (m *machineDeath) heal(ctx context.Context) error {
	return m.inTurn(func(i int, n systems.Node) error {
		var err error
		if n.PID() == 0 { // else another fault has restarted it
			err = n.Start(ctx)
		}
		m.x.r.Backend.Network().Release(m.deaths[i].lanes...)
		if err != nil {
			return fmt.Errorf("restart %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (m *machineDeath) after(ctx context.Context) {
	if m.prober == nil {
		return
	}
	m.each(func(i int, n systems.Node) error {
		d := &m.deaths[i]
		if d.conn == nil {
			return nil
		}
		d.conn.Close()
		took, err := answers(ctx, m.prober, over(m.x.r.Backend.Network(), d.from, NodeParty(n.ID())))
		switch {
		case err == nil:
			d.back = fmt.Sprintf("pid %d answered %v %d ms after the restart", n.PID(), d.from, took.Milliseconds())
		case m.x.hurtByOthers(m.l, n.ID()):
			d.back = "the restart could not be seen: another fault holds it"
		default:
			d.back = "after the restart: " + err.Error()
		}
		return nil
	})
}

// verdict: a process that was seen gone while its peers met silence has died with its machine, whatever its restart brings.
func (m *machineDeath) verdict() (bool, string) {
	if m.prober == nil {
		return false, noProber
	}
	effective := false
	var parts []string
	for i, d := range m.deaths {
		if len(d.past) > 0 {
			d.proven = false
			parts = append(parts, fmt.Sprintf("%s: no death of a machine for %s, which reach it past this network", m.nodes[i].Name(), strings.Join(d.past, " and ")))
		}
		effective = effective || d.proven
		parts = append(parts, join(", ", d.proof, d.back))
	}
	return effective, join("; ", parts...)
}
