package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is the brokers under test.
type cluster struct {
	bootstrap string
	// The brokers of `ackproof broker --local`; dir and cmd are empty for a cluster that somebody else runs, whose brokers cannot be killed.
	dir   string
	cmd   *exec.Cmd
	kills map[int32][]time.Time // by broker
}

// startTime bounds a start of the cluster, stopTime its end.
const (
	startTime = 40 * time.Second
	stopTime  = 20 * time.Second
)

// startCluster runs three brokers of the binary until stop.
func startCluster(binary, dir string) (*cluster, error) {
	c := &cluster{dir: dir, kills: map[int32][]time.Time{}}
	c.cmd = exec.Command(binary, "broker", "--local", "3", "--dir", dir,
		"--set", "ackproof.log.level=debug", // logs which version of which API each client uses
		// Kafka's defaults make groups wait for members that might come, and members for their next heartbeat.
		"--set", "group.initial.rebalance.delay.ms=0", "--set", "group.consumer.heartbeat.interval.ms=500")
	notes, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		return nil, err
	}
	defer notes.Close()
	c.cmd.Stderr = notes
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- strings.TrimSpace(text)
		io.Copy(io.Discard, stdout)
	}()
	select {
	case c.bootstrap = <-line:
	case <-time.After(startTime):
	}
	if c.bootstrap == "" {
		c.stop()
		text, _ := os.ReadFile(notes.Name())
		return nil, fmt.Errorf("the cluster did not start: %s", text)
	}
	return c, nil
}

// stop ends the brokers, all of them, whatever state they are in.
func (c *cluster) stop() error {
	if c.cmd == nil {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	c.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-done:
		if err != nil {
			text, _ := os.ReadFile(filepath.Join(c.dir, "cluster.log"))
			err = fmt.Errorf("the cluster ended with %w: %s", err, text)
		}
		return err
	case <-time.After(stopTime):
		c.cmd.Process.Kill() // its brokers die with it
		<-done
		return errors.New("the cluster did not stop when asked to, and was killed")
	}
}

// kill ends broker id as kill -9 does, and waits until it is gone. The cluster starts it again after a second.
func (c *cluster) kill(ctx context.Context, id int32) error {
	pid, err := c.pid(ctx, id)
	if err != nil {
		return err
	}
	c.kills[id] = append(c.kills[id], time.Now())
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill broker %d, process %d: %w", id, pid, err)
	}
	for {
		if now, err := c.pid(ctx, id); err != nil || now != pid {
			return ctx.Err()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A local cluster takes a broker that ends five times within a minute for one that cannot run. rest waits until one more kill is not too many.
func (c *cluster) rest(ctx context.Context) {
	const most, window = 4, time.Minute
	for _, at := range c.kills {
		if len(at) < most {
			continue
		}
		select {
		case <-time.After(time.Until(at[len(at)-most].Add(window))):
		case <-ctx.Done():
		}
	}
}

// pid finds the process of a broker by its configuration file, whose path nobody else has.
func (c *cluster) pid(ctx context.Context, id int32) (int, error) {
	list, err := exec.CommandContext(ctx, "ps", "-A", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	config := filepath.Join(c.dir, fmt.Sprintf("broker-%d", id), "broker.properties")
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") && fields[len(fields)-1] == config {
			return strconv.Atoi(fields[0])
		}
	}
	return 0, fmt.Errorf("broker %d does not run", id)
}
