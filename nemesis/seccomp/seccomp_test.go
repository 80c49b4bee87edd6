//go:build linux && (amd64 || arm64)

package seccomp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const childEnv = "ACKPROOF_SECCOMP_TEST_CHILD"

func TestMain(m *testing.M) {
	Shim()
	if what := os.Getenv(childEnv); what != "" {
		os.Exit(child(what, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// child is what the supervised process does.
func child(what string, args []string) int {
	switch what {
	case "append": // FILE OTHER: tens of bytes to both, for ever
		// Goroutines that never stop by themselves make the runtime send signals to its threads all the time, which may take calls back.
		for range 2 {
			go func() {
				for n := 0; ; n++ {
					if n < 0 {
						panic("overflow")
					}
				}
			}()
		}
		file, other := create(args[0]), create(args[1])
		go func() {
			for {
				other.Write([]byte("abcdefghij"))
			}
		}()
		for at := int64(0); ; at += 10 {
			if _, err := file.WriteAt([]byte("0123456789"), at); err != nil {
				panic(err)
			}
		}
	case "rewrite": // FILE N: writes one byte N times, and says how long one took, in nanoseconds
		file := create(args[0])
		n, _ := strconv.Atoi(args[1])
		began := time.Now()
		for range n {
			file.WriteAt([]byte("x"), 0)
		}
		fmt.Println(time.Since(began).Nanoseconds() / int64(n))
	case "flush": // FILE N: flushes N times, and says what came of each
		file := create(args[0])
		n, _ := strconv.Atoi(args[1])
		for range n {
			fmt.Println(file.Sync())
		}
	case "steps": // works in its folder with relative and absolute paths
		here, _ := os.Getwd()
		os.WriteFile("a", []byte("x"), 0o644)
		os.Rename("a", "b")
		os.Rename(filepath.Join(here, "b"), filepath.Join(here, "c"))
		syscall.Rename("c", "d")
		os.Truncate("d", 0)
		os.WriteFile("d", []byte("y"), 0o644)
		os.Remove("d")
		os.Mkdir("e", 0o755)
		syscall.Rmdir("e")
	case "dial": // NETWORK ADDRESS...: dials and says what the other end says
		for i := 0; i < len(args); i += 2 {
			c, err := net.DialTimeout(args[i], args[i+1], 5*time.Second)
			if err != nil {
				fmt.Println(err)
				continue
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			fmt.Print(line)
			c.Close()
		}
	}
	return 0
}

func create(path string) *os.File {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	return f
}

// supervised starts a child and gives its output when it has ended.
func supervised(t testing.TB, o Options, what, dir string, args ...string) (s *Supervisor, wait func() (out string, err error)) {
	t.Helper()
	if ok, why := Available(); !ok {
		t.Skip("calls of other processes cannot be held here: " + why)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Dir = append(os.Environ(), childEnv+"="+what, "GORACE=atexit_sleep_ms=0"), dir
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	s, err := Start(cmd, o, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return s, func() (string, error) {
		err := cmd.Wait()
		<-s.Done()
		return out.String(), err
	}
}

func TestTheProcessDiesAtTheKthCallBeforeItIsCarriedOut(t *testing.T) {
	for _, k := range []int{1, 2, 3, 100, 1000} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		file := filepath.Join(dir, "f")
		var fired []Hit
		s, wait := supervised(t, Options{Calls: Calls(), Trap: Trap{Calls: []Call{Write}, Under: dir, Nth: k, Fired: func(h Hit) { fired = append(fired, h) }}},
			"append", "", file, filepath.Join(elsewhere, "g"))
		_, err := wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended with %v", err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Size() != int64(10*(k-1)) {
			t.Errorf("killed at write %d: the file is %v, %v, expected %d bytes", k, info, err, 10*(k-1))
		}
		if count, hit := s.Seen(); count != k || hit == nil || *hit != (Hit{"pwrite64", file}) || len(fired) != 1 || fired[0] != *hit {
			t.Errorf("count %d, hit %v, told of %v", count, hit, fired)
		}
	}
}

func TestTheKthCallFailsAndNoOther(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	_, wait := supervised(t, Options{Calls: []Call{Flush}, Trap: Trap{Calls: []Call{Flush}, Nth: 3, Errno: syscall.ENOSPC}}, "flush", "", file, "5")
	out, err := wait()
	want := "<nil>\n<nil>\nsync " + file + ": no space left on device\n<nil>\n<nil>\n"
	if out != want || err != nil {
		t.Errorf("%q, %v, expected %q", out, err, want)
	}
}

func TestCallsAreCountedByClassAndFolder(t *testing.T) {
	for _, x := range []struct {
		call Call
		n    int
	}{{Rename, 3}, {Remove, 2}, {Truncate, 1}, {Write, 2}, {Flush, 0}} {
		dir := t.TempDir()
		s, wait := supervised(t, Options{Calls: Calls(), Trap: Trap{Calls: []Call{x.call}, Under: dir}}, "steps", dir)
		if _, err := wait(); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Seen(); n != x.n {
			t.Errorf("%s: %d calls, expected %d", x.call, n, x.n)
		}
		s, wait = supervised(t, Options{Calls: Calls(), Trap: Trap{Calls: []Call{x.call}, Under: t.TempDir(), Nth: 1}}, "steps", dir)
		if _, err := wait(); err != nil {
			t.Errorf("a trap for another folder: %v", err)
		}
		if n, _ := s.Seen(); n != 0 {
			t.Errorf("%s: %d calls in another folder", x.call, n)
		}
	}
}

func TestTrapsAreSetWhileTheProcessRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	s, wait := supervised(t, Options{Calls: Calls()}, "append", "", file, filepath.Join(t.TempDir(), "g"))
	for n := 0; n < 1000; n, _ = s.Seen() {
		if n == 0 {
			s.Set(Trap{Calls: []Call{Write}, Under: dir})
		}
		time.Sleep(time.Millisecond)
	}
	s.Unset()
	counted, _ := s.Seen()
	s.Set(Trap{Calls: []Call{Write}, Under: dir, Nth: 7})
	if _, err := wait(); err == nil {
		t.Error("the process lives")
	}
	info, err := os.Stat(file)
	if err != nil || info.Size()%10 != 0 || info.Size() < int64(10*(counted+6)) {
		t.Errorf("%v, %v, expected %d bytes or more", info, err, 10*(counted+6))
	}
}

// say listens and says a word to whoever comes.
func say(t *testing.T, network, address, word string) (port uint16, came *atomic.Int32) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	came = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			io.WriteString(c, word+"\n")
			c.Close()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port), came
}

func TestNoConnectBypassesTheRedirection(t *testing.T) {
	real, came := say(t, "tcp4", "127.0.0.1:0", "real")
	proxy, _ := say(t, "tcp4", "127.0.0.1:0", "proxy")
	free, _ := say(t, "tcp4", "127.0.0.1:0", "free")
	var asked []netip.AddrPort
	_, wait := supervised(t, Options{Redirect: func(to netip.AddrPort) (uint16, syscall.Errno) {
		asked = append(asked, to)
		switch to.Port() {
		case real:
			return proxy, 0
		case 9:
			return 0, syscall.EHOSTUNREACH
		}
		return 0, 0
	}}, "dial", "", "tcp", fmt.Sprintf("127.0.0.1:%d", real), "tcp", fmt.Sprintf("[::ffff:127.0.0.1]:%d", real), "tcp4", fmt.Sprintf("localhost:%d", real), "tcp", "127.0.0.1:9",
		"tcp", fmt.Sprintf("127.0.0.1:%d", free))
	out, err := wait()
	if want := "proxy\nproxy\nproxy\ndial tcp 127.0.0.1:9: connect: no route to host\nfree\n"; out != want || err != nil {
		t.Errorf("%q, %v, expected %q", out, err, want)
	}
	if came.Load() != 0 || len(asked) < 5 {
		t.Errorf("%d connections past the redirection; asked for %v", came.Load(), asked)
	}
}

// A socket of IPv6 that connects to an address of IPv4, as every JVM has.
func TestAddressesOfIPv4InSocketsOfIPv6AreRedirected(t *testing.T) {
	mapped := []byte{10, 0, 0x1f, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 0, 0, 0, 0}
	if to, ok := address(mapped); !ok || to != netip.MustParseAddrPort("127.0.0.1:8080") {
		t.Errorf("%v, %v", to, ok)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3, which can connect such a socket, is not here")
	}
	if ok, why := Available(); !ok {
		t.Skip(why)
	}
	real, came := say(t, "tcp4", "127.0.0.1:0", "real")
	proxy, _ := say(t, "tcp4", "127.0.0.1:0", "proxy")
	cmd := exec.Command(python, "-c", fmt.Sprintf("import socket; s=socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1',%d)); print(s.recv(99).decode(),end='')", real))
	var out strings.Builder
	cmd.Stdout = &out
	s, err := Start(cmd, Options{Redirect: func(netip.AddrPort) (uint16, syscall.Errno) { return proxy, 0 }}, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "proxy\n" || came.Load() != 0 {
		t.Errorf("%q, %v, %d connections past the redirection", out.String(), err, came.Load())
	}
	<-s.Done()
}

func TestProgramsThatCannotRunAreErrors(t *testing.T) {
	if ok, why := Available(); !ok {
		t.Skip(why)
	}
	script := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(script, []byte("\x00"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		cmd  *exec.Cmd
		o    Options
		want string
	}{
		{"no program", exec.Command(script), Options{Calls: Calls()}, "exec format error"},
		{"not there", exec.Command("ackproof-no-such-program"), Options{Calls: Calls()}, "not found"},
		{"no calls", exec.Command(os.Args[0]), Options{}, "no calls are asked for"},
	} {
		s, err := Start(x.cmd, x.o, (*exec.Cmd).Start)
		if s != nil || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, %v, expected %q", x.name, s, err, x.want)
		}
		if x.cmd.Process != nil {
			x.cmd.Wait()
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(all)
	}
	once := func() {
		_, wait := supervised(t, Options{Calls: Calls()}, "flush", "", filepath.Join(t.TempDir(), "f"), "1")
		if _, err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	before := open()
	for range 5 {
		once()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, and %d before", after, before)
	}
}

// What a call costs that is let through: one with a trap set for its folder, one with none set, and one that is not held at all.
func BenchmarkWrite(b *testing.B) {
	for _, x := range []struct {
		name string
		o    Options
	}{
		{"counted", Options{Calls: Calls(), Trap: Trap{Calls: []Call{Write}}}},
		{"held", Options{Calls: Calls()}},
		{"free", Options{Calls: []Call{Rename}}},
	} {
		b.Run(x.name, func(b *testing.B) {
			_, wait := supervised(b, x.o, "rewrite", "", filepath.Join(b.TempDir(), "f"), strconv.Itoa(max(b.N, 1000)))
			out, err := wait()
			if err != nil {
				b.Fatal(err)
			}
			each, _ := strconv.ParseFloat(strings.TrimSpace(out), 64)
			b.ReportMetric(each, "ns/write")
		})
	}
}
