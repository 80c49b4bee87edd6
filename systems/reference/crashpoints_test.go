package reference

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/nemesis/seccomp"
	"ackproof/systems/process"
)

// crashEnv asks for every crash point instead of every so-manieth: its value is the distance between two.
const crashEnv = "ACKPROOF_CRASH_POINTS"

// TestCrashAtEveryWriteFlushAndRename runs a broker that flushes each batch before its acknowledgement, and kills it at its k-th write, flush, rename, removal or truncation
// of its data, before the call is carried out: at the 1st, at the 2nd, and so on, until the run, from its start on a folder with a topic and some records to a clean stop, has
// no k-th. Each time the broker has to come back from what is there, with everything that was acknowledged, and to work.
//
// What is not among the points: the making of the topic. A broker that ends between the commit of a topic and the making of its folder takes the missing folder for a lost disk
// when it comes back, and a partition with this copy alone stays offline. Nothing was acknowledged then, so that nothing is lost.
//
// In the build every so-manieth is enough. All of them:
//
//	ACKPROOF_CRASH_POINTS=1 go test -v -timeout 1h -run TestCrashAtEvery ./systems/reference
func TestCrashAtEveryWriteFlushAndRename(t *testing.T) {
	if ok, why := seccomp.Available(); !ok {
		t.Skip("no call can be trapped here: " + why)
	}
	step := 10
	if s := os.Getenv(crashEnv); s != "" {
		if _, err := fmt.Sscan(s, &step); err != nil || step < 1 {
			t.Fatalf("%s is %q, expected a distance of at least 1", crashEnv, s)
		}
	}
	for _, store := range []string{"segment", "wal"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			c := crashing{t: t, store: store}
			hits := map[string]int{}
			var err error
			if c.addr, err = process.NewLoopback().Address(1, 0); err != nil {
				t.Fatal(err)
			}
			c.prepare()
			points, acked := 0, 0
			for k := 1; ; k += step {
				hit, n := c.at(k)
				acked += n
				if hit == nil {
					break
				}
				points++
				hits[hit.Name]++
			}
			t.Logf("store %s: crashed at %d points, %v; %d acknowledged records were all there", store, points, hits, acked)
			if points < 50/step || acked == 0 {
				t.Errorf("%d points, %d acknowledged records: the run does not do what it should", points, acked)
			}
		})
	}
}

// A run begins with so many records, and writes so many, one after the other.
const (
	crashBefore  = 5
	crashRecords = 12
)

type crashing struct {
	t     *testing.T
	store string
	addr  string
	ready string // the folder of a broker that was stopped cleanly, with a topic and crashBefore records
}

// prepare what every run begins with.
func (c *crashing) prepare() {
	c.ready = c.t.TempDir()
	if err := os.Mkdir(filepath.Join(c.ready, "data"), 0o755); err != nil {
		c.t.Fatal(err)
	}
	b := c.start(c.ready, nil)
	if n := len(b.write(0, crashBefore)); n != crashBefore {
		c.t.Fatalf("%d records were acknowledged, expected %d\n%s", n, crashBefore, b.log())
	}
	b.stop()
}

// at is one run that ends at call k, if it has so many. It tells the call and how many records were acknowledged before.
func (c crashing) at(k int) (hit *seccomp.Hit, acked int) {
	t := c.t
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "data")
	if err := os.CopyFS(data, os.DirFS(filepath.Join(c.ready, "data"))); err != nil {
		t.Fatal(err)
	}
	first := c.start(dir, &seccomp.Trap{Calls: seccomp.Calls(), Under: data, Nth: k})
	offsets := first.write(crashBefore, crashRecords)
	first.stop()
	_, hit = first.calls.Seen()

	what := fmt.Sprintf("store %s, crash at call %d, %v", c.store, k, hit)
	second := c.start(dir, nil)
	defer second.kill()
	read, err := second.read()
	if err != nil {
		t.Fatalf("%s: read all: %v\n%s", what, err, second.log())
	}
	seen := map[string]bool{}
	for _, r := range read {
		if value := string(r.Value); seen[value] || !strings.HasPrefix(value, "record ") {
			t.Errorf("%s: offset %d holds %q once more, or it was never written", what, r.Offset, value)
		}
		seen[string(r.Value)] = true
	}
	for i, at := range append([]int64{0, 1, 2, 3, 4}, offsets...) {
		if at >= int64(len(read)) || string(read[at].Value) != value(i) || read[at].Offset != at {
			t.Errorf("%s: %s was acknowledged at offset %d and is not there; of %d records there are %d", what, value(i), at, crashBefore+len(offsets), len(read))
		}
	}
	if more := second.write(crashBefore+crashRecords, 1); len(more) != 1 {
		t.Errorf("%s: nothing can be written afterwards\n%s", what, second.log())
	}
	return hit, len(offsets)
}

func value(i int) string { return fmt.Sprintf("record %d %s", i, strings.Repeat("x", 100)) }

// crashed is one life of the broker.
type crashed struct {
	t     *testing.T
	addr  string
	dir   string
	cmd   *exec.Cmd
	calls *seccomp.Supervisor
	alive context.Context // ends with the process
}

// start the broker; with a trap, it is set before the program's first instruction.
func (c crashing) start(dir string, trap *seccomp.Trap) *crashed {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"broker"}
	for _, p := range []string{
		"node.id=1", "listeners=PLAINTEXT://" + c.addr, "log.dirs=" + filepath.Join(dir, "data"), "log.store=" + c.store, "log.flush.interval.messages=1", "log.segment.bytes=600",
		"log.index.interval.bytes=200", "replica.high.watermark.checkpoint.interval.ms=20", "ackproof.raft.tick.ms=10", "controller.quorum.election.timeout.ms=40", "broker.heartbeat.interval.ms=20",
	} {
		args = append(args, "--set", p)
	}
	b := &crashed{t: c.t, addr: c.addr, dir: dir, cmd: exec.Command(executable, args...)}
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if trap == nil {
		err = b.cmd.Start()
	} else {
		b.calls, err = seccomp.Start(b.cmd, seccomp.Options{Calls: seccomp.Calls(), Trap: *trap}, (*exec.Cmd).Start)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	alive, over := context.WithCancel(c.t.Context())
	b.alive = alive
	go func() {
		b.cmd.Wait()
		over()
	}()
	c.t.Cleanup(b.kill)
	return b
}

func (b *crashed) log() string {
	text, _ := os.ReadFile(filepath.Join(b.dir, "log"))
	return string(text[max(0, len(text)-4000):])
}

func (b *crashed) kill() {
	b.cmd.Process.Kill()
	<-b.alive.Done()
}

// stop the broker cleanly.
func (b *crashed) stop() {
	b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.alive.Done():
	case <-time.After(20 * time.Second):
		b.t.Errorf("the broker does not stop\n%s", b.log())
		b.kill()
	}
	if b.calls != nil {
		<-b.calls.Done()
	}
}

func (b *crashed) client(o ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic("ledger"), kgo.AllowAutoTopicCreation(), kgo.DisableIdempotentWrite(), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond })}, o...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return cl
}

// write n records from that number on, one after the other, while the broker lives; it gives the offsets of those that were acknowledged.
func (b *crashed) write(from, n int) (offsets []int64) {
	ctx, cancel := context.WithTimeout(b.alive, 20*time.Second)
	defer cancel()
	cl := b.client()
	defer cl.Close()
	for i := range n {
		r, err := cl.ProduceSync(ctx, kgo.StringRecord(value(from+i))).First()
		if err != nil {
			break
		}
		offsets = append(offsets, r.Offset)
	}
	return offsets
}

// read the whole partition. A topic that is not there has no records.
func (b *crashed) read() ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(b.alive, 20*time.Second)
	defer cancel()
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"ledger": {0: kgo.NewOffset().At(0)}}))
	defer cl.Close()
	var end int64
	for {
		ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "ledger")
		if at, ok := ends.Lookup("ledger", 0); err == nil && ok && at.Err == nil {
			end = at.Offset
			break
		}
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("the end of the log was not told (%v)", ends), err)
		}
		time.Sleep(5 * time.Millisecond) // until it leads
	}
	var out []*kgo.Record
	for int64(len(out)) < end {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return out, fmt.Errorf("%d of %d records came: %w", len(out), end, ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) { out = append(out, r) })
	}
	return out, nil
}
