package lossy

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Attach mounts the disk for a new life of the node, in a mount namespace of the calling thread alone: processes that the thread starts see the disk, nobody else does, and
// the mount ends by itself when the thread and all of them have ended, however the harness ends. The goroutine must have the thread for itself (runtime.LockOSThread) until it ends, and it takes
// the right to mount: root, or a user namespace of one's own. The mount of the life before ends. What lies in the folder at the first call counts as flushed.
func (f *FS) Attach() error {
	if err := f.takeIn(); err != nil {
		return err
	}
	f.endMount()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount the disk at %s: make a mount namespace: %w", f.dir, err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount the disk at %s: keep the mount to this namespace: %w", f.dir, err)
	}
	// Without O_CLOEXEC the node would hold the connection, and whatever it waits for in it after the harness has died it would wait for for ever.
	fd, err := syscall.Open(device, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount the disk at %s: open %s: %w", f.dir, device, err)
	}
	m := newMount(f)
	// The kernel looks at the type of the root only.
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,max_read=%d", fd, folderMode, os.Geteuid(), os.Getegid(), maxTransfer)
	if err := syscall.Mount("lossy", f.dir, "fuse.lossy", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		syscall.Close(fd)
		return fmt.Errorf("mount the disk at %s: %w", f.dir, err)
	}
	s, err := fuse.NewServer(newServer(m), fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{
		MaxWrite: maxTransfer, DisableXAttrs: true, DisableReadDirPlus: true, ExplicitDataCacheControl: true, ExtraCapabilities: f.capabilities(),
	})
	if err != nil {
		syscall.Close(fd)
		return fmt.Errorf("serve the disk at %s: %w", f.dir, err)
	}
	go s.Serve() // until the mount is gone
	f.mu.Lock()
	f.mount = m
	f.mounts++
	f.mu.Unlock()
	return nil
}

const (
	device = "/dev/fuse"
	// maxTransfer is the most that one read or write carries, in bytes: large writes are torn within, not between.
	maxTransfer = 512 << 10
)

// capabilities: with Direct, mappings shall work nevertheless (Linux 6.6).
func (f *FS) capabilities() uint64 {
	if f.o.Direct {
		return fuse.CAP_DIRECT_IO_ALLOW_MMAP
	}
	return 0
}

// Available tells whether Attach works here, and if not why. It tries.
func Available() (ok bool, why string) {
	dir, err := os.MkdirTemp("", "ackproof-lossy")
	if err != nil {
		return false, err.Error()
	}
	defer os.RemoveAll(dir)
	seen := dir + "/seen"
	if err := os.Mkdir(seen, 0o700); err != nil {
		return false, err.Error()
	}
	f, err := New(seen, dir+"/back", Options{})
	if err != nil {
		return false, err.Error()
	}
	defer f.Close()
	tried := make(chan error)
	go func() { // it takes its thread along
		runtime.LockOSThread()
		tried <- f.try()
	}()
	if err := <-tried; err != nil {
		return false, strings.TrimPrefix(err.Error(), "mount the disk at "+seen+": ")
	}
	return true, "FUSE, in a mount namespace of each node"
}

func (f *FS) try() error {
	if err := f.Attach(); err != nil {
		return err
	}
	// Not by package os: Go's poller must not wait for a file system that the same program serves.
	fd, err := syscall.Open(f.dir+"/probe", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer syscall.Close(fd)
	if _, err := syscall.Write(fd, []byte("probe")); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	if err := syscall.Fsync(fd); err != nil {
		return fmt.Errorf("flush a file: %w", err)
	}
	return nil
}

func owner(info os.FileInfo) (uid, gid uint32) {
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid
}
