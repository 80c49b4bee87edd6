package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/conformance/local"
	"ackproof/conformance/program"
)

// scenario is something that applications do with a client. Each comes a second time with a broker killed in the middle.
type scenario struct {
	name string
	// lacks tells why a client cannot do it, "" if it can.
	lacks func(client) string
	run   func(*stage) error
	time  time.Duration // bound, if not scenarioTime
}

// stage is what one scenario works with.
type stage struct {
	context.Context
	*judge
	cluster *local.Cluster
	client  client
	command []string // of its program
	name    string   // of the scenario for this client: unique, so that its topics and groups are
	kills   bool
	// To start a cluster of its own: with what, and where.
	binary, dir string
	version     string // of the library, once its program has run
}

var scenarios = []scenario{
	{name: "produce", lacks: nothing, run: (*stage).produce},
	{name: "consume", lacks: nothing, run: func(s *stage) error { return s.consume("classic", s.client.assignors[0]) }},
	{name: "rebalance", lacks: nothing, run: (*stage).rebalanceClassic},
	{name: "resume", lacks: nothing, run: func(s *stage) error { return s.resume("classic") }},
	{name: "consume, KIP-848", lacks: withoutKIP848, run: func(s *stage) error { return s.consume("consumer", "") }},
	{name: "rebalance, KIP-848", lacks: withoutKIP848, run: func(s *stage) error { return s.rebalance("consumer", "") }},
	{name: "resume, KIP-848", lacks: withoutKIP848, run: func(s *stage) error { return s.resume("consumer") }},
	{name: "seek by time", lacks: nothing, run: (*stage).seek},
	{name: "admin", lacks: func(c client) string { return c.noAdmin }, run: (*stage).admin},
	{name: "TestGroupETL", lacks: withoutETL, run: (*stage).groupETL, time: 3 * time.Minute},
	{name: "DumpLogSegments", lacks: withoutDump, run: (*stage).dump, time: 3 * time.Minute},
}

func nothing(client) string { return "" }

func withoutETL(c client) string {
	if c.name == "franz-go" {
		return ""
	}
	return "it is a test of franz-go"
}

// groupETL runs franz-go's own test of groups: chains of groups, every balancer of both protocols, static members. Instead of a killed broker it has a chaos
// mode of its own, in which connections break.
func (s *stage) groupETL() error {
	cmd := exec.CommandContext(s, "go", "test", "-count=1", "-timeout=170s", "-run", "^TestGroupETL$", "github.com/twmb/franz-go/pkg/kgo")
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+strings.Join(s.bootstrap, ","), "KGO_TEST_RF=3", "KGO_TEST_RECORDS=50000")
	if s.kills {
		cmd.Env = append(cmd.Env, "KGO_TEST_CHAOS=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // go test and the test
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "ok  ") {
		err = errors.New("no test ran")
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out[max(0, len(out)-2000):])
	}
	return nil
}

func withoutKIP848(c client) string { return c.noKIP848 }

// start runs the client's program.
func (s *stage) start(verb string, args ...string) (*process, error) {
	p, err := start(s, s.command, append([]string{verb, "-bootstrap", strings.Join(s.bootstrap, ",")}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := p.until(s, "the program began", func(s seen) bool { return s.version != "" }); err != nil {
		return nil, err
	}
	s.version = p.look().version
	return p, nil
}

// codecs are all compressions, as programs are told, with their number in a batch's attributes.
var codecs = []struct {
	name   string
	number uint8
	codec  kgo.CompressionCodec
}{
	{"none", 0, kgo.NoCompression()}, {"gzip", 1, kgo.GzipCompression()}, {"snappy", 2, kgo.SnappyCompression()}, {"lz4", 3, kgo.Lz4Compression()}, {"zstd", 4, kgo.ZstdCompression()},
}

// produce: records reach the log as they were sent, in every compression; each once if the producer is idempotent.
func (s *stage) produce() error {
	if s.kills {
		return s.produceOne("gzip", 1, 1200, 2*time.Millisecond)
	}
	for _, c := range codecs {
		if slices.Contains(s.client.noCodecs, c.name) {
			continue
		}
		if err := s.produceOne(c.name, c.number, 200, 0); err != nil {
			return fmt.Errorf("compression %s: %w", c.name, err)
		}
	}
	return nil
}

func (s *stage) produceOne(codec string, number uint8, n int, pace time.Duration) error {
	topic := s.name + "-" + codec
	if err := s.topic(s, topic); err != nil {
		return err
	}
	args := []string{"-topic", topic, "-count", strconv.Itoa(n), "-compression", codec, "-pace", pace.String()}
	if s.client.idempotent {
		args = append(args, "-idempotent")
	}
	p, err := s.start("produce", args...)
	if err != nil {
		return err
	}
	if s.kills {
		if err := p.until(s, "a third was acknowledged", func(s seen) bool { return len(s.acked) >= n/3 }); err != nil {
			return err
		}
		if err := s.killLeader(topic); err != nil {
			return err
		}
		if got := len(p.look().acked); got == n {
			return fmt.Errorf("all was acknowledged before a broker was killed: nothing was tested")
		}
	}
	saw, err := p.wait()
	if err != nil {
		return err
	}
	log, err := s.readAll(s, topic)
	if err != nil {
		return err
	}
	if err := acknowledged(saw.acked, n); err != nil {
		return err
	}
	if err := complete("stored", events(log), 0, n, s.client.idempotent || !s.kills); err != nil {
		return err
	}
	if err := acksAgree(saw.acked, log); err != nil {
		return err
	}
	if s.kills {
		return nil // of a record alone in its batch some clients find that it is smaller as it is
	}
	for _, r := range log {
		if got := r.Attrs.CompressionType(); got != number {
			return fmt.Errorf("the record at offset %d of partition %d is stored with compression %d, expected %d", r.Offset, r.Partition, got, number)
		}
	}
	return nil
}

// consume: one member of a group is given every record, whatever its compression, and commits.
func (s *stage) consume(protocol, assignor string) error {
	topic, n := s.name, 500
	if err := s.topic(s, topic); err != nil {
		return err
	}
	if !s.kills {
		each := n / len(codecs)
		for i, c := range codecs {
			codec := c.codec
			if slices.Contains(s.client.noCodecs, c.name) {
				codec = kgo.NoCompression()
			}
			if err := s.write(s, topic, i*each, each, time.Now(), 0, codec); err != nil {
				return err
			}
		}
	}
	p, err := s.member(topic, protocol, assignor, n)
	if err != nil {
		return err
	}
	if s.kills {
		wrote := make(chan error, 1)
		go func() { wrote <- s.write(s, topic, 0, n, time.Now(), 5*time.Millisecond, kgo.GzipCompression()) }()
		if err := p.until(s, "a third was taken", func(s seen) bool { return len(s.taken) >= n/3 }); err != nil {
			return err
		}
		if err := s.killLeader(topic); err != nil {
			return err
		}
		if err := <-wrote; err != nil {
			return err
		}
		// A rebalance may hand records out again, so that the program's count says little.
		if err := p.until(s, "all was taken", func(s seen) bool { return complete("", s.taken, 0, n, false) == nil }); err != nil {
			return err
		}
		p.tell()
	}
	saw, err := p.wait()
	if err != nil {
		return err
	}
	if err := complete("taken", saw.taken, 0, n, !s.kills); err != nil {
		return err
	}
	return s.committedAll(n)
}

// member starts a consumer of the scenario's group; n of 0 lets it run until it is told to stop.
func (s *stage) member(topic, protocol, assignor string, n int) (*process, error) {
	if n > 0 && s.kills {
		n = 0
	}
	return s.start("consume", "-topic", topic, "-group", s.name, "-protocol", protocol, "-assignor", assignor, "-count", strconv.Itoa(n))
}

func (s *stage) committedAll(n int) error {
	sum, err := s.committed(s, s.name)
	if err != nil {
		return err
	}
	if sum != int64(n) {
		return fmt.Errorf("the group has committed offsets that sum up to %d, expected %d", sum, n)
	}
	return nil
}

// rebalanceClassic goes through every assignor that the client brings.
func (s *stage) rebalanceClassic() error {
	assignors := s.client.assignors
	if s.kills {
		assignors = assignors[:1]
	}
	name := s.name
	for _, a := range assignors {
		s.name = name + "-" + a
		if err := s.rebalance("classic", a); err != nil {
			return fmt.Errorf("assignor %s: %w", a, err)
		}
	}
	return nil
}

// rebalance: a second member takes its share and gives it back; nobody owns what another one owns, and no record is left out.
func (s *stage) rebalance(protocol, assignor string) error {
	topic, n := s.name, 100
	if err := s.topic(s, topic); err != nil {
		return err
	}
	wrote := 0
	write := func() error {
		wrote += n
		return s.write(s, topic, wrote-n, n, time.Now(), 0, kgo.NoCompression())
	}
	all := func(s seen) bool { return len(s.assigned) == partitions }
	a, err := s.member(topic, protocol, assignor, 0)
	if err != nil {
		return err
	}
	if err := a.until(s, "the first member held all partitions", all); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	b, err := s.member(topic, protocol, assignor, 0)
	if err != nil {
		return err
	}
	if err := s.shared(a, b); err != nil {
		return err
	}
	if s.kills {
		id, err := s.coordinator(s, s.name)
		if err != nil {
			return err
		}
		if err := s.kill(id); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	if s.kills {
		// The group is at rest again when both have what they had, or something like it.
		if err := s.shared(a, b); err != nil {
			return err
		}
	}
	if s.client.quietEnd != "" {
		taken := func(s seen) bool { return complete("", slices.Concat(s.taken, b.look().taken), 0, wrote, false) == nil }
		for !taken(a.look()) && s.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	b.tell()
	left, err := b.wait()
	if err != nil {
		return fmt.Errorf("the second member: %w", err)
	}
	if err := a.until(s, "the first member held all partitions again", all); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	var missing error
	everything := func(s seen) bool {
		missing = complete("taken by both together", slices.Concat(s.taken, left.taken), 0, wrote, false)
		return missing == nil
	}
	if err := a.until(s, "both together had taken every record", everything); err != nil {
		return fmt.Errorf("%w: %w", err, missing)
	}
	a.tell()
	if _, err := a.wait(); err != nil {
		return err
	}
	return s.committedAll(wrote)
}

// shared waits until two members hold all partitions, each some.
func (s *stage) shared(a, b *process) error {
	for {
		x, y := a.look().assigned, b.look().assigned
		both := slices.Sorted(slices.Values(slices.Concat(x, y)))
		if len(x) > 0 && len(y) > 0 && len(both) == partitions && len(slices.Compact(both)) == partitions {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-a.done:
			return fmt.Errorf("the first member ended while two shared the partitions: %v", a.err)
		case <-b.done:
			return fmt.Errorf("the second member ended while two shared the partitions: %v", b.err)
		case <-s.Done():
			return fmt.Errorf("two members never shared the partitions: the first holds %v, the second %v", x, y)
		}
	}
}

// resume: what a member has committed before it left is where the next one goes on, exactly.
func (s *stage) resume(protocol string) error {
	topic, n := s.name, 300
	if err := s.topic(s, topic); err != nil {
		return err
	}
	if err := s.write(s, topic, 0, n, time.Now(), 0, kgo.NoCompression()); err != nil {
		return err
	}
	var taken []program.Event
	for half := range 2 {
		if half == 1 && s.kills {
			id, err := s.coordinator(s, s.name)
			if err != nil {
				return err
			}
			if err := s.kill(id); err != nil {
				return err
			}
		}
		p, err := s.start("consume", "-topic", topic, "-group", s.name, "-protocol", protocol, "-assignor", s.client.assignors[0], "-count", strconv.Itoa(n/2))
		if err != nil {
			return err
		}
		saw, err := p.wait()
		if err != nil {
			return err
		}
		taken = append(taken, saw.taken...)
	}
	if err := complete("taken by both together", taken, 0, n, true); err != nil {
		return err
	}
	return s.committedAll(n)
}

// seek: a time leads to the first record of at least that time, in every partition.
func (s *stage) seek() error {
	topic, n := s.name, 240
	if err := s.topic(s, topic); err != nil {
		return err
	}
	begin := time.UnixMilli(1_700_000_000_000)
	if err := s.write(s, topic, 0, n, begin, 0, kgo.NoCompression()); err != nil {
		return err
	}
	if s.kills {
		if err := s.killLeader(topic); err != nil {
			return err
		}
	}
	// Half a second before the record in the middle.
	at := begin.Add(time.Duration(n/2)*time.Second - 500*time.Millisecond).UnixMilli()
	p, err := s.start("seek", "-topic", topic, "-time", strconv.FormatInt(at, 10), "-count", strconv.Itoa(n/2))
	if err != nil {
		return err
	}
	saw, err := p.wait()
	if err != nil {
		return err
	}
	found := map[int32]int64{}
	for _, o := range saw.offsets {
		found[o.Partition] = o.Offset
	}
	for i := range int32(partitions) {
		if got, want := found[i], int64(n/2/partitions); got != want {
			return fmt.Errorf("the time leads to offset %d of partition %d, expected %d", got, i, want)
		}
	}
	return complete("taken", saw.taken, n/2, n/2, true)
}

// admin: topics, configurations and groups are made, read, changed and deleted. The program itself checks each answer.
func (s *stage) admin() error {
	n, pace := 2, time.Duration(0)
	if s.kills {
		n, pace = 5, 500*time.Millisecond
	}
	p, err := s.start("admin", "-topic", s.name, "-count", strconv.Itoa(n), "-pace", pace.String())
	if err != nil {
		return err
	}
	if s.kills {
		if err := p.until(s, "a dozen calls were answered", func(s seen) bool { return len(s.calls) >= 12 }); err != nil {
			return err
		}
		id, err := s.controller(s)
		if err != nil {
			return err
		}
		if err := s.kill(id); err != nil {
			return err
		}
		select {
		case <-p.done:
			return fmt.Errorf("all calls were answered before a broker was killed: nothing was tested (%v)", p.err)
		default:
		}
	}
	saw, err := p.wait()
	if err != nil {
		return err
	}
	if len(saw.calls) == 0 {
		return fmt.Errorf("the program reported no call")
	}
	return s.noneBeginning(s, s.name+"-")
}

// killLeader kills the broker that leads partition 0.
func (s *stage) killLeader(topic string) error {
	id, err := s.leader(s, topic, 0)
	if err != nil {
		return err
	}
	return s.kill(id)
}

func (s *stage) kill(id int32) error { return s.cluster.Kill(s, id) }
