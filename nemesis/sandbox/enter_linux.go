package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ackproof/model"
)

// marker in the environment tells the program that it was started by Command.
const marker = "ACKPROOF_SANDBOX"

// lifeline is the descriptor whose other end only the outer program holds.
const lifeline = 3

// Command makes the command that runs this program again, with these arguments, in namespaces of its own. There it has to call Enter. The command must be started on
// a thread that lives as long as it (runtime.LockOSThread), since it dies with that thread. The caller closes release when it has ended.
func Command(args ...string) (cmd *exec.Cmd, release io.Closer, err error) {
	inner, outer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make the sandbox: a pipe to it: %w", err)
	}
	cmd = exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.ExtraFiles = []*os.File{inner} // becomes the lifeline
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		Setsid:     true, // keys on the terminal reach the outer program alone, which passes their signals on
		Pdeathsig:  syscall.SIGKILL,
	}
	if !mayMakeNamespaces() {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd, ends{inner, outer}, nil
}

type ends [2]*os.File

func (e ends) Close() error { return errors.Join(e[0].Close(), e[1].Close()) }

// mayMakeNamespaces tells whether this process may do so as it is, without a user namespace.
func mayMakeNamespaces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	const both = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return data[0].Effective&both == both
}

// Inside tells whether this process was started by Command.
func Inside() bool { return os.Getenv(marker) != "" && os.Getpid() == 1 }

// Enter brings the program into the sandbox. It is called before anything else is started. Outside, it runs the program again inside, with the same arguments and
// the same standard input, output and error, passes signals on, and returns when that has ended: inside is false, and code its exit code. Inside, it returns true,
// and the process is the first of its namespaces: everything in there ends with it, and it ends with the outer one. An error says that there is no sandbox to be had
// here, and why; nothing has been run then.
func Enter() (inside bool, code int, err error) {
	if Inside() {
		if err := settle(); err != nil {
			return true, 0, fmt.Errorf("settle in the sandbox: %w", err)
		}
		return true, 0, nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, release, err := Command(os.Args[1:]...)
	if err != nil {
		return false, 0, err
	}
	defer release.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer func() { signal.Stop(signals); close(signals) }()
	if err := cmd.Start(); err != nil {
		return false, 0, Explain(err)
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return false, exit.ExitCode(), nil
	default:
		fmt.Fprintf(os.Stderr, "ackproof: the process in the sandbox ended: %v\n", err)
		return false, model.ExitCrash, nil
	}
}

// Explain says what an error of starting a Command means.
func Explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.ENOSPC):
		hint = ": user.max_user_namespaces or another limit of namespaces is reached, or is 0 (see /proc/sys/user)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		hint = ": this user may not make user namespaces (look at kernel.apparmor_restrict_unprivileged_userns, kernel.unprivileged_userns_clone and the container's seccomp profile)"
	case errors.Is(err, unix.EINVAL):
		hint = ": the kernel has no user, network or process namespaces"
	}
	return fmt.Errorf("make the namespaces of the sandbox: %w%s", err, hint)
}

// settle makes the place habitable: no mount reaches the world outside, /proc shows this process namespace, loopback is up, and the end of the outer program ends
// this one.
func settle() error {
	unix.CloseOnExec(lifeline)
	go func() {
		io.Copy(io.Discard, os.NewFile(lifeline, "lifeline"))
		// Pdeathsig does not reach a process whose parent died before it could ask for the signal.
		os.Exit(model.ExitCrash)
	}()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make all mounts private: %w", err)
	}
	if self, _ := os.Readlink("/proc/self"); self != strconv.Itoa(os.Getpid()) {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc for the processes of the sandbox (in a container, parts of /proc may be masked, which forbids it): %w", err)
		}
	}
	return nil
}

// withoutMarker is the environment for processes that are not to think that they were started by Command.
func withoutMarker(env []string) []string {
	var out []string
	for _, v := range env {
		if !strings.HasPrefix(v, marker+"=") {
			out = append(out, v)
		}
	}
	return out
}
