package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ackproof/bench"
)

// profiled is how long the nodes' profiles last, within a load that lasts longer.
const profiled = 10 * time.Second

// hop is a step that every record takes, told by the functions in whose stacks it shows.
type hop struct {
	name string
	in   []string // all of them
}

// hops of produced and replicated records, and of consumed ones. The first that fits a stack has it.
var hops = []hop{
	{"leader: checksum", []string{"producePartition", "hash/crc32"}},
	{"leader: write to the log", []string{"producePartition", "segment.(*Log).Append"}},
	{"leader: read from the producer's socket", []string{"wire.(*FrameReader)", "wire.(*Server).read"}},
	{"consumers: sendfile", []string{"wire.sendChunk"}},
	{"leader: send to followers, and answers", []string{"wire.(*outgoing).writeTo"}},
	{"followers: read from the leader's socket", []string{"wire.(*FrameReader)", "node.(*fetcher).fetch"}},
	{"followers: checksum", []string{"host.Answered"}},
	{"followers: write to the log", []string{"node.(*fetcher).take", "segment.(*Log).Append"}},
	{"everything else of the broker", []string{"ackproof/broker/"}},
	{"Go's runtime: scheduling, timers, collection of garbage", nil},
}

func (h hop) fits(stack string) bool {
	for _, f := range h.in {
		if !strings.Contains(stack, f) {
			return false
		}
	}
	return true
}

// measureHops profiles the nodes of a cluster of ours under the 1 KiB load and gives each hop its share of the processor time that the kernel has counted.
func measureHops(ctx context.Context, c *comparison) error {
	c.ours.profile = true
	defer func() { c.ours.profile = false }()
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("longer than the limit of %v", c.limit))
	defer cancel()
	cl, err := c.upAndEmpty(ctx, ours)
	if err != nil {
		return err
	}
	return errors.Join(c.profileLoad(ctx, cl), cl.stop())
}

func (c *comparison) profileLoad(ctx context.Context, cl *cluster) error {
	pids, err := listeners(cl.bootstrap)
	if err != nil {
		return err
	}
	config := bench.Config{
		Bootstrap: cl.bootstrap, Servers: pids, Partitions: logsPerNode, Replication: nodes, Acks: -1, Size: 1024, Clients: 1,
		Warmup: 200_000, Records: int64(6_000_000 * c.scale),
	}
	var result bench.Result
	var files []string
	running, loading := errgroup.WithContext(ctx)
	begun := make(chan struct{})
	running.Go(func() (err error) {
		result, err = bench.Run(loading, config, func(phase string, done, _ int64) {
			if phase == "produce" && done > 0 {
				select {
				case <-begun:
				default:
					close(begun)
				}
			}
		})
		return err
	})
	for i, at := range c.ours.profiles {
		file := filepath.Join(c.ours.dir, fmt.Sprintf("cpu-%d.pb.gz", i))
		files = append(files, file)
		running.Go(func() error {
			select {
			case <-begun:
				return saveProfile(loading, at, file)
			case <-loading.Done():
				return context.Cause(loading)
			}
		})
	}
	if err := running.Wait(); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof", "-traces", "-unit=ms", "-symbolize=none"}, files...)...).Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	shares, err := attribute(strings.NewReader(string(out)))
	if err != nil {
		return err
	}
	for i, h := range hops {
		c.table.add(measure{name: h.name, unit: "s/GB", less: true, decimal: 2}, ours, shares[i]**result.Produce.ServerCPUPerGB)
	}
	return nil
}

// saveProfile asks a node for a profile.
func saveProfile(ctx context.Context, address, file string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, profiled/time.Second), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile of %s: %s", address, resp.Status)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("profile of %s: %w", address, err)
	}
	return os.WriteFile(file, raw, 0o644)
}

// attribute reads the stacks that `go tool pprof -traces` prints, a time in ms before the innermost function of each, and gives the hops' shares of all the time.
func attribute(traces io.Reader) ([]float64, error) {
	shares := make([]float64, len(hops))
	var all, time float64
	var stack strings.Builder
	end := func() {
		for i, h := range hops {
			if time > 0 && h.fits(stack.String()) {
				shares[i] += time
				break
			}
		}
		all += time
		time = 0
		stack.Reset()
	}
	lines := bufio.NewScanner(traces)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----------+") {
			end()
			continue
		}
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if ms, ok := strings.CutSuffix(fields[0], "ms"); ok && len(fields) > 1 {
			if v, err := strconv.ParseFloat(ms, 64); err == nil {
				time, fields = v, fields[1:]
			}
		}
		stack.WriteString(fields[0] + "\n")
	}
	end()
	if all == 0 {
		return nil, errors.New("the profiles have no samples")
	}
	for i := range shares {
		shares[i] /= all
	}
	return shares, lines.Err()
}
