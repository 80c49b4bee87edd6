package reference

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

// node is one broker process and its folder: node.properties, log, data. It implements systems.Node.
//
// The process cannot outlive the harness, however that ends: it is killed when the thread that started it dies (on Linux), and it ends by
// itself when its standard input does, whose other end only the harness holds.
type node struct {
	id   int
	addr string
	dir  string
	exe  string

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
}

func newNode(id int, addr, dir, exe string) *node {
	return &node{id: id, addr: addr, dir: dir, exe: exe}
}

// ID implements systems.Node.
func (n *node) ID() int { return n.id }

// Name implements systems.Node.
func (n *node) Name() string { return fmt.Sprintf("n%d", n.id) }

// Addr implements systems.Node.
func (n *node) Addr() string { return n.addr }

func (n *node) dataDir() string    { return filepath.Join(n.dir, "data") }
func (n *node) logPath() string    { return filepath.Join(n.dir, "log") }
func (n *node) configPath() string { return filepath.Join(n.dir, "node.properties") }

// configure makes the node's folder and writes its configuration.
func (n *node) configure(lines []string, err error) error {
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.dataDir(), 0o755); err != nil {
		return fmt.Errorf("reference: make the folder of %s: %w", n.Name(), err)
	}
	if err := os.WriteFile(n.configPath(), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("reference: write the configuration of %s: %w", n.Name(), err)
	}
	return nil
}

// Start implements systems.Node.
func (n *node) Start(ctx context.Context) error {
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
	cmd := exec.Command(n.exe, "broker", "--config", n.configPath())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = n.dir
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
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		n.over(p)
	}()
	if err := <-started; err != nil {
		stdin.Close()
		return fmt.Errorf("start %s: %w: run %s: %w", n.Name(), systems.ErrMachine, n.exe, err)
	}
	n.process, n.ended = p, nil
	return nil
}

// over notes the end of a process.
func (n *node) over(p *process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == p { // nobody asked for it
		n.process = nil
		n.ended = fmt.Errorf("pid %d ended by itself: %v", p.cmd.Process.Pid, p.cmd.ProcessState)
	}
	p.stdin.Close()
	close(p.gone)
}

// PID implements systems.Node.
func (n *node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0
	}
	return n.process.cmd.Process.Pid
}

// Kill implements systems.Node. A node that is down stays down.
func (n *node) Kill() error {
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

// Pause implements systems.Node.
func (n *node) Pause() error { return n.signal(syscall.SIGSTOP) }

// Resume implements systems.Node.
func (n *node) Resume() error { return n.signal(syscall.SIGCONT) }

func (n *node) signal(s syscall.Signal) error {
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

// Alive implements systems.Node.
func (n *node) Alive() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil, n.ended
}

// stop ends the node for good.
func (n *node) stop() error {
	if err := n.Kill(); err != nil {
		return fmt.Errorf("stop %s: %w", n.Name(), err)
	}
	return nil
}

// tailBytes is how much of the end of a log LogTail looks at.
const tailBytes = 64 << 10

// LogTail implements systems.Node. A log that cannot be read gives the reason instead.
func (n *node) LogTail(lines int) string {
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
func (n *node) Log() (io.ReadCloser, error) {
	f, err := os.Open(n.logPath())
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", n.Name(), err)
	}
	return f, nil
}
