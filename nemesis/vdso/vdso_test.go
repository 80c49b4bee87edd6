package vdso

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const childEnv = "ACKPROOF_VDSO_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		tellTime()
		return
	}
	os.Exit(m.Run())
}

// tellTime answers every line with the wall clock and the monotonic one, in nanoseconds. Other threads read the clock all the time meanwhile.
func tellTime() {
	began := time.Now()
	for range 2 {
		go func() {
			for {
				if time.Now().IsZero() {
					panic("no time")
				}
				time.Sleep(10 * time.Microsecond)
			}
		}()
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		now := time.Now()
		fmt.Println(now.UnixNano(), now.Sub(began).Nanoseconds())
	}
}

// told is a process that tells the time when it is asked.
type told struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func start(t testing.TB, cmd *exec.Cmd) *told {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p := &told{t, cmd, in, bufio.NewReader(out)}
	p.ask()
	return p
}

func child(t testing.TB) *told {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return start(t, cmd)
}

// ask for what the process takes for the time: a list of numbers.
func (p *told) ask() []int64 {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	var numbers []int64
	for word := range strings.FieldsSeq(line) {
		var n int64
		if _, err := fmt.Sscan(word, &n); err != nil {
			p.t.Fatalf("answer %q", line)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// off is between which bounds the process's wall clock differs from this one's.
func (p *told) off() (least, most time.Duration) {
	p.t.Helper()
	before := time.Now()
	its := p.ask()[0]
	after := time.Now()
	return time.Duration(its - after.UnixNano()), time.Duration(its - before.UnixNano())
}

func (p *told) expect(what string, want time.Duration) {
	p.t.Helper()
	if least, most := p.off(); want < least || want > most {
		p.t.Errorf("%s: the clock is off by %v to %v, expected %v", what, least, most, want)
	}
}

// stopped does something while the process stands still.
func (p *told) stopped(do func() error) {
	p.t.Helper()
	pid := p.cmd.Process.Pid
	var err error
	for range 200 {
		if e := syscall.Kill(pid, syscall.SIGSTOP); e != nil {
			p.t.Fatal(e)
		}
		for err = do(); errors.Is(err, ErrRuns); err = do() {
			time.Sleep(50 * time.Microsecond) // the signal reaches thread after thread
		}
		if e := syscall.Kill(pid, syscall.SIGCONT); e != nil {
			p.t.Fatal(e)
		}
		if !errors.Is(err, ErrInside) {
			break
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *told) attach() *Clock {
	p.t.Helper()
	var c *Clock
	p.stopped(func() (err error) { c, err = Attach(p.cmd.Process.Pid); return err })
	p.t.Cleanup(func() { c.Close() })
	return c
}

func (p *told) set(c *Clock, s Setting) {
	p.t.Helper()
	if err := c.Set(s); err != nil {
		p.t.Fatal(err)
	}
	if got, err := c.Setting(); err != nil || got != s {
		p.t.Errorf("read back %+v, %v, expected %+v", got, err, s)
	}
}

func need(t testing.TB) {
	if ok, why := Available(); !ok {
		t.Skip("clocks of other processes cannot be held here: " + why)
	}
}

func TestTheProcessSeesTheSkewAndItsNeighbourDoesNot(t *testing.T) {
	need(t)
	p, neighbour := child(t), child(t)
	monotonic, since := p.ask()[1], time.Now()
	c := p.attach()
	p.expect("held", 0)
	for _, off := range []time.Duration{time.Hour, -time.Hour, 1500*time.Millisecond + 7, -1, -999_999_999, 0, 20 * 365 * 24 * time.Hour, -40 * 365 * 24 * time.Hour} {
		p.set(c, Setting{Offset: off})
		p.expect("set", off)
		neighbour.expect("the neighbour", 0)
	}
	if passed, elapsed := time.Duration(p.ask()[1]-monotonic), time.Since(since); passed > elapsed+time.Second || passed < 0 {
		t.Errorf("the monotonic clock went on by %v in %v", passed, elapsed)
	}
	p.set(c, Setting{Offset: time.Minute})
	again := p.attach() // as one that knows nothing of the first
	p.expect("taken over", time.Minute)
	p.stopped(again.Detach)
	p.expect("let go", 0)
	if _, err := c.Setting(); err == nil {
		t.Error("a clock that was let go can still be read")
	}
	c = p.attach()
	p.set(c, Setting{Offset: time.Second})
	p.expect("held again", time.Second)
}

func TestDrift(t *testing.T) {
	need(t)
	for _, ppm := range []int64{MaxDriftPPM, -MaxDriftPPM} {
		p := child(t)
		c := p.attach()
		before := time.Now()
		p.set(c, Setting{Offset: -time.Hour, DriftPPM: ppm})
		after := time.Now()
		gained := func(since time.Time) time.Duration {
			return time.Duration(float64(time.Since(since)) * float64(ppm) / 1e6)
		}
		for last := p.ask()[0]; time.Since(after) < 100*time.Millisecond; {
			// What it gains lies between what passes from the return of Set to the question, and from the call of Set to the answer.
			one := gained(after)
			least, most := p.off()
			two := gained(before)
			if most < -time.Hour+min(one, two)-time.Millisecond || least > -time.Hour+max(one, two)+time.Millisecond {
				t.Fatalf("%d ppm: off by %v to %v, expected an hour less and %v to %v more", ppm, least, most, one, two)
			}
			now := p.ask()[0]
			if now <= last {
				t.Fatalf("%d ppm: the clock went back", ppm)
			}
			last = now
		}
	}
}

// The other two functions, and the coarse clock: perl asks for them.
func TestOtherFunctionsOfTheClock(t *testing.T) {
	need(t)
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("perl, which asks for the time in other ways than Go, is not here")
	}
	p := start(t, exec.Command(perl, "-MTime::HiRes=gettimeofday,clock_gettime,CLOCK_REALTIME", "-e",
		`$| = 1; while (<STDIN>) { my ($s, $us) = gettimeofday(); printf "%d %d %d\n", $s*1000000+$us, time(), clock_gettime(CLOCK_REALTIME) }`))
	c := p.attach()
	for _, off := range []time.Duration{0, 90*time.Minute + 300*time.Millisecond, -90*time.Minute - 300*time.Millisecond} {
		p.set(c, Setting{Offset: off})
		before := time.Now().Add(off)
		got := p.ask()
		after := time.Now().Add(off)
		for i, unit := range []time.Duration{time.Microsecond, time.Second, time.Second} {
			if low, high := before.UnixNano()/int64(unit), after.UnixNano()/int64(unit); got[i] < low || got[i] > high {
				t.Errorf("off by %v: number %d is %d, expected %d to %d", off, i, got[i], low, high)
			}
		}
	}
	p.stopped(c.Detach)
	if now := time.Now().Unix(); p.ask()[1] < now {
		t.Error("time() is behind after the clock was let go")
	}
}

// Threads read the clock without a pause while it is taken, set and let go many times.
func TestTakenAndLetGoWhileItIsRead(t *testing.T) {
	need(t)
	p := child(t)
	for range 40 {
		c := p.attach()
		var all sync.WaitGroup
		all.Go(func() {
			for i := range 100 {
				if err := c.Set(Setting{Offset: time.Duration(i) * time.Hour}); err != nil {
					t.Error(err)
				}
			}
		})
		p.ask()
		all.Wait()
		p.expect("in the end", 99*time.Hour)
		p.stopped(c.Detach)
		p.expect("let go", 0)
	}
}

func TestARunningProcessIsNotPatched(t *testing.T) {
	need(t)
	p := child(t)
	if c, err := Attach(p.cmd.Process.Pid); !errors.Is(err, ErrRuns) {
		t.Errorf("clock %v, error %v, expected ErrRuns", c, err)
	}
	c := p.attach()
	p.set(c, Setting{Offset: time.Hour})
	if err := c.Detach(); !errors.Is(err, ErrRuns) {
		t.Errorf("%v, expected ErrRuns", err)
	}
	p.expect("let go while it runs", 0) // the code is still there, the clock is true
}

func TestSettingsOutOfBoundsAreRefused(t *testing.T) {
	need(t)
	p := child(t)
	c := p.attach()
	for _, s := range []Setting{{Offset: MaxOffset + 1}, {Offset: -MaxOffset - 1}, {DriftPPM: MaxDriftPPM + 1}, {DriftPPM: -MaxDriftPPM - 1}} {
		if err := c.Set(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	p.expect("still", 0)
	if _, err := Attach(1 << 30); err == nil {
		t.Error("a process that is not there has a clock")
	}
}

// A jump of a clock that is held, and taking hold of one and letting it go, with two stops of the process.
func BenchmarkClock(b *testing.B) {
	need(b)
	p := child(b)
	b.Run("attach and detach", func(b *testing.B) {
		for b.Loop() {
			c := p.attach()
			p.stopped(c.Detach)
		}
	})
	c := p.attach()
	b.Run("set", func(b *testing.B) {
		for b.Loop() {
			if err := c.Set(Setting{Offset: time.Hour}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
