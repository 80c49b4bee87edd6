package lossy

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheSecondFlushFails(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	r := f.Add(Rule{Ops: []Op{Flush}, Glob: "a", Skip: 1, Count: 1, Err: syscall.EIO, Drop: true}, 0)
	defer r.End()
	got, lost := scripted(t, f, dir, split("fill a 0 512 x; flush a; fill a 512 512 y; flush b; flush a; flush a; fill a 1024 512 z; flush a; read a"), split("read a"))
	if got != "a=512×x512×0512×z" || r.Hits() != 1 {
		t.Errorf("%q is left, %d hits; expected that what the second flush should have kept is gone, and the rest is there; %v", got, r.Hits(), lost)
	}
}

func TestWhatProcessesAreTold(t *testing.T) {
	needed(t)
	for _, c := range []struct {
		name   string
		rule   Rule
		script string
		want   string
		hits   int
	}{
		{"k-th write", Rule{Ops: []Op{Write}, Skip: 2, Count: 1, Err: syscall.EIO}, "write a 0 1; write a 1 2; write a 2 3; write a 2 4; read a", "wrote wrote EIO wrote a=124", 1},
		{"full", Rule{Ops: Growing(), Err: syscall.ENOSPC}, "write a 0 1; mkdir d; list .", "ENOSPC ENOSPC", 2},
		{"by name", Rule{Glob: "*.log", Ops: []Op{Write}, Err: syscall.EIO}, "mkdir d; write d/a.log 0 1; write d/b 0 1", "made EIO wrote", 1},
		{"by path", Rule{Glob: "d/*", Ops: []Op{Remove, Rename}, Err: syscall.EIO}, "mkdir d; write d/a 0 1; write a 0 1; remove d/a; move d/a b; remove a", "made wrote wrote EIO EIO removed", 2},
		{"names", Rule{Ops: []Op{MakeDir, Truncate, FlushDir}, Err: syscall.EIO}, "write a 0 1; cut a 0; mkdir d; flushdir .; read a", "wrote EIO EIO EIO a=1", 3},
		{"reading", Rule{Ops: []Op{Read}, Err: syscall.EIO}, "write a 0 1; read a", "wrote EIO", 1},
		{"a short write is carried on by the program", Rule{Ops: []Op{Write}, Short: true, Count: 1}, "write a 0 123456; read a", "wrote a=123456", 1},
		{"sometimes", Rule{Ops: []Op{Flush}, Chance: 0.5, Err: syscall.EIO}, "flush a; flush a; flush a; flush a; flush a; flush a", "", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, dir := made(t, Options{Direct: c.name == "reading"})
			r := f.Add(c.rule, 7)
			got := strings.Join(strings.Fields(ran(t, f, append([]string{"script", dir}, split(c.script)...)...)), " ")
			r.End()
			if c.hits < 0 {
				if n := r.Hits(); n == 0 || n == 6 || strings.Count(got, "EIO") != n {
					t.Errorf("%q, %d hits", got, n)
				}
				return
			}
			if got != c.want || r.Hits() != c.hits {
				t.Errorf("%q, %d hits; expected %q, %d", got, r.Hits(), c.want, c.hits)
			}
		})
	}
}

func TestAFlushThatLies(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	r := f.Add(Rule{Ops: []Op{Flush, FlushDir}, Lie: true}, 0)
	defer r.End()
	if got, lost := scripted(t, f, dir, split("write a 0 x; flush a; flushdir .; read a"), split("list .")); got != "" || r.Hits() != 2 {
		t.Errorf("%q is left, %d hits; %v", got, r.Hits(), lost)
	}
}

// A process that waits for a disk which hangs can be killed, and one that any other signal reaches waits on.
func TestAHangingDiskLetsGo(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	r := f.Add(Rule{Ops: []Op{Flush}, Hang: true}, 0)
	p := run(t, f, "script", dir, "write a 0 x", "flush a", "wait")
	p.line()
	for r.Hits() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.cmd.Process.Signal(syscall.SIGURG)
	p.kill() // returns when it is gone
	q := run(t, f, "script", dir, "flush a", "wait")
	for r.Hits() == 1 {
		time.Sleep(time.Millisecond)
	}
	q.cmd.Process.Signal(syscall.SIGURG)
	r.End()
	if got := q.line(); got != "flushed" {
		t.Errorf("the flush that was let go says %q", got)
	}
}

// What was written long ago lasts without a flush, as the kernel has it.
func TestTheKernelWritesBack(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{WriteBack: 20 * time.Millisecond})
	p := run(t, f, "script", dir, "write a 0 x", "wait")
	p.line()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		f.mu.Lock()
		waiting := len(f.journal)
		for _, o := range f.objects {
			o.mu.Lock()
			if o.pending() {
				waiting++
			}
			o.mu.Unlock()
		}
		f.mu.Unlock()
		if waiting == 0 {
			break
		}
	}
	p.kill()
	lost, err := f.PowerLoss(LoseAll, nil)
	if got := ran(t, f, "script", dir, "read a"); err != nil || got != "a=x" {
		t.Errorf("%q is left, %v; %v", got, err, lost)
	}
}

// Whoever still has the disk when the power goes has it no more.
func TestWhoSurvivesThePowerHasNoDisk(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	p := run(t, f, "script", dir, "write a 0 x", "flush a", "flushdir .", "wait", "write a 0 y", "flush a", "list .", "write b 0 z")
	for line := p.line(); line != "waiting"; line = p.line() {
		if line == "" {
			t.Fatal("the script ended early")
		}
	}
	if _, err := f.PowerLoss(SomeLoss, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	p.rest()
	if got := ran(t, f, "script", dir, "read a", "list ."); got != "a=x\na" {
		t.Errorf("%q is left", got)
	}
}

// At the moment at which the power goes nothing has an effect any more, and nobody is told so.
func TestNothingLastsThatComesAfterTheMoment(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{FlushTime: 300 * time.Millisecond})
	p := run(t, f, "script", dir, "write a 0 x", "flushdir .", "flush a", "write a 1 y", "flush a", "wait")
	for _, want := range []string{"wrote", "flushed", "flushed", "wrote"} {
		if got := p.line(); got != want {
			t.Fatalf("the script says %q, expected %q", got, want)
		}
	}
	f.Freeze() // while the second flush waits, or before it comes
	said := make(chan string, 1)
	go func() { said <- p.line() }()
	p.cmd.Process.Kill()
	if got := <-said; got != "" {
		t.Errorf("the script says %q after the moment", got)
	}
	p.kill()
	lost, err := f.PowerLoss(LoseAll, nil)
	if got := ran(t, f, "script", dir, "read a"); err != nil || got != "a=x" {
		t.Errorf("%q is left, %v; %v", got, err, lost)
	}
}

// A process that has changed a mapping ends only when the kernel has written its pages back, and no signal is told of that: if the power is gone by then, they must not wait for it, or
// the process could never be killed. It cost a run with Kafka, whose indexes are mapped.
func TestAProcessWithAMappingCanBeKilledWhenThePowerGoes(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	p := run(t, f, "script", dir, "map a 8192 x 4096", "wait")
	for _, want := range []string{"mapped", "waiting"} {
		if got := p.line(); got != want {
			t.Fatalf("the script says %q, expected %q", got, want)
		}
	}
	f.Freeze()
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		p.kill()
	}()
	select {
	case <-dead:
	case <-time.After(10 * time.Second):
		t.Error("the process that waits for its pages to be written back cannot be killed")
	}
	if _, err := f.PowerLoss(LoseAll, nil); err != nil { // lets go whoever waits all the same
		t.Fatal(err)
	}
	<-dead
	if got, want := ran(t, f, "script", dir, "read a"), "a=4096×x4096×0"; got != want {
		t.Errorf("%q is left, expected %q: what is written back after the moment goes nowhere", got, want)
	}
}
