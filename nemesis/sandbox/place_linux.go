package sandbox

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// tunDevice is where TUN links are made.
const tunDevice = "/dev/net/tun"

// onThread does something on a thread of its own, which ends afterwards: it may change what belongs to a thread, such as its network namespace.
func onThread(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- do()
	}()
	return <-done
}

// place is the network namespace of one node.
type place struct {
	ns   *os.File
	link *os.File // the switch's end of its only link
}

// newPlace makes a namespace with that address.
func newPlace(addr netip.Addr) (*place, error) {
	p := &place{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		if err != nil {
			return err
		}
		if p.link, err = newLink("eth0", addr); err != nil {
			ns.Close()
			return err
		}
		p.ns = ns
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// close gives the namespace up; it is gone when its last process is. The link is the switch's.
func (p *place) close() error { return p.ns.Close() }

// enter moves the calling thread into the namespace.
func (p *place) enter() error {
	if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace of the node: %w", err)
	}
	return nil
}

// start starts the command in the namespace, as the first process of a process namespace. The calling thread belongs to it from then on.
func (p *place) start(cmd *exec.Cmd) error {
	if err := p.enter(); err != nil {
		return err
	}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID
	return cmd.Start()
}

// newLink makes a TUN link in the network namespace of the calling thread, with that address and the whole network of the sandbox behind it, and brings loopback
// up. It returns the other end.
func newLink(name string, addr netip.Addr) (*os.File, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", tunDevice, err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make a TUN link: %w", err)
	}
	link := os.NewFile(uintptr(fd), "link of "+addr.String())
	if err := configure(name, addr); err != nil {
		link.Close()
		return nil, err
	}
	return link, nil
}

// configure sets up the network of the calling thread.
func configure(name string, addr netip.Addr) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	set := func(name, what string, request uint, fill func(*unix.Ifreq) error) {
		if err != nil {
			return
		}
		var r *unix.Ifreq
		if r, err = unix.NewIfreq(name); err != nil {
			return
		}
		if err = fill(r); err == nil {
			err = unix.IoctlIfreq(s, request, r)
		}
		if err != nil {
			err = fmt.Errorf("set the %s of %s: %w", what, name, err)
		}
	}
	address := func(a netip.Addr) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(a.AsSlice()) }
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	set("lo", "state", unix.SIOCSIFFLAGS, up)
	set(name, "MTU", unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtuBytes); return nil })
	set(name, "address", unix.SIOCSIFADDR, address(addr))
	set(name, "network", unix.SIOCSIFNETMASK, address(netip.MustParseAddr("255.255.0.0")))
	set(name, "state", unix.SIOCSIFFLAGS, up)
	if addr == harnessAddr {
		// All addresses in a network of the loopback device are its own: so the clients have theirs.
		set("lo:1", "address", unix.SIOCSIFADDR, address(clientNet.Addr()))
		set("lo:1", "network", unix.SIOCSIFNETMASK, address(netip.MustParseAddr("255.255.128.0")))
	}
	if err != nil {
		return err
	}
	// TCP waits longer and longer while nothing gets through. With at most a second (kernels from 6.15 on) a healed link is seen to be healed within that.
	os.WriteFile("/proc/sys/net/ipv4/tcp_rto_max_ms", []byte("1000"), 0)
	return nil
}
