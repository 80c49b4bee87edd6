//go:build amd64 || arm64

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification and response are the kernel's struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32 // the thread, as this process numbers it
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// Supervisor decides over the calls of one process and of all that come from it, until they are gone.
type Supervisor struct {
	listener int
	table    map[int32]syscallOf
	redirect func(netip.AddrPort) (uint16, syscall.Errno)
	done     chan struct{}

	mu    sync.Mutex
	trap  *Trap
	count int
	fired *Hit
	dying bool // it has been killed: none of its calls is carried out any more
}

// startTime bounds the start of the program, up to its first instruction.
const startTime = 10 * time.Second

// Start starts the command under a supervisor and returns when its program runs; start is what really starts it, such as cmd.Start. main of this program must begin with
// Shim. The command is changed. After an error its process, if any, has to be waited for all the same.
func Start(cmd *exec.Cmd, o Options, start func(*exec.Cmd) error) (*Supervisor, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	s := &Supervisor{table: map[int32]syscallOf{}, redirect: o.Redirect, done: make(chan struct{})}
	var numbers []string
	for nr, c := range table() {
		if slices.Contains(o.Calls, c.call) {
			s.table[nr] = c
			numbers = append(numbers, strconv.Itoa(int(nr)))
		}
	}
	if o.Redirect != nil {
		numbers = append(numbers, strconv.Itoa(unix.SYS_CONNECT))
	}
	if len(numbers) == 0 {
		return nil, errors.New("supervise a process: no calls are asked for")
	}
	if len(o.Trap.Calls) > 0 {
		s.Set(o.Trap)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("supervise a process: find the running program: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("supervise a process: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "near"), os.NewFile(uintptr(pair[1]), "far")
	defer near.Close()
	defer far.Close()
	cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	cmd.Args = append([]string{shimName, strings.Join(numbers, ","), strconv.Itoa(2 + len(cmd.ExtraFiles)), cmd.Path}, cmd.Args...)
	cmd.Path = self
	if err := start(cmd); err != nil {
		return nil, err
	}
	far.Close()
	if s.listener, err = receive(near); err != nil {
		cmd.Process.Kill()
		return nil, fmt.Errorf("supervise %s: %w", cmd.Args[3], err)
	}
	go s.serve()
	return s, nil
}

// receive takes the listener and waits until the program runs.
func receive(near *os.File) (listener int, err error) {
	c, err := net.FileConn(near)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	conn := c.(*net.UnixConn)
	conn.SetDeadline(time.Now().Add(startTime))
	message, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, control, _, _, err := conn.ReadMsgUnix(message, rights)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the process said nothing: %w (does main begin with seccomp.Shim?)", errors.Join(err, io.ErrUnexpectedEOF))
	}
	if message[0] == 'F' {
		messages, err := unix.ParseSocketControlMessage(rights[:control])
		if err != nil || len(messages) != 1 {
			return 0, fmt.Errorf("take the listener: %d messages: %w", len(messages), err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return 0, fmt.Errorf("take the listener: %d descriptors: %w", len(fds), err)
		}
		unix.CloseOnExec(fds[0])
		listener = fds[0]
	}
	rest, err := io.ReadAll(conn)
	if err == nil && (message[0] != 'F' || len(rest) > 0) {
		err = errors.New(strings.TrimPrefix(string(rest), "E"))
	}
	if err != nil && listener != 0 {
		unix.Close(listener)
	}
	return listener, err
}

// Set sets a trap in the place of the one that is set. Its count begins at once.
func (s *Supervisor) Set(t Trap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trap, s.count, s.fired = &t, 0, nil
}

// Unset takes the trap away.
func (s *Supervisor) Unset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trap = nil
}

// Seen tells how many calls the trap counted so far, and which one it fired at, if it did.
func (s *Supervisor) Seen() (count int, hit *Hit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.fired
}

// Done is closed when the process and all that came from it are gone.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// serve decides until nobody is left to decide for.
func (s *Supervisor) serve() {
	defer close(s.done)
	defer unix.Close(s.listener)
	for {
		ready := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if ready[0].Revents != 0 { // POLLHUP
				return
			}
			continue
		}
		var n notification
		if e := ioctl(s.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); e != 0 {
			if e == unix.ENOENT || e == unix.EINTR { // the thread has died meanwhile
				continue
			}
			return
		}
		r, step := s.decide(&n)
		if step == killed {
			continue // the call waits for the end
		}
		if e := ioctl(s.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)); e == unix.ENOENT {
			s.takeBack(step)
		}
	}
}

func ioctl(fd int, request uintptr, at unsafe.Pointer) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(at))
	return e
}

// step is what a call was for the trap.
type step int

const (
	passed  step = iota // not the trap's business
	counted             // but not the one
	failed              // the one, with an error
	killed              // the one
)

// decide over one call.
func (s *Supervisor) decide(n *notification) (response, step) {
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if n.nr == unix.SYS_CONNECT {
		if e := s.connect(n); e != 0 {
			r.flags, r.errno = 0, -int32(e)
		}
		return r, passed
	}
	c := s.table[n.nr]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dying {
		return r, killed
	}
	t := s.trap
	if t == nil || s.fired != nil || !slices.Contains(t.Calls, c.call) {
		return r, passed
	}
	path, ok := n.file(c, t.Under)
	if !ok {
		return r, passed
	}
	if s.count++; s.count != t.Nth {
		return r, counted
	}
	s.fired = &Hit{Name: c.name, Path: path}
	if t.Fired != nil {
		t.Fired(*s.fired)
	}
	if t.Errno != 0 {
		r.flags, r.errno = 0, -int32(t.Errno)
		return r, failed
	}
	s.dying = true
	unix.Kill(int(n.pid), unix.SIGKILL) // of one thread it is of all
	return r, killed
}

// takeBack what was counted of a call that a signal took back: it will come again.
func (s *Supervisor) takeBack(was step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was == counted || was == failed {
		s.count--
	}
	if was == failed {
		s.fired = nil
	}
}

// file is the file that a call is about, if it lies below the folder.
func (n *notification) file(c syscallOf, under string) (path string, ok bool) {
	if path = n.resolve(c.fd, c.path); below(path, under) {
		return path, true
	}
	if c.too != nil {
		if from := n.resolve(c.too.fd, c.too.path); below(from, under) {
			return from, true
		}
	}
	return "", false
}

// resolve gives the path that arguments of the call stand for, as the process sees it; "" if it is no file or cannot be told.
func (n *notification) resolve(fd, path int) string {
	base := func() string {
		link := fmt.Sprintf("/proc/%d/cwd", n.pid)
		if fd >= 0 && int32(n.args[fd]) != unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[fd]))
		}
		target, _ := os.Readlink(link)
		return strings.TrimSuffix(target, " (deleted)")
	}
	if path < 0 {
		return base()
	}
	name := n.text(n.args[path])
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(base(), name)
}

// text reads a string of the process that ends with a zero.
func (n *notification) text(at uint64) string {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return ""
	}
	defer mem.Close()
	var out []byte
	for len(out) < unix.PathMax {
		piece := make([]byte, 256-int(at%256)) // never over the border of a page, behind which there may be nothing
		if _, err := mem.ReadAt(piece, int64(at)); err != nil {
			return ""
		}
		if end := slices.Index(piece, 0); end >= 0 {
			return string(append(out, piece[:end]...))
		}
		out, at = append(out, piece...), at+uint64(len(piece))
	}
	return ""
}

// below: the path is that of a file, and lies in the folder or deeper.
func below(path, folder string) bool {
	if !strings.HasPrefix(path, "/") { // a socket or a pipe
		return false
	}
	return folder == "" || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// connect gives the address of a connect another port, or the call an error.
func (s *Supervisor) connect(n *notification) syscall.Errno {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.pid), os.O_RDWR, 0)
	if err != nil {
		return unix.EACCES // nothing may get past the redirection
	}
	defer mem.Close()
	sockaddr := make([]byte, min(n.args[2], unix.SizeofSockaddrInet6))
	if len(sockaddr) < 2 {
		return 0 // the kernel refuses it
	}
	if _, err := mem.ReadAt(sockaddr, int64(n.args[1])); err != nil {
		return unix.EFAULT
	}
	to, ok := address(sockaddr)
	if !ok {
		return 0
	}
	port, e := s.redirect(to)
	if e != 0 || port == 0 {
		return e
	}
	if _, err := mem.WriteAt(binary.BigEndian.AppendUint16(nil, port), int64(n.args[1])+2); err != nil {
		return unix.EACCES
	}
	return 0
}

// address takes a sockaddr apart, if it is one of IPv4, in either form, or of loopback in IPv6.
func address(b []byte) (netip.AddrPort, bool) {
	family := binary.NativeEndian.Uint16(b)
	switch {
	case family == unix.AF_INET && len(b) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), true
	case family == unix.AF_INET6 && len(b) >= 24:
		a := netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[2:])), a.Is4() || a.IsLoopback()
	}
	return netip.AddrPort{}, false
}
