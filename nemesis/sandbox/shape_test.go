//go:build linux

package sandbox

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"ackproof/nemesis"
)

// through sends bytes to the echo and expects them back, whatever becomes of the packets.
func through(t *testing.T, c *net.TCPConn, n int) time.Duration {
	t.Helper()
	sent := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	began := time.Now()
	go func() {
		for rest := sent; len(rest) > 0; rest = rest[min(len(rest), 4000):] {
			if _, err := c.Write(rest[:min(len(rest), 4000)]); err != nil {
				return // the reader tells
			}
		}
	}()
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	got := make([]byte, n)
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("what came back differs, or did not come: %v", err)
	}
	return time.Since(began)
}

func TestTreatmentsOfPackets(t *testing.T) {
	w := newWorld(t, 2)
	forward, back := lanes(n1, n2)
	shaper := w.Network().(nemesis.Shaper)
	conn := w.dial(t, n1, n2)
	echoed(t, conn, "before")
	for _, c := range []struct {
		name  string
		t     nemesis.Treatment
		bytes int
		least time.Duration // that the round takes
		did   func(nemesis.Treated) bool
	}{
		{"delay", nemesis.Treatment{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}, 10, 40 * time.Millisecond,
			func(d nemesis.Treated) bool { return d.Late >= 2 && d.Reordered == 0 }},
		{"loss", nemesis.Treatment{Lose: 0.2}, 200_000, 0, func(d nemesis.Treated) bool { return d.Lost > 0 && d.Lost < d.Seen }},
		{"duplication", nemesis.Treatment{Duplicate: 0.5}, 200_000, 0, func(d nemesis.Treated) bool { return d.Duplicated > 0 && d.Lost == 0 }},
		{"reordering", nemesis.Treatment{Reorder: 0.3}, 400_000, 0, func(d nemesis.Treated) bool { return d.Reordered > 0 && d.Lost == 0 }},
		{"corruption", nemesis.Treatment{Corrupt: 0.2}, 200_000, 0, func(d nemesis.Treated) bool { return d.Corrupted > 0 }},
		{"rate", nemesis.Treatment{Rate: 1 << 20}, 200_000, 150 * time.Millisecond, func(d nemesis.Treated) bool { return d.Waited > 0 }},
		{"all at once", nemesis.Treatment{Delay: time.Millisecond, Jitter: time.Millisecond, Lose: 0.05, Duplicate: 0.05, Reorder: 0.05, Corrupt: 0.05, Rate: 8 << 20}, 100_000, 0,
			func(d nemesis.Treated) bool { return d.Late > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.t.Seed = 7
			end := shaper.Shape(c.t, forward, back, forward)
			took := through(t, conn, c.bytes)
			did := end()
			if !c.did(did) || did.Seen == 0 || took < c.least {
				t.Errorf("%+v in %v, expected %v at least", did, took, c.least)
			}
			if again := end(); again != did {
				t.Errorf("the second end tells %+v, the first %+v", again, did)
			}
			through(t, conn, 10_000)
			if now := end(); now != did {
				t.Errorf("packets are treated after the end: %+v, then %+v", did, now)
			}
		})
	}
}

func TestAClogLosesNothing(t *testing.T) {
	w := newWorld(t, 2)
	forward, _ := lanes(n1, n2)
	shaper := w.Network().(nemesis.Shaper)
	for _, shuffle := range []bool{false, true} {
		conn := w.dial(t, n1, n2)
		echoed(t, conn, "before")
		end := shaper.Shape(nemesis.Treatment{Clog: true, Shuffle: shuffle, Seed: 3}, forward)
		passed := w.packets(forward)
		for range 20 {
			if _, err := conn.Write([]byte("waits.")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // packets of their own
		}
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Errorf("a byte came through the clog, or %v", err)
		}
		if n := w.packets(forward) - passed; n != 0 {
			t.Errorf("%d packets passed the clog", n)
		}
		if did := end(); did.Waited < 2 || did.Lost != 0 {
			t.Errorf("%+v, expected packets that waited, and no loss", did)
		}
		read(t, conn, string(bytes.Repeat([]byte("waits."), 20)))
	}
}

// What is under way when a lane is cut does not arrive.
func TestACutHoldsWhatIsUnderWay(t *testing.T) {
	w := newWorld(t, 2)
	forward, _ := lanes(n1, n2)
	conn := w.dial(t, n1, n2)
	echoed(t, conn, "before")
	end := w.Network().(nemesis.Shaper).Shape(nemesis.Treatment{Delay: 50 * time.Millisecond}, forward)
	if _, err := conn.Write([]byte("under way")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the packet is under way", func() bool {
		w.fabric.queue.mu.Lock()
		defer w.fabric.queue.mu.Unlock()
		return len(w.fabric.queue.heap) > 0
	})
	held := w.Network().Count(forward).Held
	w.Network().Hold(forward)
	passed := w.packets(forward)
	eventually(t, "it is dropped at its end", func() bool { return w.Network().Count(forward).Held > held })
	if n := w.packets(forward); n != passed {
		t.Errorf("%d packets passed a lane that is held", n-passed)
	}
	end()
	w.Network().Release(forward)
	read(t, conn, "under way")
}
