package nemesis

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ackproof/model"
	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// The tests run against real processes: the test binary again, as a server that answers each frame with itself.

const (
	stop = syscall.SIGSTOP
	cont = syscall.SIGCONT
)

const dataEnv = "ACKPROOF_NEMESIS_TEST_DATA"

const childEnv = "ACKPROOF_NEMESIS_TEST_NODE"

func TestMain(m *testing.M) {
	seccomp.Shim()
	if addr := os.Getenv(childEnv); addr != "" {
		serveChild(addr)
		return
	}
	os.Exit(m.Run())
}

func serveChild(addr string) {
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends with the test
		os.Exit(0)
	}()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Println("listen:", err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil { // out of descriptors
			time.Sleep(5 * time.Millisecond)
			continue
		}
		go echo(c)
	}
}

// echo answers every frame (length, bytes) with itself, "dial" and an address with what came of a ping there, "time" with the time, "save" when it has written and flushed a line, and "eat!" by taking all memory that there is.
func echo(c net.Conn) {
	defer c.Close()
	var size [4]byte
	for {
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
		copy(frame, size[:])
		if _, err := io.ReadFull(c, frame[4:]); err != nil {
			return
		}
		if to, ok := strings.CutPrefix(string(frame[4:]), "dial"); ok {
			frame = binary.BigEndian.AppendUint32(nil, 4)
			if relay(to) == nil {
				frame = append(frame, "good"...)
			} else {
				frame = append(frame, "fail"...)
			}
		}
		switch string(frame[4:]) {
		case "time":
			frame = binary.BigEndian.AppendUint64([]byte{0, 0, 0, 8}, uint64(time.Now().UnixNano()))
		case "save":
			f, err := os.OpenFile(filepath.Join(os.Getenv(dataEnv), "saved"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err == nil {
				_, err = f.WriteString("saved\n")
				err = errors.Join(err, f.Sync(), f.Close())
			}
			if err != nil {
				frame = []byte{0, 0, 0, 4, 'f', 'a', 'i', 'l'}
			}
		case "eat!":
			for {
				eaten = append(eaten, make([]byte, 1<<20))
			}
		}
		if _, err := c.Write(frame); err != nil {
			return
		}
	}
}

// relay pings another server.
func relay(to string) error {
	c, err := net.DialTimeout("tcp", to, 200*time.Millisecond)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	return pingFrame(c)
}

var eaten [][]byte

func pingFrame(c net.Conn) error {
	out := []byte{0, 0, 0, 4, 'p', 'i', 'n', 'g'}
	if _, err := c.Write(out); err != nil {
		return err
	}
	in := make([]byte, len(out))
	if _, err := io.ReadFull(c, in); err != nil {
		return err
	}
	if string(in) != string(out) {
		return fmt.Errorf("answer %q, expected %q", in, out)
	}
	return nil
}

// cluster is a system of children. Every partition has all nodes as replicas; the first that runs leads it, and all that run are in sync.
type cluster struct {
	t          *testing.T
	nodes      []*child
	partitions int

	mu         sync.Mutex
	roles      func() systems.Roles // instead of the rule above
	controller int
}

type child struct {
	id   int
	addr string

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{}
	// broken makes the node's faults do nothing, to see whether the proofs notice.
	broken bool
	host   systems.Host // nil: this machine
	data   string
}

func newCluster(t *testing.T, nodes, partitions int) *cluster {
	t.Helper()
	c := &cluster{t: t, partitions: partitions, controller: nodes}
	for id := 1; id <= nodes; id++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, &child{id: id, addr: l.Addr().String()})
		l.Close()
	}
	t.Cleanup(func() { c.Stop() })
	for _, n := range c.nodes {
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// mesh with links between all nodes and from all clients.
func (c *cluster) mesh(clients int) *Mesh {
	c.t.Helper()
	m := NewMesh()
	c.t.Cleanup(func() { m.Close() })
	for _, to := range c.nodes {
		for _, from := range c.nodes {
			if from != to {
				if _, err := m.NodeLink(from.id, to.id, to.addr); err != nil {
					c.t.Fatal(err)
				}
			}
		}
		for k := 1; k <= clients; k++ {
			if _, err := m.ClientLink(k, to.id, to.addr); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return m
}

func (c *cluster) Info() model.SystemInfo      { return model.SystemInfo{Name: "children"} }
func (c *cluster) Start(context.Context) error { return nil }
func (c *cluster) Contract() model.Contract    { return model.Contract{} }
func (c *cluster) TopicID() [16]byte           { return [16]byte{} }
func (c *cluster) Ping(conn net.Conn) error    { return pingFrame(conn) }

// Time implements systems.Timekeeper.
func (c *cluster) Time(conn net.Conn, _ systems.Node) (time.Time, error) {
	if _, err := conn.Write([]byte{0, 0, 0, 4, 't', 'i', 'm', 'e'}); err != nil {
		return time.Time{}, err
	}
	var in [12]byte
	if _, err := io.ReadFull(conn, in[:]); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(in[4:]))), nil
}

func (c *cluster) Timers() systems.Timers {
	return systems.Timers{Session: 300 * time.Millisecond, Lag: 400 * time.Millisecond, Fetch: 20 * time.Millisecond}
}

func (c *cluster) Nodes() []systems.Node {
	var out []systems.Node
	for _, n := range c.nodes {
		out = append(out, n)
	}
	return out
}

func (c *cluster) Roles(context.Context) (systems.Roles, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roles != nil {
		return c.roles(), nil
	}
	r := systems.Roles{Controller: c.controller}
	for range c.partitions {
		var p systems.PartitionRoles
		for _, n := range c.nodes {
			p.Replicas = append(p.Replicas, n.id)
			if n.PID() != 0 && processState(n.PID()) != "T" {
				p.ISR = append(p.ISR, n.id)
				if p.Leader == 0 {
					p.Leader = n.id
				}
			}
		}
		r.Partitions = append(r.Partitions, p)
	}
	return r, nil
}

func (c *cluster) Stop() error {
	for _, n := range c.nodes {
		n.broken = false
		n.Kill()
	}
	return nil
}

func (n *child) ID() int       { return n.id }
func (n *child) Data() string  { return n.data }
func (n *child) Name() string  { return fmt.Sprintf("n%d", n.id) }
func (n *child) Addr() string  { return n.addr }
func (n *child) Expect()       {}
func (n *child) Pause() error  { return n.signal(syscall.SIGSTOP) }
func (n *child) Resume() error { return n.signal(syscall.SIGCONT) }

func (n *child) LogTail(int) string          { return "" }
func (n *child) Log() (io.ReadCloser, error) { return nil, errors.New("no log") }
func (n *child) Alive() (bool, error)        { return n.PID() != 0, nil }

func (n *child) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	select {
	case <-n.gone: // by itself
		return 0
	default:
		return n.cmd.Process.Pid
	}
}

func (n *child) Start(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+n.addr, dataEnv+"="+n.data)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	start := (*exec.Cmd).Start
	if n.host != nil {
		start = func(c *exec.Cmd) error { return n.host.Start(n.id, c) }
	}
	if err := start(cmd); err != nil {
		return err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	gone := make(chan struct{})
	go func() {
		cmd.Wait()
		stdin.Close()
		close(gone)
	}()
	if line != "listening\n" {
		<-gone
		return fmt.Errorf("n%d says %q", n.id, line)
	}
	n.cmd, n.gone = cmd, gone
	return nil
}

func (n *child) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.broken {
		return nil
	}
	n.cmd.Process.Kill()
	<-n.gone
	n.cmd = nil
	return nil
}

func (n *child) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return errors.New("it is down")
	}
	if n.broken {
		return nil
	}
	return n.cmd.Process.Signal(s)
}

// eventually fails the test if ok does not come true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func names(ids ...int) []string {
	slices.Sort(ids)
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf("n%d", id))
	}
	return out
}
