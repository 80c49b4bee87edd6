//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ackproof/nemesis"
)

var (
	n1, n2, n3 = nemesis.NodeParty(1), nemesis.NodeParty(2), nemesis.NodeParty(3)
	c1         = nemesis.ClientParty(1)
)

func lanes(dialer, acceptor nemesis.Party) (forward, back nemesis.Lane) {
	return nemesis.Lane{Dialer: dialer, Acceptor: acceptor}, nemesis.Lane{Dialer: dialer, Acceptor: acceptor, Back: true}
}

// packets counts what passed a lane, in packets: acknowledgements without a byte of the stream count too.
func (w *world) packets(l nemesis.Lane) int64 {
	w.fabric.mu.RLock()
	defer w.fabric.mu.RUnlock()
	return w.fabric.lanes[l].packets.Load()
}

// flood sends on the connection until it breaks, and reads what comes back.
func flood(c net.Conn) {
	go io.Copy(io.Discard, c)
	go func() {
		for {
			if _, err := c.Write(make([]byte, 10_000)); err != nil {
				return
			}
		}
	}()
}

func TestNoPacketPassesACut(t *testing.T) {
	w := newWorld(t, 3)
	for _, c := range []struct {
		name           string
		dialer, target nemesis.Party
		forward, back  bool
	}{
		{"both ways", n1, n2, true, true}, {"there", n1, n3, true, false}, {"back", n2, n3, false, true}, {"of a client", c1, n1, true, true}, {"to a client", c1, n2, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			forward, back := lanes(c.dialer, c.target)
			conn := w.dial(t, c.dialer, c.target)
			if _, err := conn.Write([]byte(talk)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server talks", func() bool { return w.packets(back) > 10 })
			go chatter(conn)
			eventually(t, "packets flow both ways", func() bool { return w.packets(forward) > 50 && w.packets(back) > 50 })
			var cut, open []nemesis.Lane
			for _, l := range []struct {
				lane nemesis.Lane
				cut  bool
			}{{forward, c.forward}, {back, c.back}} {
				if l.cut {
					cut = append(cut, l.lane)
				} else {
					open = append(open, l.lane)
				}
			}
			w.Network().Hold(cut...)
			var before, held []int64
			for _, l := range cut {
				before, held = append(before, w.packets(l)), append(held, w.Network().Count(l).Held)
			}
			others := w.packets(laneOf(open, forward))
			// TCP tries again and again: at least the one side that has something to send is seen to knock in vain.
			eventually(t, "bytes are dropped", func() bool { return w.Network().Count(cut[0]).Held > held[0] })
			if len(open) > 0 {
				eventually(t, "packets go on in the direction that is not cut", func() bool { return w.packets(open[0]) > others })
			}
			fresh, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if n, err := w.Network().Dial(fresh, c.dialer, c.target); err == nil {
				n.Close()
				t.Error("a dial through the cut is answered")
			}
			for i, l := range cut {
				if now := w.packets(l); now != before[i] {
					t.Errorf("%d packets passed %+v while it was held", now-before[i], l)
				}
			}
			for _, l := range open {
				if w.Network().Held(l) || !slices.ContainsFunc(cut, w.Network().Held) {
					t.Errorf("%+v is said to be held, or the cut is not", l)
				}
			}

			w.Network().Release(cut...)
			for i, l := range cut {
				eventually(t, "packets flow after the release", func() bool { return w.packets(l) > before[i] })
			}
			conn.Close()
		})
	}
}

func laneOf(some []nemesis.Lane, otherwise nemesis.Lane) nemesis.Lane {
	if len(some) > 0 {
		return some[0]
	}
	return otherwise
}

// The stream that was cut goes on where it stopped, and the harness and everybody else talk as before.
func TestACutConcernsNobodyElseAndLosesNoByteOfAStream(t *testing.T) {
	w := newWorld(t, 3)
	forward, back := lanes(n1, n2)
	stream, other, client := w.dial(t, n1, n2), w.dial(t, n3, n2), w.dial(t, c1, n2)
	against := w.dial(t, n2, n1)
	own, err := net.Dial("tcp", w.nodes[1].Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	echoed(t, stream, "before ")
	w.Network().Hold(forward, back)
	if _, err := stream.Write([]byte("held ")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bytes are dropped", func() bool { return w.Network().Count(forward).Held >= 5 })
	for _, c := range []net.Conn{other, client, against, own} {
		echoed(t, c, "untouched")
	}
	w.Network().Hold(forward)
	w.Network().Release(forward, back)
	if !w.Network().Held(forward) {
		t.Error("held twice and released once, the lane flows")
	}
	w.Network().ReleaseAll()
	read(t, stream, "held ")
	echoed(t, stream, "after")
	if got := w.Network().Dialers(n2); !slices.Equal(got, []nemesis.Party{n1, n2, n3, c1}) || !slices.Equal(w.Network().Clients(), []int{1}) {
		t.Errorf("dialers %v, clients %v", got, w.Network().Clients())
	}
}

func TestResetEndsBothEndsOfEveryConnectionOfAPair(t *testing.T) {
	w := newWorld(t, 3)
	forward, back := lanes(n1, n2)
	busy, idle, against, other := w.dial(t, n1, n2), w.dial(t, n1, n2), w.dial(t, n2, n1), w.dial(t, n1, n3)
	for i, c := range []net.Conn{busy, idle, against, other} {
		echoed(t, c, fmt.Sprint("connection ", i))
	}
	w.Network().Hold(forward, back)
	if _, err := busy.Write([]byte("never to arrive")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bytes are dropped", func() bool { return w.Network().Count(forward).Held > 0 })
	w.Network().Reset(n1, n2)
	w.Network().Release(forward, back)
	for i, c := range []net.Conn{busy, idle, against} {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d ends with %v, expected a reset", i, err)
		}
	}
	echoed(t, other, "of another pair")
	echoed(t, w.dial(t, n1, n2), "a new one")
	// The other ends are gone as well: no socket of n2 is left but those of connections that were not reset.
	eventually(t, "the acceptor's ends are reset", func() bool { return w.established(t, 2) == 1 })
}

// established counts the established connections of a node, by its own kernel tables.
func (w *world) established(t *testing.T, node int) int {
	t.Helper()
	n := 0
	if err := onThread(func() error {
		if err := w.places[node].enter(); err != nil {
			return err
		}
		table, err := os.ReadFile("/proc/thread-self/net/tcp")
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == "01" { // TCP_ESTABLISHED
				n++
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNodesThatAreDownRefuse(t *testing.T) {
	w := newWorld(t, 2)
	old := w.dial(t, n1, n2)
	echoed(t, old, "alive")
	if err := w.nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	old.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection to a dead process ends with %v", err)
	}
	for _, from := range []nemesis.Party{n1, c1} {
		if _, err := w.Network().Dial(t.Context(), from, n2); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a dial of a dead process as %v gives %v, expected a refusal", from, err)
		}
	}
	if err := w.nodes[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.up(t, w.nodes[1])
	echoed(t, w.dial(t, n1, n2), "back at the same address")
}

func TestAddresses(t *testing.T) {
	for _, p := range []nemesis.Party{n1, nemesis.NodeParty(maxNode), nemesis.ClientParty(0), c1, nemesis.ClientParty(254), nemesis.ClientParty(255), nemesis.ClientParty(maxClient)} {
		if got, ok := partyAt(addrOf(p)); got != p || !ok {
			t.Errorf("%v lives at %v, where %v is found (%v)", p, addrOf(p), got, ok)
		}
	}
	if p, ok := partyAt(harnessAddr); ok {
		t.Errorf("the harness is taken for %v", p)
	}
}

func TestWhatTheSandboxDoesNotGiveIsRefused(t *testing.T) {
	w := newWorld(t, 1)
	for _, target := range []string{"127.0.0.1:9092", "10.77.0.2:9092", "10.77.0.1:80", "nowhere"} {
		if _, err := w.Network().ClientLink(1, 1, target); err == nil {
			t.Errorf("a link of c1 to n1 at %s is given", target)
		}
	}
	if _, err := w.Network().Dial(t.Context(), n2, n1); err == nil {
		t.Error("n2 dials n1 without a link")
	}
	if _, err := w.Address(maxNode+1, 0); err == nil {
		t.Error("an address is given to more nodes than there are")
	}
}

func TestACutOfOnePlaneLeavesTheOtherAlone(t *testing.T) {
	w := newWorld(t, 2)
	control, err := w.Address(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	planes := w.Network().(nemesis.Planes)
	if planes.Linked(n1, n2, nemesis.PlaneControl) || !planes.Linked(n1, n2, nemesis.PlaneData) {
		t.Error("a link is known that nobody has asked for, or the other way round")
	}
	if _, err := w.Network().NodeLink(1, 2, control); err != nil {
		t.Fatal(err)
	}
	data := w.dial(t, n1, n2)
	other, err := planes.DialPlane(t.Context(), n1, n2, nemesis.PlaneControl)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	forward, back := lanes(n1, n2)
	forward.Plane, back.Plane = nemesis.PlaneControl, nemesis.PlaneControl
	echoed(t, other, "before")
	w.Network().Hold(forward, back)
	passed := w.packets(forward)
	if _, err := other.Write([]byte("held")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bytes are dropped", func() bool { return w.Network().Count(forward).Held >= 4 })
	echoed(t, data, "the other plane goes on")
	if n := w.packets(forward); n != passed {
		t.Errorf("%d packets passed the plane that is cut", n-passed)
	}
	w.Network().Release(forward, back)
	read(t, other, "held")
}
