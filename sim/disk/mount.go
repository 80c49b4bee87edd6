package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"ackproof/broker/storage/files"
)

// ErrStopped: the process that asks is no longer there. Nobody sees it but a simulator that lets a dead process run on.
var ErrStopped = errors.New("the process has ended")

// mount is the file system of one process.
type mount struct {
	disk *Disk
	dead bool
}

var _ files.FS = (*mount)(nil)

// before is asked before an operation that changes something: it may fail, and this may be where the process ends.
func (m *mount) before(kind Kind, path string, bytes int) (Fault, error) {
	if m.dead {
		return Fault{}, ErrStopped
	}
	d := m.disk
	op := Op{Number: d.number, Kind: kind, Path: path, Bytes: bytes}
	if kind != Read {
		if d.number == d.stop {
			fault := Fault{}
			if kind == Write && d.torn != nil {
				fault.Keep = []int{0, bytes / 2, bytes}[d.torn(Choice{What: Torn, Path: path, Of: 1, Versions: 3})]
			}
			d.stop = -1
			d.Kill()
			return fault, ErrStopped
		}
		d.number++
	}
	d.took += d.Speed.Op + time.Duration(bytes)*d.Speed.PerMByte>>20
	if kind == Flush || kind == FlushDir {
		d.took += d.Speed.Flush
	}
	if d.Fault == nil {
		return Fault{}, nil
	}
	fault := d.Fault(op)
	if fault.Err != nil {
		return fault, fmt.Errorf("%s %s: %w", kind, path, fault.Err)
	}
	return fault, nil
}

// List implements files.FS.
func (m *mount) List(dir string) ([]files.Entry, error) {
	if m.dead {
		return nil, ErrStopped
	}
	f, err := m.disk.dir(dir)
	if err != nil {
		return nil, err
	}
	var out []files.Entry
	for _, name := range f.sorted() {
		e := files.Entry{Name: name, Dir: true}
		if file, ok := f.names[name].(*inode); ok {
			e.Dir, e.Size = false, int64(len(file.content))
		}
		out = append(out, e)
	}
	return out, nil
}

// Open implements files.FS.
func (m *mount) Open(name string) (files.Reader, error) {
	if m.dead {
		return nil, ErrStopped
	}
	f, err := m.disk.file(name)
	if err != nil {
		return nil, err
	}
	return &open{mount: m, name: name, file: f}, nil
}

// Create implements files.FS.
func (m *mount) Create(name string) (files.Writer, error) {
	dir, err := m.disk.dir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	if _, err := m.before(Create, name, 0); err != nil {
		return nil, err
	}
	switch n := dir.names[path.Base(name)].(type) {
	case *folder:
		return nil, fmt.Errorf("create %s: it is a folder", name)
	case *inode:
		n.cut(0)
		return &open{mount: m, name: name, file: n}, nil
	}
	f := &inode{}
	dir.change(nameChange{name: path.Base(name), to: f})
	return &open{mount: m, name: name, file: f}, nil
}

// Edit implements files.FS.
func (m *mount) Edit(name string) (files.Writer, error) {
	if m.dead {
		return nil, ErrStopped
	}
	f, err := m.disk.file(name)
	if err != nil {
		return nil, err
	}
	return &open{mount: m, name: name, file: f}, nil
}

// Rename implements files.FS.
func (m *mount) Rename(from, to string) error {
	if path.Dir(from) != path.Dir(to) {
		return fmt.Errorf("rename %s to %s: both must be in one folder", from, to)
	}
	dir, err := m.disk.dir(path.Dir(from))
	if err != nil {
		return err
	}
	n, ok := dir.names[path.Base(from)]
	if !ok {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	if _, err := m.before(Rename, to, 0); err != nil {
		return err
	}
	dir.change(nameChange{gone: path.Base(from), name: path.Base(to), to: n})
	return nil
}

// Remove implements files.FS.
func (m *mount) Remove(name string) error {
	dir, err := m.disk.dir(path.Dir(name))
	if err != nil {
		return err
	}
	n, ok := dir.names[path.Base(name)]
	if !ok {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	if sub, ok := n.(*folder); ok && len(sub.names) > 0 {
		return fmt.Errorf("remove %s: the folder is not empty: %w", name, fs.ErrExist)
	}
	if _, err := m.before(Remove, name, 0); err != nil {
		return err
	}
	dir.change(nameChange{gone: path.Base(name)})
	return nil
}

// MakeDir implements files.FS.
func (m *mount) MakeDir(name string) error {
	if path.Clean(name) == "/" || path.Clean(name) == "." {
		return fmt.Errorf("make folder %s: %w", name, fs.ErrExist)
	}
	dir, err := m.disk.dir(path.Dir(name))
	if err != nil {
		return err
	}
	if dir.names[path.Base(name)] != nil {
		return fmt.Errorf("make folder %s: %w", name, fs.ErrExist)
	}
	if _, err := m.before(MakeDir, name, 0); err != nil {
		return err
	}
	dir.change(nameChange{name: path.Base(name), to: newFolder()})
	return nil
}

// FlushDir implements files.FS.
func (m *mount) FlushDir(name string) error {
	dir, err := m.disk.dir(name)
	if err != nil {
		return err
	}
	fault, err := m.before(FlushDir, name, 0)
	if err != nil {
		if fault.Drop {
			dir.changes = nil
		}
		return err
	}
	dir.flush()
	return nil
}

// Lock implements files.FS.
func (m *mount) Lock(dir string) (io.Closer, error) {
	if m.dead {
		return nil, ErrStopped
	}
	if _, err := m.disk.dir(dir); err != nil {
		return nil, err
	}
	if dir = path.Clean(dir); m.disk.locks[dir] {
		return nil, fmt.Errorf("%s: %w", dir, files.ErrLocked)
	}
	m.disk.locks[dir] = true
	return &lock{m, dir}, nil
}

type lock struct {
	mount *mount
	dir   string
}

// Close gives the lock back.
func (l *lock) Close() error {
	if !l.mount.dead {
		delete(l.mount.disk.locks, l.dir)
	}
	return nil
}

// open is an open file.
type open struct {
	mount  *mount
	name   string
	file   *inode
	closed bool
}

func (o *open) usable() error {
	switch {
	case o.mount.dead:
		return ErrStopped
	case o.closed:
		return fmt.Errorf("%s: %w", o.name, fs.ErrClosed)
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *open) ReadAt(p []byte, at int64) (int, error) {
	if err := o.usable(); err != nil {
		return 0, err
	}
	if _, err := o.mount.before(Read, o.name, len(p)); err != nil {
		return 0, err
	}
	if at < 0 || at >= int64(len(o.file.content)) {
		return 0, io.EOF
	}
	n := copy(p, o.file.content[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Append implements files.Writer.
func (o *open) Append(parts ...[]byte) error {
	_, err := o.write(slices.Concat(parts...), int64(len(o.file.content)))
	return err
}

// WriteAt implements files.Writer.
func (o *open) WriteAt(p []byte, at int64) (int, error) {
	if end := int64(len(o.file.content)); at < 0 || at > end {
		return 0, fmt.Errorf("write %s at %d: it ends at %d", o.name, at, end)
	}
	return o.write(p, at)
}

func (o *open) write(p []byte, at int64) (int, error) {
	if err := o.usable(); err != nil {
		return 0, err
	}
	fault, err := o.mount.before(Write, o.name, len(p))
	if err != nil {
		o.file.write(p[:min(max(fault.Keep, 0), len(p))], at)
		return 0, err
	}
	o.file.write(p, at)
	return len(p), nil
}

// Truncate implements files.Writer.
func (o *open) Truncate(size int64) error {
	if err := o.usable(); err != nil {
		return err
	}
	if _, err := o.mount.before(Truncate, o.name, 0); err != nil {
		return err
	}
	o.file.cut(size)
	return nil
}

// Flush implements files.Writer.
func (o *open) Flush() error {
	if err := o.usable(); err != nil {
		return err
	}
	fault, err := o.mount.before(Flush, o.name, 0)
	if err != nil {
		if fault.Drop {
			o.file.forget()
		}
		return err
	}
	o.file.flush()
	return nil
}

// Close implements files.Reader and files.Writer.
func (o *open) Close() error {
	if err := o.usable(); err != nil {
		return err
	}
	o.closed = true
	return nil
}
