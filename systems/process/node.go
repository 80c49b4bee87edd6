// Package process is a node that is one process: its life, its log, and the plainest place for it to live, this machine's loopback. It knows nothing of
// what the process does, nor of faults, workloads or checkers. Start reading at Node.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"ackproof/systems"
)

// Spec is what a node is made of. All of it stays the same over restarts.
type Spec struct {
	ID   int
	Addr string       // where it listens for clients
	Dir  string       // its folder, absolute; its log is the file "log" in it
	Data string       // its data folder
	Argv []string     // the program and its arguments
	Env  []string     // beside the harness's own environment
	Host systems.Host // nil: a Loopback
}

// Node is one node that is one process. It implements systems.Node.
//
// The process cannot outlive the harness, however that ends: it is killed when the thread that started it dies (on Linux), and it ends by
// itself when its standard input does, whose other end only the harness holds, if it looks at that.
type Node struct {
	spec Spec

	life sync.Mutex // one Start or Kill at a time: a new process finds the port of the old one free

	mu      sync.Mutex
	process *process // nil while it is down
	ended   error    // why it ended, if nobody asked for it
}

// process is one life of a node.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed when it has been waited for
	err   error         // of waiting; constant once gone is closed

	expected bool // its end is a fault's doing; under the node's mu
}

// New makes a node, which does not run yet, and its folder.
func New(spec Spec) (*Node, error) {
	if spec.Host == nil {
		spec.Host = NewLoopback()
	}
	n := &Node{spec: spec}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", n.Name(), err)
	}
	return n, nil
}

// ID implements systems.Node.
func (n *Node) ID() int { return n.spec.ID }

// Name implements systems.Node.
func (n *Node) Name() string { return fmt.Sprintf("n%d", n.spec.ID) }

// Addr implements systems.Node.
func (n *Node) Addr() string { return n.spec.Addr }

// Data implements systems.Node.
func (n *Node) Data() string { return n.spec.Data }

// Argv replaces the program and its arguments, from the next start on.
func (n *Node) Argv(argv ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spec.Argv = argv
}

// Write writes a file into the node's folder and gives its path.
func (n *Node) Write(name, content string) (string, error) {
	path := filepath.Join(n.spec.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return "", fmt.Errorf("write %s of %s: %w", name, n.Name(), err)
	}
	return path, nil
}

func (n *Node) logPath() string { return filepath.Join(n.spec.Dir, "log") }

// Start implements systems.Node.
func (n *Node) Start(ctx context.Context) error {
	n.life.Lock()
	defer n.life.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return fmt.Errorf("start %s: it runs already as pid %d", n.Name(), n.process.cmd.Process.Pid)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start %s: %w", n.Name(), err)
	}
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w: open its log: %w", n.Name(), systems.ErrMachine, err)
	}
	defer log.Close()
	cmd := exec.Command(n.spec.Argv[0], n.spec.Argv[1:]...)
	cmd.Env = append(os.Environ(), n.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = n.spec.Dir
	cmd.SysProcAttr = guarded()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w: make its standard input: %w", n.Name(), systems.ErrMachine, err)
	}
	p := &process{cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel's parent-death signal is sent when the starting thread dies, not the process (golang/go#27505): this goroutine keeps its thread for itself
		// until the node is gone, and takes it along at its end.
		runtime.LockOSThread()
		if err := n.spec.Host.Start(n.spec.ID, cmd); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		n.over(p)
	}()
	if err := <-started; err != nil {
		stdin.Close()
		return fmt.Errorf("start %s: %w: run %s: %w", n.Name(), systems.ErrMachine, n.spec.Argv[0], err)
	}
	n.process, n.ended = p, nil
	return nil
}

// over notes the end of a process.
func (n *Node) over(p *process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == p { // nobody asked for it, unless a fault did
		n.process = nil
		if !p.expected {
			n.ended = fmt.Errorf("pid %d ended by itself: %v", p.cmd.Process.Pid, p.cmd.ProcessState)
		}
	}
	p.stdin.Close()
	close(p.gone)
}

// EndInput closes the node's standard input, as the end of the harness would. A node that looks at it ends.
func (n *Node) EndInput() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.stdin.Close()
	}
}

// PID implements systems.Node.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0
	}
	return n.process.cmd.Process.Pid
}

// Kill implements systems.Node. A node that is down stays down.
func (n *Node) Kill() error {
	n.life.Lock()
	defer n.life.Unlock()
	n.mu.Lock()
	p := n.process
	n.process = nil
	n.mu.Unlock()
	if p == nil {
		return nil
	}
	err := signal(p, syscall.SIGKILL)
	<-p.gone
	return err
}

// Terminate asks the process to end (SIGTERM) and returns when it is gone. When ctx ends first, it is killed, and that is an error. A node that is down stays down.
func (n *Node) Terminate(ctx context.Context) error {
	n.life.Lock()
	defer n.life.Unlock()
	n.mu.Lock()
	p := n.process
	n.process = nil
	n.mu.Unlock()
	if p == nil {
		return nil
	}
	err := signal(p, syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-ctx.Done():
		err = errors.Join(fmt.Errorf("end %s: it did not end when it was asked to: %w", n.Name(), ctx.Err()), signal(p, syscall.SIGKILL))
		<-p.gone
	}
	return err
}

// Pause implements systems.Node.
func (n *Node) Pause() error { return n.signal(syscall.SIGSTOP) }

// Resume implements systems.Node.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

func (n *Node) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return fmt.Errorf("send %v to %s: it is down", s, n.Name())
	}
	return signal(n.process, s)
}

// signal the process group, which the node leads.
func signal(p *process, s syscall.Signal) error {
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process group %d: %w", s, p.cmd.Process.Pid, err)
	}
	return nil
}

// Expect implements systems.Mortal.
func (n *Node) Expect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.expected = true
	}
}

// Alive implements systems.Node.
func (n *Node) Alive() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil, n.ended
}

// Stop ends the node for good.
func (n *Node) Stop() error {
	if err := n.Kill(); err != nil {
		return fmt.Errorf("stop %s: %w", n.Name(), err)
	}
	return nil
}

// tailBytes is how much of the end of a log LogTail looks at.
const tailBytes = 64 << 10

// LogTail implements systems.Node. A log that cannot be read gives the reason instead.
func (n *Node) LogTail(lines int) string {
	f, err := os.Open(n.logPath())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		f.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-max(0, lines)):], "\n")
}

// Log implements systems.Node.
func (n *Node) Log() (io.ReadCloser, error) {
	f, err := os.Open(n.logPath())
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", n.Name(), err)
	}
	return f, nil
}
