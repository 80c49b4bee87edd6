package lossy

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The programs that run on the disk are the test binary itself: programEnv names one of programs, and its arguments.
const programEnv = "ACKPROOF_LOSSY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	programs["pump"], programs["host"] = pump, hosting // which run programs themselves
	if line := os.Getenv(programEnv); line != "" {
		args := strings.Split(line, "|")
		if err := programs[args[0]](args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needed skips a test where the file system cannot be served.
func needed(t *testing.T) {
	t.Helper()
	if ok, why := Available(); !ok {
		t.Skip("no file system that loses power here: " + why)
	}
}

// made is a disk for a test, with its folder.
func made(t *testing.T, o Options) (*FS, string) {
	t.Helper()
	if o.WriteBack == 0 {
		o.WriteBack = -1
	}
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	if err := os.Mkdir(seen, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := New(seen, filepath.Join(dir, "back"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, seen
}

// program is a process on the disk.
type program struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	finish chan struct{} // closed when it is to be waited for
	done   chan struct{} // closed when it is gone
	once   sync.Once
}

// run starts a program on the disk, as a node is started; without a disk, anywhere.
func run(t testing.TB, f *FS, args ...string) *program {
	t.Helper()
	p, err := started(f, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func started(f *FS, args ...string) (*program, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programEnv+"="+strings.Join(args, "|"), "GORACE=atexit_sleep_ms=0") // the race detector sleeps for a second at the end
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &program{cmd: cmd, in: in, out: bufio.NewReader(out), finish: make(chan struct{}), done: make(chan struct{})}
	running := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		var err error
		if f != nil {
			err = f.Attach()
		}
		if err == nil {
			err = cmd.Start()
		}
		running <- err
		if err == nil {
			<-p.finish
			cmd.Wait()
		}
	}()
	return p, <-running
}

// line reads what the program says next; "" at its end.
func (p *program) line() string {
	text, _ := p.out.ReadString('\n')
	return strings.TrimSpace(text)
}

// rest gives everything that the program still says, once it has ended.
func (p *program) rest() string {
	text, _ := io.ReadAll(p.out)
	p.reap()
	return strings.TrimSpace(string(text))
}

func (p *program) reap() {
	p.once.Do(func() { close(p.finish) })
	<-p.done
}

func (p *program) kill() {
	p.cmd.Process.Kill()
	p.reap()
}

// ran runs a program to its end and gives what it says.
func ran(t testing.TB, f *FS, args ...string) string {
	t.Helper()
	p := run(t, f, args...)
	text := p.rest()
	if strings.Contains(text, "error:") {
		t.Fatalf("%v: %s", args, text)
	}
	return text
}
