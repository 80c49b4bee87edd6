package nemesis

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ackproof/nemesis/lossy"
	"ackproof/systems"
)

// threaded starts each process on a thread that lives until the test ends, as systems.Host wants it.
type threaded struct {
	*Disks
	end chan struct{}
}

func (h threaded) Start(node int, cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- h.Disks.Start(node, cmd)
		<-h.end
	}()
	return <-started
}

// onDisks is a cluster of one node whose data lies on a disk that can be hurt.
func onDisks(t *testing.T) (*cluster, *Runner, *Disks) {
	t.Helper()
	if ok, why := lossy.Available(); !ok {
		t.Skip("no file system that loses power here: " + why)
	}
	c := newCluster(t, 1, 1)
	n := c.nodes[0]
	n.Kill()
	d := WithDisks(NewProxies(), lossy.Options{WriteBack: -1})
	host := threaded{d, make(chan struct{})}
	t.Cleanup(func() {
		c.Stop()
		close(host.end)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	dir, err := d.DataDir(1, filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	n.data, n.host = dir, host
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, &Runner{System: c, Backend: d}, d
}

// save makes the node write and flush a line.
func save(n systems.Node) bool {
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	in := make([]byte, 8)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, 4), "save"...)); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, in)
	return err == nil && string(in[4:]) == "save"
}

func TestFaultsOfADiskProveTheirEffect(t *testing.T) {
	c, r, d := onDisks(t)
	ctx, stop := context.WithCancel(t.Context())
	var saving sync.WaitGroup
	acked := 0
	saving.Go(func() {
		for ctx.Err() == nil {
			if save(c.nodes[0]) {
				acked++
			}
		}
	})
	one := Target{Role: RoleNode, Node: 1}
	for _, x := range []struct {
		fault Fault
		proof []string
	}{
		{Fault{Kind: DiskError, ForMS: 200, Target: one}, []string{"n1: 1 operation failed"}},
		{Fault{Kind: FlushError, ForMS: 200, Target: one}, []string{"n1: 1 flush failed"}},
		{Fault{Kind: DiskFull, ForMS: 200, Target: one}, []string{"told that the disk is full"}},
		{Fault{Kind: DiskSlow, ForMS: 200, AmountMS: 10, Target: one}, []string{"flushes took 10 ms longer"}},
		{Fault{Kind: PowerLoss, ForMS: 20, Target: one}, []string{"gone", "refused", "unflushed|lost", "after the restart"}},
	} {
		got, _ := run(t, r, x.fault)
		if !got[0].Effective {
			t.Errorf("%+v, expected an effect", got[0])
		}
		for _, p := range x.proof {
			a, b, _ := strings.Cut(p, "|")
			if !strings.Contains(got[0].Proof, a) && (b == "" || !strings.Contains(got[0].Proof, b)) {
				t.Errorf("the proof of %s is %q, expected %q in it", x.fault.Kind, got[0].Proof, p)
			}
		}
	}
	stop()
	saving.Wait()
	c.Stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.nodes[0].data, "saved"))
	// The flush that failed is not among the acknowledged ones; what it should have kept may be gone or not.
	if lines := strings.Count(string(text), "\n"); err != nil || lines < acked || acked == 0 {
		t.Errorf("%d lines are there, %v; %d were acknowledged", lines, err, acked)
	}
}

// LogGlob implements systems.Keeper.
func (c *cluster) LogGlob(int32) string { return "saved" }

// lines tells how much of what the node saved is there.
func (c *cluster) lines(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.nodes[0].data, "saved"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestWhatADiskLiedOfGoesWithThePower(t *testing.T) {
	c, r, d := onDisks(t)
	ctx, stop := context.WithCancel(t.Context())
	var saving sync.WaitGroup
	acked := 0
	saving.Go(func() {
		for ctx.Err() == nil {
			if save(c.nodes[0]) {
				acked++
			}
		}
	})
	got, _ := run(t, r, Fault{Kind: FlushLie, ForMS: 5000, UntilFault: at(1), Target: Target{Role: RoleNode, Node: 1}},
		Fault{Kind: PowerLoss, ForMS: 10, Start: Trigger{Fault: at(0), AfterMS: 200}, Target: Target{Role: RoleSame}, Loss: lossy.LoseAll})
	stop()
	saving.Wait()
	if !got[0].Effective || !strings.Contains(got[0].Proof, "flushes said that all is well, and kept nothing") || !got[1].Effective || !strings.Contains(got[1].Proof, "lost") {
		t.Errorf("%+v, expected that both have an effect", got)
	}
	c.Stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := c.lines(t); lines >= acked {
		t.Errorf("%d lines are there of the %d that were acknowledged; expected that the disk has lost those that it lied of", lines, acked)
	}
}

func TestDamageToChosenFiles(t *testing.T) {
	c, r, d := onDisks(t)
	const saved = 20
	for range saved {
		if !save(c.nodes[0]) {
			t.Fatal("the node does not save")
		}
	}
	for kind, want := range map[Kind]string{BitFlip: "turned over: a bit of byte ", Truncate: "cut off: the last "} {
		got, _ := run(t, r, Fault{Kind: kind, ForMS: 10, Target: Target{Role: RoleNode, Node: 1}})
		if !got[0].Effective || !strings.Contains(got[0].Proof, want) || !strings.Contains(got[0].Proof, "saved") {
			t.Errorf("%+v, expected %q", got[0], want)
		}
	}
	c.Stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := c.lines(t); lines >= saved {
		t.Errorf("%d lines are there of %d, expected that the last ones are cut off", lines, saved)
	}
}

func TestADiskThatNothingIsWrittenTo(t *testing.T) {
	_, r, _ := onDisks(t)
	got, _ := run(t, r, Fault{Kind: DiskError, ForMS: 20, Target: Target{Role: RoleNode, Node: 1}})
	if got[0].Effective || !strings.Contains(got[0].Proof, "nothing met the fault") {
		t.Errorf("%+v, expected no effect", got[0])
	}
	got, _ = run(t, r, Fault{Kind: PowerLoss, ForMS: 20, Target: Target{Role: RoleNode, Node: 1}})
	if !got[0].Effective || !strings.Contains(got[0].Proof, "nothing was unflushed") {
		t.Errorf("%+v, expected that it was a kill and no more", got[0])
	}
}

// Right after a restart the roles say that all is well, and do not know it.
func TestRolesAreNotBelievedOfNodesThatWereJustStruck(t *testing.T) {
	var e exposing
	e.begin(Exposure{}, time.Hour)
	whole := systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1, 2}}}}
	e.look(time.Now(), whole)
	e.strike(PowerLoss, []int{1})
	e.look(time.Now(), whole)
	e.healed(PowerLoss, []int{1})
	e.look(time.Now(), whole)
	if e.exposed() || !e.disturbed(1) || e.disturbed(2) {
		t.Errorf("exposed: %t; disturbed: n1 %t, n2 %t", e.exposed(), e.disturbed(1), e.disturbed(2))
	}
	e.strike(PowerLoss, []int{2})
	if !e.exposed() {
		t.Error("both copies have lost power, one after the other, and a loss is not permitted")
	}
	e.begin(Exposure{}, 0)
	e.look(time.Now(), whole)
	e.strike(PowerLoss, []int{1})
	e.healed(PowerLoss, []int{1})
	e.look(time.Now().Add(time.Second), whole)
	e.strike(PowerLoss, []int{2})
	if e.exposed() {
		t.Error("the first copy was whole again before the second lost power, and a loss is permitted")
	}
}

// The log that keeps what groups commit has replicas and in-sync sets of its own.
func TestTheGroupsLogIsExposedByItself(t *testing.T) {
	var e exposing
	e.begin(Exposure{}, time.Hour)
	log := systems.PartitionRoles{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1, 2}}
	lagging := systems.PartitionRoles{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1}}
	e.look(time.Now(), systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{log}, Coordinators: []systems.PartitionRoles{lagging}})
	e.strike(PowerLoss, []int{1})
	if !e.exposed() {
		t.Error("the only copy that is in sync of the groups' log has lost its power, and a loss is not permitted")
	}
}
