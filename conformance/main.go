// Conformance runs existing Kafka clients against the reference broker: what applications do with a client, once in peace and once with a broker killed in
// the middle. It prints a table of clients and scenarios.
//
//	cd conformance && go run . [-clients franz-go,kcat] [-scenarios produce,…] [-kills=false]
//
// It is a module of its own, so that the libraries of all these clients stay out of the broker's. It drives the broker through its command line, and each
// client through a program (package program, folder clients) that reports what it sees; the scenarios and the judgement are here, with a client of their own.
// Exit codes: 0 all passed, 1 something failed, 3 it could not run.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"ackproof/conformance/local"
)

// scenarioTime bounds one scenario, so that what hangs becomes a message. Most take seconds; on a machine that is busy with other things each start of a
// virtual machine takes ten, and the console's rebalance needs eight of them.
const scenarioTime = 4 * time.Minute

type options struct {
	binary, bootstrap  string
	clients, scenarios string
	parallel           int
	keep               bool
	write              string
	kills              bool
	run                string // tells the names of this run's topics from another's
}

func main() {
	var o options
	flag.StringVar(&o.clients, "clients", "", "clients to run, with commas between them (default: all)")
	flag.StringVar(&o.scenarios, "scenarios", "", "scenarios whose names begin so, with commas between them (default: all)")
	flag.StringVar(&o.binary, "ackproof", "", "binary to start the broker with (default: built from the folder above)")
	flag.StringVar(&o.bootstrap, "bootstrap", "", "run against this cluster instead, without killing anything; kfake: against franz-go's imitation of one")
	flag.IntVar(&o.parallel, "parallel", 1, "clients that run at the same time, each with a cluster of its own")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with logs and data")
	flag.BoolVar(&o.kills, "kills", true, "do everything again with a broker killed")
	flag.StringVar(&o.write, "write", "", "put the tables into this page, between its marks; columns of clients that did not run stay as they are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx, o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(3)
	case !passed:
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (passed bool, err error) {
	if o.write != "" && (o.scenarios != "" || !o.kills || o.bootstrap != "") {
		return false, errors.New("-write needs a run of all scenarios, on a cluster of its own")
	}
	chosen, err := choose(o.clients)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return false, err
	}
	defer func() {
		if o.keep {
			fmt.Fprintln(os.Stderr, "kept:", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if o.bootstrap == "kfake" {
		fake, err := kfake.NewCluster(kfake.NumBrokers(3))
		if err != nil {
			return false, err
		}
		defer fake.Close()
		o.bootstrap = strings.Join(fake.ListenAddrs(), ",")
	}
	if o.binary == "" && o.bootstrap == "" {
		o.binary = filepath.Join(dir, "ackproof")
		if err := tool(ctx, "..", "go", "build", "-o", o.binary, "./cmd/ackproof"); err != nil {
			return false, err
		}
	}
	o.run = strconv.FormatInt(time.Now().Unix(), 36)
	results := make([]result, len(chosen))
	var all sync.WaitGroup
	slots := make(chan struct{}, max(1, o.parallel))
	for i, c := range chosen {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = runClient(ctx, o, c, filepath.Join(dir, c.name))
		})
	}
	all.Wait()
	printTable(os.Stdout, results)
	if o.write != "" && ctx.Err() == nil {
		if err := writePage(o.write, results); err != nil {
			return false, err
		}
	}
	passed = true
	for _, r := range results {
		if r.err != nil {
			return false, r.err
		}
		passed = passed && r.passed()
	}
	return passed, nil
}

func choose(names string) ([]client, error) {
	if names == "" {
		return clients, nil
	}
	var chosen []client
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no client %q; there are %s", name, strings.Join(clientNames(), ", "))
		}
		chosen = append(chosen, clients[i])
	}
	return chosen, nil
}

func clientNames() (names []string) {
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// result is all that came out for one client.
type result struct {
	client client
	// cells are the outcomes by scenario, in peace and with a broker killed.
	cells map[string][2]cell
	err   error // it could not run at all
	// version is the library's; used are the versions of each API that it sent, served the ones that the broker offered.
	version string
	used    map[int16]*api
	served  map[int16]versions
}

// cell is the outcome of one scenario.
type cell struct {
	state  state
	reason string // why it failed, or was left out
	took   time.Duration
}

type state int

const (
	notRun state = iota // not asked for
	pass
	fail
	lacking // the client cannot do that
)

func (r result) passed() bool {
	for _, pair := range r.cells {
		if pair[0].state == fail || pair[1].state == fail {
			return false
		}
	}
	return true
}

// runClient takes one client through all scenarios, on a cluster of its own.
func runClient(ctx context.Context, o options, c client, dir string) (r result) {
	r = result{client: c, cells: map[string][2]cell{}}
	if r.err = os.MkdirAll(dir, 0o755); r.err != nil {
		return r
	}
	command, err := c.prepare(ctx, dir)
	if err != nil {
		r.err = fmt.Errorf("prepare %s: %w", c.name, err)
		return r
	}
	var target *local.Cluster // none if somebody else runs it: its brokers cannot be killed
	bootstrap := o.bootstrap
	if o.bootstrap == "" {
		target, err = local.Start(o.binary, dir,
			"ackproof.log.level=debug", // logs which version of which API each client uses
			// Kafka's defaults make groups wait for members that might come, and members for their next heartbeat.
			"group.initial.rebalance.delay.ms=0", "group.consumer.heartbeat.interval.ms=500",
			// A Java consumer of KIP-848 says once that it leaves. If the coordinator moves in that moment it is a member until its session ends, by default after 45 s.
			"group.consumer.session.timeout.ms=6000")
		if err != nil {
			r.err = err
			return r
		}
		bootstrap = target.Bootstrap
		defer func() {
			// How a cluster ends is no matter between client and broker: it is told, and decides nothing.
			if err := target.Stop(); err != nil {
				fmt.Fprintf(os.Stderr, "%-12s note: %v\n", c.name, err)
			}
			if r.err == nil {
				r.used, r.err = usedVersions(dir)
			}
		}()
	}
	j, err := newJudge(bootstrap)
	if err != nil {
		r.err = err
		return r
	}
	defer j.Close()
	if r.served, r.err = j.served(ctx); r.err != nil {
		return r
	}
	for _, kills := range []bool{false, true} {
		for i, sc := range scenarios {
			if ctx.Err() != nil || !wanted(o.scenarios, sc.name) || kills && (!o.kills || target == nil) {
				continue
			}
			got := cell{state: lacking, reason: sc.lacks(c)}
			if got.reason == "" {
				s := &stage{judge: j, cluster: target, client: c, command: command, kills: kills, binary: o.binary, dir: dir, name: fmt.Sprintf("%s-%d-%t-%s", c.name, i, kills, o.run)}
				got = s.play(ctx, sc)
				r.version = cmp.Or(s.version, r.version)
				fmt.Fprintf(os.Stderr, "%-12s %-20s %-6s %-4s %5.1f s %s\n", c.name, sc.name, map[bool]string{true: "killed"}[kills], got.state, got.took.Seconds(), got.reason)
			}
			pair := r.cells[sc.name]
			pair[map[bool]int{true: 1}[kills]] = got
			r.cells[sc.name] = pair
		}
	}
	return r
}

func wanted(prefixes, name string) bool {
	return slices.ContainsFunc(strings.Split(prefixes, ","), func(p string) bool { return strings.HasPrefix(name, p) })
}

// play runs one scenario within its time; whatever it started is gone afterwards.
func (s *stage) play(ctx context.Context, sc scenario) cell {
	if s.kills {
		s.cluster.Rest(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(sc.time, scenarioTime))
	defer cancel()
	s.Context = bounded
	began := time.Now()
	err := sc.run(s)
	if err == nil && s.kills {
		err = s.whole(s, len(s.bootstrap))
	}
	got := cell{state: pass, took: time.Since(began)}
	if err != nil {
		got.state, got.reason = fail, err.Error()
	}
	return got
}
