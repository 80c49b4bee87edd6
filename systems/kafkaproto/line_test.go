package kafkaproto

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"ackproof/systems"
)

// fake is as much of a node as is asked of one.
type fake struct {
	systems.Node
	addr string
	pid  int
}

func (f *fake) ID() int              { return 1 }
func (f *fake) Name() string         { return "n1" }
func (f *fake) Addr() string         { return f.addr }
func (f *fake) PID() int             { return f.pid }
func (f *fake) Alive() (bool, error) { return true, nil }

// listening gives the connections that a node is dialled with.
func listening(t *testing.T) (n *fake, conns chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	t.Cleanup(func() { l.Close() })
	return &fake{addr: l.Addr().String(), pid: 7}, conns
}

const longEnough = 20 * time.Second

func TestNobodyWaitsBehindANodeThatDoesNotAnswer(t *testing.T) {
	n, conns := listening(t)
	c := &Cluster{Nodes: []systems.Node{n}, Patience: longEnough}
	first := make(chan error)
	go func() {
		first <- c.line(1).talk(n, longEnough, func(conn net.Conn) error { _, err := io.ReadAll(conn); return errors.Join(errors.New("over"), err) })
	}()
	held := <-conns
	for range 100 {
		if err := c.line(1).talk(n, longEnough, func(net.Conn) error { return nil }); !errors.Is(err, errBusy) {
			t.Fatalf("error %v, expected that the node is still being asked", err)
		}
	}
	held.Close()
	if err := <-first; err == nil {
		t.Error("an answer, expected the end of the connection")
	}
	if err := c.line(1).talk(n, longEnough, func(net.Conn) error { return nil }); err != nil {
		t.Errorf("the next question: %v", err)
	}
	c.Close()
}

func TestAConnectionIsKeptForOneLifeOfItsNode(t *testing.T) {
	n, conns := listening(t)
	c := &Cluster{Nodes: []systems.Node{n}}
	defer c.Close()
	var used []string
	ask := func(fail error) {
		c.line(1).talk(n, longEnough, func(conn net.Conn) error { used = append(used, conn.LocalAddr().String()); return fail })
	}
	ask(nil)
	ask(nil)
	n.pid++ // it died and was started again
	ask(errors.New("a late answer would meet the next request"))
	ask(nil)
	if used[0] != used[1] || used[1] == used[2] || used[2] == used[3] {
		t.Errorf("asked over %v, expected one connection for two questions, and a new one after the restart and after the failure", used)
	}
	for range 3 {
		(<-conns).Close()
	}
}
