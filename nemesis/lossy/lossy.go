// Package lossy is a disk that can lose its power: a file system for the processes of one node, which keeps apart what they wrote and what they flushed. A loss of
// power takes what was not flushed, in one way or another; rules make single operations fail, hang, or lie.
//
// What is written goes to the backing folder at once; what it replaces, if that was flushed, is kept in memory until the next flush (an undo log). So an append-only log costs no
// memory, and reads need no merging. Names live in memory alone: a file of the backing folder is called by its number, and a name can be taken back without
// moving it. Close gives the files their names back.
//
// What lasts follows one of two models, see Model. Beside what they say, two things are promised that stores build on and real disks keep: a name points to one file or to another, never to
// a mixture, and a sector is written as a whole. Owner, mode and times of a file last at once. Of a sector that was written twice without a flush, the state in between is never what is left.
//
// The package knows nothing of faults as a schedule has them, nor of systems. It serves through FUSE on Linux; elsewhere Available says that it cannot. sync(2), syncfs(2) and
// sync_file_range(2) make nothing last, because the kernel does not pass them on. Start reading at FS; then content.go and names.go, which are the model.
package lossy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Model is what makes the name of a file last.
type Model int

// The models.
const (
	// Ext4 is what the most used file system does: any flush makes all earlier changes of names last, and a rename over a file flushes what is renamed (auto_da_alloc).
	Ext4 Model = iota
	// Posix is what is promised: a name lasts once its folder was flushed.
	Posix
)

func (m Model) String() string {
	if m == Posix {
		return "posix"
	}
	return "ext4"
}

// Options of a disk. The zero value is a disk like an ordinary one.
type Options struct {
	Model Model
	// Sector in bytes is what is written as a whole, 512 or 4096; 0: 512.
	Sector int
	// WriteBack: what was written so long ago lasts without a flush, as the kernel's own write-back would have it; 0: 30 s, which is Linux's dirty_expire_centisecs; < 0: never.
	WriteBack time.Duration
	// FlushTime is how long a flush takes; what it flushes lasts at its end. 0: no time.
	FlushTime time.Duration
	// Direct: reads and writes do not go through the kernel's cache, as with O_DIRECT everywhere. A mapping still does.
	Direct bool
}

const (
	defaultSector    = 512
	defaultWriteBack = 30 * time.Second
)

// FS is the disk of one node. It outlives the processes that use it, each of which sees it through a mount of its own (Attach).
type FS struct {
	o    Options
	dir  string // where processes see it
	back string // where the content of its files lies

	rules rules

	// mu guards names and numbers; whoever holds it may lock an object, not the other way round.
	mu      sync.Mutex
	root    *object
	next    uint64
	objects map[uint64]*object
	journal []*change // changes of names that may be lost, oldest first
	mount   *mount    // the last one, if it has not ended
	mounts  int       // how many there were
	taken   bool      // what lay in dir before the first mount is on the disk
	closed  bool

	stop    chan struct{} // ends the write-back
	stopped chan struct{}
}

// New makes a disk that processes will see in dir, which must exist. Its content is kept in back, which is made, and must be on the same file system.
func New(dir, back string, o Options) (*FS, error) {
	switch o.Sector {
	case 0:
		o.Sector = defaultSector
	case 512, 4096:
	default:
		return nil, fmt.Errorf("disk for %s: sectors of %d bytes, expected 512 or 4096", dir, o.Sector)
	}
	if o.WriteBack == 0 {
		o.WriteBack = defaultWriteBack
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("disk for %s: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("disk for %s: it is a file, expected a folder", dir)
	}
	if err := os.Mkdir(back, 0o700); err != nil {
		return nil, fmt.Errorf("disk for %s: make the folder of its content: %w", dir, err)
	}
	f := &FS{o: o, dir: dir, back: back, objects: map[uint64]*object{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	f.root = f.newObject(folderMode | uint32(info.Mode().Perm()))
	f.root.uid, f.root.gid = owner(info)
	f.root.refs++ // never forgotten
	go f.writeBack()
	return f, nil
}

// writeBack makes last what was written long ago.
func (f *FS) writeBack() {
	defer close(f.stopped)
	if f.o.WriteBack < 0 {
		return
	}
	tick := time.NewTicker(max(f.o.WriteBack/10, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case now := <-tick.C:
			f.flushOlder(now.Add(-f.o.WriteBack))
		}
	}
}

// flushOlder makes everything last that was written before the moment, as far as a file or a name has nothing younger in it.
func (f *FS) flushOlder(then time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		f.flushContentOlder(o, then)
	}
	n := 0
	for n < len(f.journal) && f.journal[n].at.Before(then) {
		n++
	}
	f.commit(f.journal[:n])
	f.journal = f.journal[n:]
}

// Settle makes everything last, as a clean end of the machine would.
func (f *FS) Settle() { f.flushOlder(time.Now().Add(time.Hour)) }

// Close ends the last mount and gives the files of the disk, as they are, their names in the folder where processes saw them. The node's processes must be gone. It may be called twice.
func (f *FS) Close() error {
	f.mu.Lock()
	again := f.closed
	f.closed = true
	f.mu.Unlock()
	if again {
		return nil
	}
	close(f.stop)
	<-f.stopped
	f.endMount()
	return f.giveBack()
}

// Freeze is the moment at which the power goes, for disks that shall lose it at the same one: from now on nothing that a process asks of the disk has an effect, and nobody is
// answered, until PowerLoss. A process that waits for an answer can be killed.
func (f *FS) Freeze() {
	f.mu.Lock()
	m := f.mount
	f.mu.Unlock()
	if m != nil {
		m.calm.Do(func() { close(m.still) })
	}
}

// Attached counts the calls of Attach that have succeeded.
func (f *FS) Attached() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mounts
}

// endMount ends the last mount: nothing that still comes through it has an effect.
func (f *FS) endMount() {
	f.mu.Lock()
	m := f.mount
	f.mount = nil
	f.mu.Unlock()
	if m != nil {
		m.end()
	}
}

// takeIn puts on the disk what lies in the folder; it counts as flushed.
func (f *FS) takeIn() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken {
		return nil
	}
	f.taken = true
	return f.takeFolder(f.root, f.dir)
}

func (f *FS) takeFolder(into *object, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("take in %s: %w", dir, err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("take in %s: %w", path, err)
		}
		o := f.newObject(uint32(info.Mode().Perm()))
		o.uid, o.gid = owner(info)
		o.mtime, o.changed = info.ModTime(), info.ModTime()
		switch {
		case info.IsDir():
			o.mode |= folderMode
			o.names = map[string]*object{}
			err = f.takeFolder(o, path)
		case info.Mode().IsRegular():
			o.mode |= fileMode
			o.size, o.durable = info.Size(), info.Size()
			err = os.Rename(path, f.backing(o))
		case info.Mode()&os.ModeSymlink != 0:
			o.mode |= linkMode
			o.target, err = os.Readlink(path)
		default:
			err = fmt.Errorf("it is neither a file nor a folder nor a symbolic link")
		}
		if err != nil {
			return fmt.Errorf("take in %s: %w", path, err)
		}
		f.edit(into, e.Name(), o)
	}
	return nil
}

// giveBack is the reverse of takeIn.
func (f *FS) giveBack() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.taken {
		return os.Remove(f.back)
	}
	err := errors.Join(os.MkdirAll(f.dir, 0o755), f.giveFolder(f.root, f.dir, map[*object]string{}), os.RemoveAll(f.back))
	if err != nil {
		return fmt.Errorf("give the files of the disk at %s back: %w", f.dir, err)
	}
	return nil
}

func (f *FS) giveFolder(from *object, dir string, given map[*object]string) error {
	var errs []error
	for name, o := range from.names {
		path := filepath.Join(dir, name)
		switch {
		case o.names != nil:
			if err := os.Mkdir(path, os.FileMode(o.mode&0o777)|0o700); err != nil && !errors.Is(err, os.ErrExist) {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, f.giveFolder(o, path, given))
		case o.mode&kindMask == linkMode:
			os.Remove(path)
			errs = append(errs, os.Symlink(o.target, path))
		case given[o] != "":
			errs = append(errs, os.Link(given[o], path))
		default:
			errs = append(errs, f.giveFile(o, path))
			given[o] = path
		}
	}
	return errors.Join(errs...)
}

func (f *FS) giveFile(o *object, path string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := f.open(o); err != nil { // also makes it, if nothing was ever written
		return err
	}
	o.file.Close()
	o.file = nil
	if err := os.Rename(f.backing(o), path); err != nil {
		return err
	}
	return errors.Join(os.Chmod(path, os.FileMode(o.mode&0o777)), os.Chtimes(path, time.Time{}, o.changed))
}

// backing is where the content of a file lies.
func (f *FS) backing(o *object) string {
	return filepath.Join(f.back, strconv.FormatUint(o.number, 10))
}
