// Differ asks the reference broker and Kafka the same things, request by request, in every version that both have, and compares what they answer field by field.
//
//	cd conformance && go run ./differ                                    # against what Kafka 4.4 has answered, kept in kafka.txt
//	cd conformance && go run ./differ -kafka 127.0.0.1:9092              # against a Kafka cluster of three brokers
//	cd conformance && go run ./differ -kafka 127.0.0.1:9092 -record      # and keep its answers
//	cd conformance && go run ./differ -kfake                             # also against kfake, franz-go's own imitation
//
// Every difference needs a reason in judged.txt; a difference without one is a failure, and so is a reason without a difference. Exit codes: 0 none, 1 some, 3 it
// could not run.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"ackproof/conformance/local"
)

type options struct {
	ackproof, ours, kafka string
	kfake, record         bool
	cases, page           string
	verbose               bool
}

func main() {
	var o options
	flag.StringVar(&o.ackproof, "ackproof", "", "binary to start the broker with (default: built from the folder above)")
	flag.StringVar(&o.ours, "bootstrap", "", "a running cluster of the reference broker, three brokers")
	flag.StringVar(&o.kafka, "kafka", "", "a running cluster of Kafka, three brokers (default: its recorded answers)")
	flag.BoolVar(&o.record, "record", false, "keep Kafka's answers in differ/kafka.txt")
	flag.BoolVar(&o.kfake, "kfake", false, "ask kfake too, and tell where it differs from the reference broker")
	flag.StringVar(&o.cases, "cases", "", "cases whose names begin so (default: all)")
	flag.StringVar(&o.page, "write", "", "put the table of differences into this page, between its marks")
	flag.BoolVar(&o.verbose, "v", false, "show the differences that are judged, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	open, err := run(ctx, o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(3)
	case open > 0:
		os.Exit(1)
	}
}

// run gives the number of differences without a reason and reasons without a difference.
func run(ctx context.Context, o options) (open int, err error) {
	if o.ours == "" {
		stop, err := start(ctx, &o)
		if err != nil {
			return 0, err
		}
		defer stop()
	}
	ours, err := meet(ctx, "ackproof", o.ours)
	if err != nil {
		return 0, err
	}
	kafka, err := recorded()
	if o.kafka != "" {
		if kafka, err = meet(ctx, "Kafka", o.kafka); err == nil {
			err = askAll(ctx, kafka, ours, o.cases)
		}
	}
	if err == nil {
		err = askAll(ctx, ours, kafka, o.cases)
	}
	if err != nil {
		return 0, err
	}
	if o.record {
		if err := record(kafka); err != nil {
			return 0, err
		}
	}
	reasons, err := readReasons()
	if err != nil {
		return 0, err
	}
	all := compare(ours, kafka, o.cases)
	for _, d := range all {
		d.reason = reasons.of(d)
		if d.reason == "" {
			open++
		}
		if d.reason == "" || o.verbose {
			fmt.Println(d)
		}
	}
	if o.cases == "" {
		for _, r := range reasons {
			if !r.used {
				open++
				fmt.Printf("judged.txt: nothing differs there any more: %s\n", r.pattern)
			}
		}
	}
	fmt.Printf("Kafka: %d fields of %d answers compared, %d differ, %d without a reason or the other way round\n", len(ours.asked), answers(ours), len(all), open)
	if o.page != "" {
		slices.SortStableFunc(all, func(x, y *difference) int {
			return cmp.Or(cmp.Compare(x.which, y.which), cmp.Compare(x.reason, y.reason))
		})
		if err := writePage(o.page, all); err != nil {
			return open, err
		}
	}
	if o.kfake {
		err = askKfake(ctx, ours, kafka, o)
	}
	return open, err
}

// start runs a cluster of three brokers.
func start(ctx context.Context, o *options) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "differ-")
	if err != nil {
		return nil, err
	}
	if o.ackproof == "" {
		o.ackproof = filepath.Join(dir, "ackproof")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.ackproof, "./cmd/ackproof")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("build: %w: %s", err, out), os.RemoveAll(dir))
		}
	}
	c, err := local.Start(o.ackproof, dir, "default.replication.factor=3", "min.insync.replicas=2", "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	o.ours = c.Bootstrap
	return func() {
		if err := errors.Join(c.Stop(), os.RemoveAll(dir)); err != nil {
			fmt.Fprintln(os.Stderr, "differ: note:", err)
		}
	}, nil
}

// testCase is a conversation about one API.
type testCase struct {
	name string
	key  int16
	talk func(*talk)
}

func cases() []testCase { return slices.Concat(dataCases, adminCases, groupCases, badCases) }

// askAll goes through the cases, each in every version that s and the other system have.
func askAll(ctx context.Context, s, other *system, prefix string) error {
	for _, c := range cases() {
		if !strings.HasPrefix(c.name, prefix) {
			continue
		}
		mine, ok := s.serves[c.key]
		theirs, both := other.serves[c.key]
		if !ok || !both {
			continue
		}
		for v := max(mine.min, theirs.min); v <= min(mine.max, theirs.max); v++ {
			if err := ask(ctx, s, other, c, v); err != nil {
				return fmt.Errorf("%s: %s, version %d: %w", s.name, c.name, v, err)
			}
		}
	}
	return nil
}

func ask(ctx context.Context, s, peer *system, c testCase, v int16) (err error) {
	// The time tells it from the names of an earlier run; answers do not show it.
	name := fmt.Sprintf("differ-%s-%d-%d", strings.ReplaceAll(c.name, " ", "-"), v, time.Now().UnixNano())
	t := &talk{system: s, peer: peer, ctx: ctx, which: c.name, v: v, key: c.key, topic: name, group: name + "-group"}
	t.conns = map[int32]net.Conn{}
	defer t.close()
	defer func() {
		switch e := recover().(type) {
		case nil:
		case errSystem:
			err = e
		default:
			panic(e)
		}
	}()
	c.talk(t)
	return ctx.Err()
}

// askKfake tells where kfake differs from the reference broker, and who is with Kafka there.
func askKfake(ctx context.Context, ours, kafka *system, o options) error {
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.BrokerConfigs(map[string]string{"min.insync.replicas": "2"}))
	if err != nil {
		return err
	}
	defer fake.Close()
	s, err := meet(ctx, "kfake", strings.Join(fake.ListenAddrs(), ","))
	if err != nil {
		return err
	}
	for _, c := range cases() {
		bad := slices.ContainsFunc(badCases, func(b testCase) bool { return b.name == c.name }) // they end the process of kfake, and that is this one
		if strings.HasPrefix(c.name, o.cases) && !bad {
			if err := askAll(ctx, s, ours, c.name); err != nil {
				fmt.Println("kfake cannot be asked:", err)
			}
		}
	}
	truth := index(kafka)
	lone, alone := 0, 0
	for _, d := range compare(ours, s, o.cases) {
		switch want := truth[key{d.at, d.versions[0]}]; {
		case want == d.ours:
			alone++
		case want == d.theirs:
			lone++
			fmt.Println("kfake is with Kafka:", d)
		}
	}
	fmt.Printf("kfake: it differs from the reference broker and from Kafka in %d places, together with Kafka in %d\n", alone, lone)
	return nil
}
