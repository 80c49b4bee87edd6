// Package local starts the reference broker for other programs of this module: a cluster of three processes, through its command line.
package local

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

// Cluster is the brokers of `ackproof broker --local`.
type Cluster struct {
	Bootstrap string
	dir       string
	cmd       *exec.Cmd
	kills     map[int32][]time.Time // by broker
}

// startTime bounds a start of the cluster, stopTime its end.
const (
	startTime = 40 * time.Second
	stopTime  = 20 * time.Second
)

// Start runs three brokers of the binary until Stop, with their data and logs in dir; settings are key=value.
func Start(binary, dir string, settings ...string) (*Cluster, error) {
	c := &Cluster{dir: dir, kills: map[int32][]time.Time{}}
	args := []string{"broker", "--local", "3", "--dir", dir}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	c.cmd = exec.Command(binary, args...)
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
	case c.Bootstrap = <-line:
	case <-time.After(startTime):
	}
	if c.Bootstrap == "" {
		c.Stop()
		text, _ := os.ReadFile(notes.Name())
		return nil, fmt.Errorf("the cluster did not start: %s", text)
	}
	return c, nil
}

// Stop ends the brokers, all of them, whatever state they are in.
func (c *Cluster) Stop() error {
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

// Kill ends broker id as kill -9 does, and waits until it is gone. The cluster starts it again after a second.
func (c *Cluster) Kill(ctx context.Context, id int32) error {
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

// Rest waits until one more kill is not too many: a local cluster takes a broker that ends five times within a minute for one that cannot run.
func (c *Cluster) Rest(ctx context.Context) {
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
func (c *Cluster) pid(ctx context.Context, id int32) (int, error) {
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
