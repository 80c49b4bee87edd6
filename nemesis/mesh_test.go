package nemesis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// peer is a listener that hands out what it accepts.
type peer struct {
	net.Listener
	accepted chan net.Conn
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{l, make(chan net.Conn, 16)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(p.accepted)
				return
			}
			p.accepted <- c
		}
	}()
	t.Cleanup(func() {
		l.Close()
		for c := range p.accepted {
			c.Close()
		}
	})
	return p
}

// connect dials the peer through the mesh as node 1 dials node 2, and returns both ends.
func connect(t *testing.T, m *Mesh, p *peer) (near, far net.Conn) {
	t.Helper()
	at, err := m.NodeLink(1, 2, p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err = net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	far = <-p.accepted
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func newTestMesh(t *testing.T) *Mesh {
	m := NewMesh()
	t.Cleanup(func() { m.Close() })
	return m
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; expected %q", got, err, text)
	}
}

// nothing reads what has arrived already and expects nothing.
func nothing(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	got := make([]byte, 1)
	if n, err := c.Read(got); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %q, %v; expected silence", got[:n], err)
	}
}

var (
	toTwo   = Lane{Dialer: NodeParty(1), Acceptor: NodeParty(2)}
	fromTwo = Lane{Dialer: NodeParty(1), Acceptor: NodeParty(2), Back: true}
)

func TestHeldLaneKeepsEveryByteAndTheOtherDirectionFlows(t *testing.T) {
	for _, c := range []struct {
		name        string
		held, free  Lane
		fromDialler bool
	}{{"forward", toTwo, fromTwo, true}, {"back", fromTwo, toTwo, false}} {
		t.Run(c.name, func(t *testing.T) {
			m := newTestMesh(t)
			near, far := connect(t, m, newPeer(t))
			from, to := near, far
			if !c.fromDialler {
				from, to = far, near
			}
			send(t, from, "before ")
			expect(t, to, "before ")

			m.Hold(c.held)
			send(t, from, "held ")
			eventually(t, "the bytes wait at the gate", func() bool { return m.Count(c.held).Held == 5 })
			send(t, to, "against")
			expect(t, from, "against")
			nothing(t, to)
			if n := m.Count(c.held).Passed; n != 7 {
				t.Errorf("%d bytes passed the held lane, expected the 7 of before", n)
			}

			m.Release(c.held)
			expect(t, to, "held ")
			send(t, from, "after")
			expect(t, to, "after")
			if n := m.Count(c.free).Held; n != 0 {
				t.Errorf("%d bytes waited on the lane that was never held", n)
			}
		})
	}
}

// A flow is both lanes on which bytes travel one way, whoever dialled.
func TestFlowHoldsWhatBothDialled(t *testing.T) {
	m := newTestMesh(t)
	one, two := newPeer(t), newPeer(t)
	near, far := connect(t, m, two)
	at, err := m.NodeLink(2, 1, one.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	twoDialled, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer twoDialled.Close()
	oneAccepted := <-one.accepted
	defer oneAccepted.Close()

	m.Hold(Flow(NodeParty(1), NodeParty(2))...)
	send(t, near, "a")
	send(t, oneAccepted, "b")
	send(t, far, "c")
	send(t, twoDialled, "d")
	expect(t, near, "c")
	expect(t, oneAccepted, "d")
	nothing(t, far)
	nothing(t, twoDialled)
	m.Release(Flow(NodeParty(1), NodeParty(2))...)
	expect(t, far, "a")
	expect(t, twoDialled, "b")
}

func TestHoldsAddUp(t *testing.T) {
	m := newTestMesh(t)
	near, far := connect(t, m, newPeer(t))
	m.Release(toTwo) // a surplus is ignored
	m.Hold(toTwo)
	m.Hold(toTwo)
	send(t, near, "x")
	m.Release(toTwo)
	nothing(t, far)
	m.Release(toTwo)
	expect(t, far, "x")
}

func TestDialThroughAHeldLinkHangs(t *testing.T) {
	for _, held := range []Lane{toTwo, fromTwo} {
		m := newTestMesh(t)
		p := newPeer(t)
		at, err := m.NodeLink(1, 2, p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		m.Hold(held)
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		send(t, c, "hello")
		nothing(t, c)
		select {
		case far := <-p.accepted:
			far.Close()
			t.Fatal("the dial reached the other side through a held link")
		default:
		}
		m.Release(held)
		far := <-p.accepted
		defer far.Close()
		expect(t, far, "hello")
	}
}

// The end of a connection travels like its bytes: held, and behind them.
func TestEndOfConnectionWaits(t *testing.T) {
	m := newTestMesh(t)
	near, far := connect(t, m, newPeer(t))
	m.Hold(fromTwo)
	send(t, far, "last words")
	far.Close()
	eventually(t, "the bytes wait at the gate", func() bool { return m.Count(fromTwo).Held > 0 })
	nothing(t, near)
	m.Release(fromTwo)
	expect(t, near, "last words")
	near.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("read gave %v, expected the end", err)
	}
}

func TestDialOfADeadNodeIsReset(t *testing.T) {
	m := newTestMesh(t)
	p := newPeer(t)
	at, err := m.ClientLink(1, 2, p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	c, err := net.Dial("tcp", at)
	if err != nil {
		if errors.Is(err, syscall.ECONNRESET) {
			return
		}
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read gave %v, expected a reset", err)
	}
}

func TestReset(t *testing.T) {
	m := newTestMesh(t)
	near, far := connect(t, m, newPeer(t))
	m.Reset(NodeParty(2), NodeParty(1))
	for _, c := range []net.Conn{near, far} {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read gave %v, expected a reset", err)
		}
	}
}

// Whatever holds and releases do to a stream, it arrives complete and in order.
func TestStreamSurvivesFlapping(t *testing.T) {
	m := newTestMesh(t)
	near, far := connect(t, m, newPeer(t))
	want := make([]byte, 8<<20)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	var flap sync.WaitGroup
	stop := make(chan struct{})
	flap.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				m.Hold(toTwo)
				m.Release(toTwo)
			}
		}
	})
	go func() {
		near.Write(want)
		near.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(far)
	close(stop)
	flap.Wait()
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d of %d bytes arrived, %v, equal: %v", len(got), len(want), err, bytes.Equal(got, want))
	}
	if c := m.Count(toTwo); c.Passed != int64(len(want)) {
		t.Errorf("%d bytes counted, expected %d", c.Passed, len(want))
	}
}

func TestLinksAreStableAndCloseEndsThem(t *testing.T) {
	m := NewMesh()
	p := newPeer(t)
	first, err := m.ClientLink(3, 2, p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.ClientLink(3, 2, p.Addr().String())
	if err != nil || again != first {
		t.Errorf("the same link is at %s and at %s, %v", first, again, err)
	}
	other, err := m.ClientLink(4, 2, p.Addr().String())
	if err != nil || other == first {
		t.Errorf("two clients share %s, %v", other, err)
	}
	near, _ := connect(t, m, p)
	m.Hold(toTwo, fromTwo)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	near.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := near.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection outlives its mesh: %v", err)
	}
	if _, err := net.Dial("tcp", first); err == nil {
		t.Error("a link outlives its mesh")
	}
	if _, err := m.NodeLink(1, 2, p.Addr().String()); err == nil {
		t.Error("a closed mesh gives links")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkHoldRelease(b *testing.B) {
	m := NewMesh()
	defer m.Close()
	lanes := Flow(NodeParty(1), NodeParty(2))
	for b.Loop() {
		m.Hold(lanes...)
		m.Release(lanes...)
	}
}
