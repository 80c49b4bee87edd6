package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/wire"
)

const (
	localReadyTime = 30 * time.Second // until a local cluster must be ready
	localStopTime  = 10 * time.Second // after the signal, before a child is killed
	// A broker that ends by itself, or is killed, comes back after restartPause, unless it ended restartsAtMost times within restartWindow.
	restartPause   = time.Second
	restartWindow  = time.Minute
	restartsAtMost = 5
)

// localDefaults are the properties in which a local cluster differs from Kafka's defaults: it is up, and over a failure, in a moment.
func localDefaults(n int) []string {
	return []string{
		"default.replication.factor=" + strconv.Itoa(min(3, n)),
		"min.insync.replicas=" + strconv.Itoa(min(2, n)),
		"num.partitions=6",
		"auto.create.topics.enable=true",
		"broker.session.timeout.ms=3000",
		"broker.heartbeat.interval.ms=500",
		"replica.lag.time.max.ms=5000",
		"controller.quorum.election.timeout.ms=500",
		"leader.imbalance.check.interval.seconds=10",
		"ackproof.controlled.shutdown.max.ms=1500",
	}
}

// RunLocal runs a cluster of n brokers on loopback, each a process of its own (`self broker --config FILE`), until ctx ends. A broker that is killed or fails
// is started again with the same address and data, which notes tells; RunLocal fails if a broker fails before the cluster is ready, or again and again.
// When all brokers are let in it prints the bootstrap list as one line on stdout. Data lives in dir, or in a temporary folder that is removed at the
// end if dir is empty. sets are properties for every broker, as in LoadConfig. The brokers die with this process, however it ends.
func RunLocal(ctx context.Context, n int, dir string, sets []string, self string, stdout, notes io.Writer) (err error) {
	if n < 1 || n > 99 {
		return fmt.Errorf("a local cluster of %d brokers, expected 1 to 99", n)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "ackproof-local-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	c := &localCluster{dir: dir, self: self, properties: append(localDefaults(n), sets...), children: map[int]*localBroker{}, exited: make(chan localExit, n)}
	// On every way out the brokers stop before the folder goes.
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.listen(n); err != nil {
		return err
	}
	for id := 1; id <= n; id++ {
		if err := c.start(id); err != nil {
			return fmt.Errorf("start broker %d: %w", id, err)
		}
	}
	ready, cancel := context.WithTimeout(ctx, localReadyTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.awaitReady(ready) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the local cluster is not ready after %s: %w", localReadyTime, err)
		}
	case e := <-c.exited:
		cancel()
		<-done
		return e
	}
	if _, err := fmt.Fprintln(stdout, strings.Join(c.addresses, ",")); err != nil {
		return err
	}
	return c.attend(ctx, notes)
}

// attend starts brokers again that end.
func (c *localCluster) attend(ctx context.Context, notes io.Writer) error {
	ended := map[int][]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-c.exited:
			recent := append(ended[e.id], time.Now())
			for time.Since(recent[0]) > restartWindow {
				recent = recent[1:]
			}
			if ended[e.id] = recent; len(recent) > restartsAtMost {
				return e
			}
			fmt.Fprintf(notes, "broker %d ended (%s); it is started again\n", e.id, errOrStatus(e.status))
			if !sleep(ctx, restartPause) {
				return nil
			}
			if err := c.start(e.id); err != nil {
				return fmt.Errorf("start broker %d again: %w", e.id, err)
			}
		}
	}
}

// localExit is the end of a broker that nobody asked to stop.
type localExit struct {
	id     int
	status error
	log    string // the end of its log
}

func (e localExit) Error() string {
	return fmt.Sprintf("broker %d ended by itself (%v); its log: %s", e.id, errOrStatus(e.status), e.log)
}

// localCluster is the brokers of RunLocal.
type localCluster struct {
	dir        string
	self       string
	properties []string // of every broker
	addresses  []string
	sockets    []*os.File // listening; handed down, so that no port is lost between choosing and using it
	children   map[int]*localBroker
	exited     chan localExit
}

type localBroker struct {
	id    int
	cmd   *exec.Cmd
	stdin io.Closer // its end tells the child that this process is gone
	gone  chan struct{}
}

func (c *localCluster) listen(n int) error {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		f, err := l.(*net.TCPListener).File()
		c.addresses = append(c.addresses, l.Addr().String())
		l.Close()
		if err != nil {
			return err
		}
		c.sockets = append(c.sockets, f)
	}
	return nil
}

// start writes the broker's configuration and runs it.
func (c *localCluster) start(id int) error {
	var voters []string
	for i, at := range c.addresses {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, at))
	}
	folder := filepath.Join(c.dir, "broker-"+strconv.Itoa(id))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text := strings.Join(append([]string{
		"node.id=" + strconv.Itoa(id),
		"listeners=PLAINTEXT://" + c.addresses[id-1],
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"log.dirs=" + escapeProperty(filepath.Join(folder, "data")),
		"ackproof.listener.fd=3",
		"ackproof.exit.with.parent=true",
	}, c.properties...), "\n") + "\n"
	config := filepath.Join(folder, "broker.properties")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(folder, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close() // the child has a copy
	b := &localBroker{id: id, cmd: exec.Command(c.self, "broker", "--config", config), gone: make(chan struct{})}
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.ExtraFiles = logFile, logFile, []*os.File{c.sockets[id-1]}
	dieWithParent(b.cmd)
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		// The death signal comes with the end of the thread that started the child, so the thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := b.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = b.cmd.Wait()
		close(b.gone)
		c.exited <- localExit{id, err, c.tail(logFile.Name())}
	}()
	if err := <-started; err != nil {
		return err
	}
	c.children[id] = b
	return nil
}

func errOrStatus(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// tail gives the end of a broker's log, for the message about its death: the folder may be gone by the time somebody reads it.
func (c *localCluster) tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return path
	}
	const most = 2000
	return string(text[max(0, len(text)-most):])
}

// escapeProperty keeps a path what it is in a .properties file.
func escapeProperty(path string) string { return strings.ReplaceAll(path, `\`, `\\`) }

// stop ends all brokers: a controlled shutdown for all at once, then a hard end for whoever is left.
func (c *localCluster) stop() error {
	for _, f := range c.sockets {
		f.Close()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, b := range c.children {
		wg.Add(1)
		go func() {
			defer wg.Done()
			select {
			case <-b.gone:
				return
			default:
			}
			if err := b.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
				b.stdin.Close() // where there are no signals
			}
			select {
			case <-b.gone:
			case <-time.After(localStopTime):
				b.cmd.Process.Kill()
				<-b.gone
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("broker %d did not stop within %s and was killed", b.id, localStopTime))
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// awaitReady waits until every broker tells of all brokers.
func (c *localCluster) awaitReady(ctx context.Context) error {
	for _, at := range c.addresses {
		var last error
		for {
			n, err := liveBrokers(ctx, at)
			if err == nil && n == len(c.addresses) {
				break
			}
			if err != nil {
				last = err
			} else {
				last = fmt.Errorf("%s knows %d of %d brokers", at, n, len(c.addresses))
			}
			if !sleep(ctx, 5*time.Millisecond) {
				return last
			}
		}
	}
	return nil
}

// liveBrokers asks one broker how many it knows to be alive.
func liveBrokers(ctx context.Context, at string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := wire.Dial(ctx, at, "ackproof-local", 1<<20)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	q := kmsg.NewPtrDescribeClusterRequest()
	resp, err := client.Do(ctx, q)
	if err != nil {
		return 0, err
	}
	return len(resp.(*kmsg.DescribeClusterResponse).Brokers), nil
}
