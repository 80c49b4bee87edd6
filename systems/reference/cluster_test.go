package reference

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ackproof/nemesis"
	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// The tests of whole clusters run the real program. The environment tells the test binary to be the harness that is about to be killed.
const orphanEnv = "ACKPROOF_REFERENCE_TEST_ORPHAN"

var executable string

func TestMain(m *testing.M) {
	seccomp.Shim()
	if at := os.Getenv(orphanEnv); at != "" {
		os.Exit(orphan(at))
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ackproof-reference")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	executable = filepath.Join(dir, "ackproof")
	if out, err := exec.Command("go", "build", "-o", executable, "ackproof/cmd/ackproof").CombinedOutput(); err != nil {
		fmt.Printf("build ackproof: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func options(dir string) systems.Options {
	return systems.Options{Dir: dir, Nodes: 3, Topic: "ledger", Partitions: 4, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true}
}

func started(t *testing.T, o systems.Options) *Cluster {
	t.Helper()
	c, err := New(o, executable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pids := pidsOf(c)
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for _, pid := range pids {
			if exists(pid) {
				t.Errorf("pid %d survives the end", pid)
			}
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func pidsOf(c *Cluster) []int {
	var out []int
	for _, n := range c.Nodes() {
		if pid := n.PID(); pid != 0 {
			out = append(out, pid)
		}
	}
	return out
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// roles polls until they satisfy ok.
func roles(t *testing.T, c *Cluster, what string, ok func(systems.Roles) bool) systems.Roles {
	t.Helper()
	var last systems.Roles
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if last, err = c.Roles(t.Context()); err == nil && ok(last) {
			return last
		}
	}
	t.Fatalf("never: %s; the last roles are %+v, %v", what, last, err)
	return last
}

func full(r systems.Roles) bool {
	return !slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool { return p.Leader == 0 || len(p.ISR) < len(p.Replicas) })
}

// without: the node leads nothing and is in no in-sync set.
func without(node int) func(systems.Roles) bool {
	return func(r systems.Roles) bool {
		return r.Controller != 0 && r.Controller != node && !slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool {
			return p.Leader == 0 || p.Leader == node || slices.Contains(p.ISR, node)
		})
	}
}

func TestLifeOfACluster(t *testing.T) {
	mesh := nemesis.NewMesh()
	defer mesh.Close()
	o := options(t.TempDir())
	o.Network = mesh
	c := started(t, o)

	r := roles(t, c, "full in-sync sets and a controller", func(r systems.Roles) bool { return full(r) && r.Controller != 0 })
	if len(r.Partitions) != 4 || len(r.Partitions[0].Replicas) != 3 || c.TopicID() == ([16]byte{}) {
		t.Errorf("roles %+v, topic %x; expected 4 partitions with 3 replicas, and an id", r, c.TopicID())
	}
	for _, from := range c.Nodes() {
		for _, to := range c.Nodes() {
			lane := nemesis.Lane{Dialer: nemesis.NodeParty(from.ID()), Acceptor: nemesis.NodeParty(to.ID())}
			if from != to && mesh.Count(lane).Passed == 0 {
				t.Errorf("%s has sent nothing to %s over the network of the run", from.Name(), to.Name())
			}
		}
	}

	// The controller dies: another one takes over, and everything that it led is led by others.
	dead := c.nodes[r.Controller-1]
	pid := dead.PID()
	if err := dead.Kill(); err != nil {
		t.Fatal(err)
	}
	if alive, reason := dead.Alive(); exists(pid) || alive || reason != nil || dead.PID() != 0 {
		t.Errorf("killed, and it exists: %v, alive: %v, reason: %v", exists(pid), alive, reason)
	}
	roles(t, c, "the others take over from the dead", without(dead.ID()))
	if err := dead.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := dead.Start(t.Context()); err == nil {
		t.Error("a node that runs starts again")
	}
	r = roles(t, c, "the dead one is back in sync", full)

	// A leader stands still: it is replaced, and the roles are told without it.
	still := c.nodes[r.Partitions[0].Leader-1]
	if err := still.Pause(); err != nil {
		t.Fatal(err)
	}
	roles(t, c, "the others take over from the paused", without(still.ID()))
	if err := still.Resume(); err != nil {
		t.Fatal(err)
	}
	roles(t, c, "the paused one is back in sync", full)

	// Standard input ends, as it does when the harness dies: so does the node, by itself.
	lonely := c.nodes[0]
	lonely.EndInput()
	eventually(t, "the node ends with its standard input", func() bool { alive, _ := lonely.Alive(); return !alive })
	if err := lonely.Pause(); err == nil || !strings.Contains(err.Error(), "n1: it is down") {
		t.Errorf("pausing a node that is down gives %v", err)
	}
	if _, reason := lonely.Alive(); reason == nil {
		t.Error("a node that ended by itself gives no reason")
	}
	if lonely.LogTail(1) == "" || len(strings.Split(lonely.LogTail(3), "\n")) != 3 {
		t.Errorf("the tail of the log is %q", lonely.LogTail(3))
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestNodeThatCannotStartIsExplained(t *testing.T) {
	c, err := New(options(t.TempDir()), executable)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	l, err := net.Listen("tcp", c.nodes[1].Addr()) // somebody was quicker
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = c.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "n2 ended") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error %v, expected the end of the log of n2", err)
	}
	if err := c.Stop(); err != nil || len(pidsOf(c)) > 0 {
		t.Errorf("stop after a failed start: %v, left over: %v", err, pidsOf(c))
	}

	c, err = New(options(t.TempDir()), filepath.Join(t.TempDir(), "nothing"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "start n1") {
		t.Errorf("error %v, expected that n1 cannot be run", err)
	}
}

func TestStartObeysItsContext(t *testing.T) {
	c, err := New(options(t.TempDir()), executable)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Start(ctx); err == nil {
		t.Error("a cluster starts although nobody wants it any more")
	}
}

// orphan starts a cluster, tells its pids and waits for its own end.
func orphan(spec string) int {
	dir, exe, _ := strings.Cut(spec, "|")
	c, err := New(options(dir), exe)
	if err == nil {
		err = c.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		c.Stop()
		return 1
	}
	fmt.Println(strings.Trim(fmt.Sprint(pidsOf(c)), "[]"))
	select {}
}

func TestNothingSurvivesTheHarness(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"="+t.TempDir()+"|"+executable)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pids := make([]int, 3)
	if _, err := fmt.Sscan(line, &pids[0], &pids[1], &pids[2]); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("the harness says %q: %v", line, err)
	}
	for _, pid := range pids {
		if !exists(pid) {
			t.Errorf("pid %d does not run", pid)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("pid %d ends with its harness", pid), func() bool { return !exists(pid) })
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
