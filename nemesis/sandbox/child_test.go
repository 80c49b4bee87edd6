//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ackproof/nemesis"
	"ackproof/systems"
	"ackproof/systems/process"
)

// The tests run inside the sandbox. The test binary is also what runs there: a server as a node, or a harness that is about to be killed.

const (
	roleEnv = "ACKPROOF_SANDBOX_TEST_ROLE"
	argEnv  = "ACKPROOF_SANDBOX_TEST_ARG"
)

// unavailable is why there is no sandbox on this machine.
var unavailable error

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "server":
		serve(strings.Split(os.Getenv(argEnv), ",")...)
	case "nothing":
		os.Exit(0)
	case "brief":
		os.Exit(brief())
	case "parent": // of a child that no signal to its group reaches
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), roleEnv+"=child")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		time.Sleep(time.Hour)
	case "child":
		time.Sleep(time.Hour)
	case "harness":
		os.Exit(doomed())
	}
	inside, code, err := Enter()
	switch {
	case err != nil:
		unavailable = err
	case !inside:
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// talk is what a connection starts with whose server is to talk on its own, whatever comes in.
const talk = "\x00talk"

// serve echoes on those addresses, or talks, until standard input ends.
func serve(addrs ...string) {
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			fmt.Println("listen:", err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					os.Exit(1)
				}
				go func() {
					defer c.Close()
					first := make([]byte, 64)
					switch n, err := c.Read(first); {
					case err != nil:
					case string(first[:n]) == talk:
						chatter(c)
					default:
						c.Write(first[:n])
						io.Copy(c, c)
					}
				}()
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// chatter sends a little every millisecond until the connection breaks, and reads what comes. So there is always something to send, which an end that answers has not,
// and no window is ever full, as one would be that is flooded: both would leave a cut with nothing to drop.
func chatter(c net.Conn) {
	go io.Copy(io.Discard, c)
	for {
		if _, err := c.Write(make([]byte, 100)); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// brief makes a sandbox with places for three nodes and ends.
func brief() int {
	inside, code, err := Enter()
	if err == nil && !inside {
		return code
	}
	var b *Backend
	if err == nil {
		b, err = New()
	}
	for id := 1; id <= 3 && err == nil; id++ {
		_, err = b.Address(id, 0)
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// world is a back end with nodes that echo.
type world struct {
	*Backend
	nodes []*process.Node
}

func newWorld(tb testing.TB, nodes int) *world {
	tb.Helper()
	if unavailable != nil {
		tb.Skip("there is no sandbox here: ", unavailable)
	}
	b, err := New()
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{Backend: b}
	tb.Cleanup(func() {
		for _, n := range w.nodes {
			if err := n.Stop(); err != nil {
				tb.Error(err)
			}
		}
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	for id := 1; id <= nodes; id++ {
		w.nodes = append(w.nodes, w.server(tb, id, tb.TempDir()))
	}
	for _, n := range w.nodes {
		if err := n.Start(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	for _, n := range w.nodes {
		w.up(tb, n)
		for _, from := range w.nodes {
			if _, err := b.Network().NodeLink(from.ID(), n.ID(), n.Addr()); err != nil {
				tb.Fatal(err)
			}
		}
		if _, err := b.Network().ClientLink(1, n.ID(), n.Addr()); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

func (w *world) server(tb testing.TB, id int, dir string) *process.Node {
	tb.Helper()
	first, err := w.Address(id, 0)
	if err != nil {
		tb.Fatal(err)
	}
	second, err := w.Address(id, 1)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := process.New(process.Spec{ID: id, Addr: first, Dir: dir, Host: w.Backend, Argv: []string{"/proc/self/exe"},
		Env: []string{roleEnv + "=server", argEnv + "=" + first + "," + second}})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// up waits until the node answers the harness.
func (w *world) up(tb testing.TB, n systems.Node) {
	tb.Helper()
	eventually(tb, n.Name()+" listens", func() bool {
		c, err := net.DialTimeout("tcp", n.Addr(), time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// dial connects one party to a node.
func (w *world) dial(tb testing.TB, from, to nemesis.Party) *net.TCPConn {
	tb.Helper()
	c, err := w.Network().Dial(tb.Context(), from, to)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("never: " + what)
		}
	}
}

// echoed sends text and expects it back.
func echoed(tb testing.TB, c net.Conn, text string) {
	tb.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	read(tb, c, text)
}

func read(tb testing.TB, c net.Conn, text string) {
	tb.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		tb.Fatalf("read %q, %v; expected %q", got, err, text)
	}
}

// doomed is a harness with nodes, one of which has a child in a session of its own. It tells when all is there and waits for its end.
func doomed() int {
	inside, code, err := Enter()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if !inside {
		return code
	}
	b, err := New()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for id := 1; id <= 3; id++ {
		addr, err := b.Address(id, 0)
		if err == nil {
			var n *process.Node
			n, err = process.New(process.Spec{ID: id, Addr: addr, Dir: filepath.Join(os.Getenv(argEnv), fmt.Sprint(id)), Host: b, Argv: []string{"/proc/self/exe"},
				Env: []string{roleEnv + "=parent"}})
			if err == nil {
				err = n.Start(context.Background())
			}
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("ready")
	select {}
}
