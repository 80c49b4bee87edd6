package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/conformance/local"
)

func withoutDump(c client) string {
	if c.name == "console" {
		return ""
	}
	return "it is one of the console tools"
}

// dump: Kafka's DumpLogSegments reads the files of a broker, while it runs or, with kills, as kill -9 has left them in the midst of writing: every record of every
// batch is where a consumer finds it, and the indexes are sane and agree with the logs.
func (s *stage) dump() error {
	dir := filepath.Join(s.dir, fmt.Sprintf("dump-%t", s.kills))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	c, err := local.Start(s.binary, dir, "log.store=segment", "log.segment.bytes=16384", "log.index.interval.bytes=1024")
	if err != nil {
		return err
	}
	defer c.Stop()
	j, err := newJudge(c.Bootstrap)
	if err != nil {
		return err
	}
	defer j.Close()
	const topic, each = "dump", 4000
	if err := j.topic(s, topic); err != nil {
		return err
	}
	for i, codec := range codecs {
		if err := j.write(s, topic, i*each, each, time.Now(), 0, codec.codec); err != nil {
			return err
		}
	}
	wrote := make(chan error, 1)
	folder := filepath.Join(dir, "broker-1", "data")
	if s.kills {
		go func() {
			wrote <- j.write(s, topic, len(codecs)*each, each, time.Now(), time.Millisecond, kgo.NoCompression())
		}()
		time.Sleep(time.Second) // some of the writing
		if err := c.Kill(s, 1); err != nil {
			return err
		}
		left := filepath.Join(dir, "left")
		if err := os.CopyFS(left, os.DirFS(folder)); err != nil { // before it is started again
			return err
		}
		folder = left
		if err := <-wrote; err != nil {
			return err
		}
	} else if err := j.whole(s, 3); err != nil {
		return err
	}
	log, err := j.readAll(s, topic)
	if err != nil {
		return err
	}
	if err := complete("stored", events(log), 0, len(log), true); err != nil {
		return err
	}
	stored := map[int32]map[int64]string{}
	for _, r := range log {
		if stored[r.Partition] == nil {
			stored[r.Partition] = map[int64]string{}
		}
		stored[r.Partition][r.Offset] = string(r.Value)
	}
	for p := range int32(partitions) {
		if err := s.dumpPartition(filepath.Join(folder, fmt.Sprintf("%s-%d", topic, p)), stored[p]); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return nil
}

var dumped = regexp.MustCompile(`(?m)^\| offset: (\d+) .* payload: (.*)$`)

// dumpPartition compares what the tool finds in a partition's folder with what a consumer was given.
func (s *stage) dumpPartition(folder string, stored map[int64]string) error {
	files := func(endings ...string) (string, error) {
		var all []string
		for _, e := range endings {
			found, err := filepath.Glob(filepath.Join(folder, "*"+e))
			if err != nil || len(found) == 0 {
				return "", fmt.Errorf("no files %s in %s (%v)", e, folder, err)
			}
			all = append(all, found...)
		}
		slices.Sort(all)
		return strings.Join(all, ","), nil
	}
	logs, err := files(".log")
	if err != nil {
		return err
	}
	text, err := s.dumpLogSegments("--files", logs, "--deep-iteration", "--print-data-log")
	if err != nil {
		return err
	}
	if strings.Contains(text, "isvalid: false") {
		return fmt.Errorf("a batch is not valid: %s", excerpt(text, "isvalid: false"))
	}
	if i := strings.Index(text, "invalid bytes at the end"); i >= 0 && !s.kills {
		return fmt.Errorf("bytes behind the last batch: %s", excerpt(text, "invalid bytes at the end"))
	}
	found, highest := 0, int64(-1)
	for _, m := range dumped.FindAllStringSubmatch(text, -1) {
		offset, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return err
		}
		if stored[offset] != m[2] {
			// A killed leader may have written what nobody acknowledged; others hold that place now.
			if s.kills && offset > highest {
				break
			}
			return fmt.Errorf("offset %d is %.40q, a consumer was given %.40q", offset, m[2], stored[offset])
		}
		found, highest = found+1, max(highest, offset)
	}
	if !s.kills && found != len(stored) {
		return fmt.Errorf("%d records in the files, a consumer was given %d", found, len(stored))
	}
	if s.kills && found < len(stored)/2 {
		return fmt.Errorf("%d records in the files of the killed broker, a consumer was given %d", found, len(stored))
	}
	indexes, err := files(".index", ".timeindex")
	if err != nil {
		return err
	}
	sane, err := s.dumpLogSegments("--files", indexes, "--index-sanity-check")
	if err != nil {
		return err
	}
	full, empty, want := strings.Count(sane, "passed sanity check."), strings.Count(sane, " is empty."), strings.Count(indexes, ",")+1
	if full+empty != want || full < want/2 {
		return fmt.Errorf("%d of %d indexes are sane, %d are empty: %s", full, want, empty, sane)
	}
	_, err = s.dumpLogSegments("--files", indexes, "--verify-index-only")
	return err
}

// dumpLogSegments runs the tool. It tells of what does not fit together only in its text.
func (s *stage) dumpLogSegments(args ...string) (string, error) {
	command := slices.Concat(s.command[1:len(s.command)-1], []string{"org.apache.kafka.tools.DumpLogSegments"}, args)
	out, err := exec.CommandContext(s, s.command[0], command...).CombinedOutput()
	text := string(out)
	for _, bad := range []string{"Mismatches in", "Index timestamp mismatch", "Found timestamp mismatch", "Found out of order timestamp", "Exception"} {
		if err == nil && strings.Contains(text, bad) {
			err = errors.New(excerpt(text, bad))
		}
	}
	// Of each file that does not begin at offset 0 the tool says that -1 is followed by its first offset.
	for line := range strings.Lines(text) {
		if err == nil && strings.Contains(line, "is followed by") && !strings.HasPrefix(strings.TrimSpace(line), "-1 ") {
			err = errors.New(line)
		}
	}
	if err != nil {
		return text, fmt.Errorf("DumpLogSegments: %w: %s", err, text[:min(len(text), 500)])
	}
	return text, nil
}

// excerpt gives the text round a word.
func excerpt(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-300):min(len(text), i+300)]
}
