// Kcat is the client program of kcat (librdkafka in C): it runs kcat as a person at a shell would, and turns what it prints into events.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ackproof/conformance/program"
)

func main() {
	version, err := exec.Command("kcat", "-V").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kcat:", err)
		os.Exit(1)
	}
	found := regexp.MustCompile(`Version (\S+) .*librdkafka (\S+)`).FindStringSubmatch(string(version))
	if found == nil {
		found = []string{"", "unknown", "unknown"}
	}
	program.Main(program.Client{
		Version: fmt.Sprintf("%s, librdkafka %s", found[1], found[2]),
		Produce: produce, Consume: consume, Seek: seek,
	})
}

// kcat is a run of it.
type kcat struct {
	*exec.Cmd
	lines   sync.WaitGroup
	mu      sync.Mutex
	trouble []string // what it said that was not understood
}

func command(job program.Job, args ...string) *kcat {
	return &kcat{Cmd: exec.Command("kcat", append([]string{"-b", strings.Join(job.Bootstrap, ","), "-X", "client.id=client"}, args...)...)}
}

// start runs it; taken is called for each line on its standard output, said for each on standard error, and tells whether it understood it.
func (k *kcat) start(taken func(string), said func(string) bool) error {
	stdout, err := k.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := k.StderrPipe()
	if err != nil {
		return err
	}
	if err := k.Start(); err != nil {
		return err
	}
	each := func(r io.Reader, do func(string)) {
		k.lines.Go(func() {
			for s := bufio.NewScanner(r); s.Scan(); {
				do(s.Text())
			}
		})
	}
	each(stdout, taken)
	each(stderr, func(line string) {
		if !said(line) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.trouble = append(k.trouble, line)
		}
	})
	return nil
}

func (k *kcat) wait() error {
	k.lines.Wait()
	if err := k.Wait(); err != nil {
		return fmt.Errorf("%v: %w: %s", k.Args, err, strings.Join(k.trouble[max(0, len(k.trouble)-5):], "; "))
	}
	return nil
}

var delivered = regexp.MustCompile(`^% Message delivered to partition (\d+) \(offset (\d+)\)`)

func produce(_ context.Context, job program.Job) error {
	k := command(job, "-P", "-t", job.Topic, "-K", ":", "-vvv", "-z", job.Compression, "-X", "topic.produce.offset.report=true",
		"-X", "enable.idempotence="+strconv.FormatBool(job.Idempotent), "-X", "linger.ms=20")
	stdin, err := k.StdinPipe()
	if err != nil {
		return err
	}
	err = k.start(func(string) {}, func(line string) bool {
		at := delivered.FindStringSubmatch(line)
		if at != nil {
			program.Emit(program.Event{Event: "acked", Partition: int32(number(at[1])), Offset: number(at[2])}) // it does not say which record that was
		}
		return at != nil
	})
	if err != nil {
		return err
	}
	for i := job.From; i < job.From+job.Count; i++ {
		if _, err := fmt.Fprintf(stdin, "%s:%s\n", program.Key(i), program.Value(i)); err != nil {
			break // it has ended, as wait tells
		}
		time.Sleep(job.Pace)
	}
	stdin.Close()
	return k.wait()
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the expression took digits only
	return n
}

// record reports a line of format "%p %o %s\n".
func record(line string) {
	partition, rest, _ := strings.Cut(line, " ")
	offset, value, _ := strings.Cut(rest, " ")
	program.Emit(program.Event{Event: "record", Partition: int32(number(partition)), Offset: number(offset), Value: value})
}

var (
	rebalanced = regexp.MustCompile(`rebalanced.*?(incremental assignment|incremental revoke|assigned|revoked)`)
	held       = regexp.MustCompile(` \[(\d+)\]`)
)

func consume(ctx context.Context, job program.Job) error {
	// The group's name and the topic are arguments, not flags, and come last.
	args := []string{
		"-f", `%p %o %s\n`, "-u", "-X", "auto.offset.reset=earliest", "-X", "partition.assignment.strategy=" + job.Assignor,
		"-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", "-X", "auto.commit.interval.ms=200",
	}
	if job.Count > 0 {
		args = append(args, "-c", strconv.Itoa(job.Count))
	}
	k := command(job, append(args, "-G", job.Group, job.Topic)...)
	var mine []int32
	err := k.start(record, func(line string) bool {
		what := rebalanced.FindStringSubmatch(line)
		if what == nil {
			return strings.HasPrefix(line, "% Waiting for") || strings.HasPrefix(line, "% Reached end")
		}
		var named []int32
		for _, p := range held.FindAllStringSubmatch(line, -1) {
			named = append(named, int32(number(p[1])))
		}
		switch what[1] {
		case "assigned":
			mine = named
		case "incremental assignment":
			mine = append(mine, named...)
		default:
			mine = slices.DeleteFunc(mine, func(p int32) bool { return slices.Contains(named, p) })
		}
		program.Emit(program.Event{Event: "assigned", Partitions: slices.Sorted(slices.Values(mine))})
		return true
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { k.Process.Signal(syscall.SIGTERM) })()
	return k.wait()
}

var found = regexp.MustCompile(`\[(\d+)\] offset (-?\d+)`)

func seek(ctx context.Context, job program.Job) error {
	at := strconv.FormatInt(job.Time.UnixMilli(), 10)
	var args []string
	for p := range 6 {
		args = append(args, "-t", fmt.Sprintf("%s:%d:%s", job.Topic, p, at))
	}
	err := program.Patiently(ctx, "offsets by time", func() error {
		k := command(job, append([]string{"-Q"}, args...)...)
		var offsets []program.Event
		err := k.start(func(line string) {
			if o := found.FindStringSubmatch(line); o != nil {
				offsets = append(offsets, program.Event{Event: "offset", Partition: int32(number(o[1])), Offset: number(o[2])})
			}
		}, func(string) bool { return false })
		if err == nil {
			err = k.wait()
		}
		if err != nil {
			return err
		}
		for _, o := range offsets {
			program.Emit(o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	k := command(job, "-C", "-t", job.Topic, "-o", "s@"+at, "-c", strconv.Itoa(job.Count), "-u", "-f", `%p %o %s\n`)
	if err := k.start(record, func(string) bool { return false }); err != nil {
		return err
	}
	return k.wait()
}
