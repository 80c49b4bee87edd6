package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ackproof/systems/process"
)

// nodes of either cluster.
const nodes = 3

// maker makes clusters of one side.
type maker interface {
	// start makes a new cluster, with nothing in it, whose brokers are taken for dead after the session; 0 if none of them will be killed. It returns when its processes run or listen: what
	// is ready, the caller asks the protocol. errRuns if there is only one cluster, that runs, and the session is not 0.
	start(ctx context.Context, session time.Duration) (*cluster, error)
}

// errRuns: a part needs a cluster of its own.
var errRuns = errors.New("the cluster was started elsewhere; parts that start or kill nodes need --kafka-up")

// cluster is a cluster under measurement.
type cluster struct {
	bootstrap []string
	stop      func() error
}

// defaultSession is Kafka's and the reference broker's own default of broker.session.timeout.ms.
const defaultSession = 9 * time.Second

// heartbeatOf is a heartbeat that fits the session; Kafka's default fits its own.
func heartbeatOf(session time.Duration) time.Duration { return min(2*time.Second, session/4) }

// build makes the command ackproof of the module that this program belongs to.
func build(ctx context.Context, executable string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", executable, "ackproof/cmd/ackproof").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the command ackproof (or give one with --ackproof): %w\n%s", err, out)
	}
	return nil
}

// reference makes clusters of the reference broker: processes that nobody starts again when they are killed.
type reference struct {
	executable string
	dir        string
	made       int
	profile    bool     // the nodes serve profiles ...
	profiles   []string // ... at these addresses
}

func (r *reference) start(ctx context.Context, session time.Duration) (*cluster, error) {
	session = cmp.Or(session, defaultSession)
	r.made++
	dir := filepath.Join(r.dir, fmt.Sprint(r.made))
	host := process.NewLoopback()
	var addresses, voters []string
	r.profiles = nil
	for id := 1; id <= nodes; id++ {
		at, err := host.Address(id, 0)
		if err != nil {
			return nil, err
		}
		if r.profile {
			profiles, err := host.Address(id, 1)
			if err != nil {
				return nil, err
			}
			r.profiles = append(r.profiles, profiles)
		}
		addresses, voters = append(addresses, at), append(voters, fmt.Sprintf("%d@%s", id, at))
	}
	var all []*process.Node
	c := &cluster{bootstrap: addresses, stop: func() error {
		var running errgroup.Group
		for _, n := range all {
			running.Go(n.Stop)
		}
		return errors.Join(running.Wait(), os.RemoveAll(dir))
	}}
	for id := 1; id <= nodes; id++ {
		argv := []string{r.executable, "broker"}
		for _, property := range []string{
			fmt.Sprintf("node.id=%d", id), "listeners=PLAINTEXT://" + addresses[id-1], "controller.quorum.voters=" + strings.Join(voters, ","),
			"log.dirs=" + filepath.Join(dir, fmt.Sprint(id), "data"), "ackproof.exit.with.parent=true",
			"default.replication.factor=3", "min.insync.replicas=2",
			fmt.Sprintf("broker.session.timeout.ms=%d", session.Milliseconds()), fmt.Sprintf("broker.heartbeat.interval.ms=%d", heartbeatOf(session).Milliseconds()),
		} {
			argv = append(argv, "--set", property)
		}
		if r.profile {
			argv = append(argv, "--set", "ackproof.pprof.listen="+r.profiles[id-1])
		}
		n, err := process.New(process.Spec{ID: id, Addr: addresses[id-1], Dir: filepath.Join(dir, fmt.Sprint(id)), Argv: argv, Host: host})
		if err == nil {
			all = append(all, n)
			err = n.Start(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, nil
}

// scripted makes clusters by the user's commands.
type scripted struct {
	up, down string
	log      io.Writer
}

func (s *scripted) start(ctx context.Context, session time.Duration) (*cluster, error) {
	session = cmp.Or(session, defaultSession)
	var out bytes.Buffer
	if err := s.shell(ctx, s.up, session, &out); err != nil {
		return nil, errors.Join(fmt.Errorf("--kafka-up: %w", err), s.shell(context.WithoutCancel(ctx), s.down, session, s.log))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	c := &cluster{bootstrap: listOf(lines[len(lines)-1])}
	c.stop = func() error {
		if err := s.shell(context.WithoutCancel(ctx), s.down, session, s.log); err != nil {
			return fmt.Errorf("--kafka-down: %w", err)
		}
		return nil
	}
	if len(c.bootstrap) == 0 {
		return nil, errors.Join(errors.New("--kafka-up: the last line of its output is empty, expected host:port[,host:port…]"), c.stop())
	}
	return c, nil
}

func (s *scripted) shell(ctx context.Context, command string, session time.Duration, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), fmt.Sprintf("ACKPROOF_SESSION_MS=%d", session.Milliseconds()), fmt.Sprintf("ACKPROOF_HEARTBEAT_MS=%d", heartbeatOf(session).Milliseconds()))
	cmd.Stdout, cmd.Stderr = out, s.log
	cmd.WaitDelay = time.Second // what it leaves running may keep its output open
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// running is a cluster that somebody else started.
type running struct{ addresses []string }

func (r *running) start(_ context.Context, session time.Duration) (*cluster, error) {
	if session != 0 {
		return nil, errRuns
	}
	return &cluster{bootstrap: r.addresses, stop: func() error { return nil }}, nil
}
