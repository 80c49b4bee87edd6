package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ackproof/conformance/program"
)

// process is a client program at work.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when it has ended and all its events were read

	mu      sync.Mutex
	seen    seen
	changed chan struct{} // closed and replaced by every event
	stderr  bytes.Buffer
	err     error // valid after done
}

// seen is what a program has reported so far.
type seen struct {
	version      string
	acked, taken []program.Event
	assigned     []int32 // partitions that it holds now
	commits      int
	offsets      []program.Event
	calls        []string
}

// start runs the program; the process and all that it starts are gone at the latest when ctx ends.
func start(ctx context.Context, command []string, args ...string) (*process, error) {
	p := &process{done: make(chan struct{}), changed: make(chan struct{})}
	p.cmd = exec.Command(command[0], append(slices.Clone(command[1:]), args...)...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = &p.stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	end := context.AfterFunc(ctx, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	go func() {
		defer close(p.done)
		defer end()
		bad := p.read(stdout)
		io.Copy(io.Discard, stdout)
		p.err = p.cmd.Wait()
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // whatever it left behind in its group
		switch {
		case ctx.Err() != nil:
			p.err = fmt.Errorf("%s did not end in time; %s", strings.Join(args, " "), p.tail())
		case p.err != nil:
			p.err = fmt.Errorf("%s: %w; %s", strings.Join(args, " "), p.err, p.tail())
		case bad != nil:
			p.err = bad
		}
	}()
	return p, nil
}

// tail is the end of what the program wrote about itself.
func (p *process) tail() string {
	text := strings.TrimSpace(p.stderr.String())
	const most = 1500
	return "it says: " + text[max(0, len(text)-most):]
}

func (p *process) read(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e program.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("the program printed %.200q, expected an event in JSON: %w", lines.Text(), err)
		}
		p.mu.Lock()
		s := &p.seen
		switch e.Event {
		case "client":
			s.version = e.Value
		case "acked":
			s.acked = append(s.acked, e)
		case "record":
			s.taken = append(s.taken, e)
		case "assigned":
			s.assigned = e.Partitions
		case "committed":
			s.commits++
		case "offset":
			s.offsets = append(s.offsets, e)
		case "admin":
			s.calls = append(s.calls, e.Value)
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
	return lines.Err()
}

// look gives what the program has reported so far.
func (p *process) look() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen // its slices only ever grow, or are replaced as a whole
}

// until waits for something to have been reported. A program that ends before that fails.
func (p *process) until(ctx context.Context, what string, happened func(seen) bool) error {
	for {
		p.mu.Lock()
		s, changed := p.seen, p.changed
		p.mu.Unlock()
		if happened(s) {
			return nil
		}
		select {
		case <-changed:
		case <-p.done:
			if happened(p.look()) {
				return nil
			}
			if p.err != nil {
				return fmt.Errorf("waiting until %s: %w", what, p.err)
			}
			return fmt.Errorf("the program ended before %s", what)
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s; %s", what, p.soFar())
		}
	}
}

// soFar tells of a program that still runs.
func (p *process) soFar() string {
	s := p.look()
	return fmt.Sprintf("it has reported %d acknowledged and %d taken records, holds partitions %v, committed %d times", len(s.acked), len(s.taken), s.assigned, s.commits)
}

// tell asks a consumer to commit, leave and end.
func (p *process) tell() {
	io.WriteString(p.stdin, "stop\n") // an error: it has ended already, as wait will tell
}

// wait gives all that the program reported, once it has ended by itself, with exit code 0.
func (p *process) wait() (seen, error) {
	<-p.done
	return p.look(), p.err
}
