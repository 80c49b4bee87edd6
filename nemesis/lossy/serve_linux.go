package lossy

import (
	"errors"
	"io"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// server answers the kernel. What it does not have, the kernel does without: locks and access rights are its own, copies within the file system become reads and writes.
type server struct {
	fuse.RawFileSystem
	*mount
}

// forever: nobody but the kernel changes anything while a mount lives.
const forever = 24 * time.Hour

func newServer(m *mount) *server { return &server{fuse.NewDefaultRawFileSystem(), m} }

// String is the type of the file system, as /proc/mounts has it.
func (s *server) String() string { return "lossy" }

// at finds what the request is about. FS.mu is held.
func (s *server) at(id uint64) *object {
	if id == fuse.FUSE_ROOT_ID {
		return s.f.root
	}
	return s.f.objects[id]
}

// of finds it without the lock.
func (s *server) of(id uint64) *object {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.at(id)
}

func (s *server) attr(o *object, out *fuse.Attr) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, when := uint64(o.size), o.changed
	switch {
	case o.names != nil:
		size = 4096
	case o.target != "":
		size = uint64(len(o.target))
	}
	if when.Before(o.mtime) {
		when = o.mtime
	}
	*out = fuse.Attr{Ino: o.number, Size: size, Blocks: (size + 511) / 512, Mode: o.mode, Nlink: o.links, Owner: fuse.Owner{Uid: o.uid, Gid: o.gid}, Blksize: 4096}
	if o.names != nil {
		out.Nlink = 2
	}
	out.SetTimes(&when, &when, &when)
}

// entry tells the kernel of an object. FS.mu is held.
func (s *server) entry(o *object, out *fuse.EntryOut) {
	s.tell(o)
	out.NodeId, out.Generation = o.number, 1
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(forever)
	s.attr(o, &out.Attr)
}

// fault asks the rules: what hits the operation, and what the process is told at once.
func (s *server) fault(op Op, cancel <-chan struct{}, h *fuse.InHeader, name string) (*Ruling, fuse.Status) {
	r := s.f.rules.match(op, func() string {
		s.f.mu.Lock()
		defer s.f.mu.Unlock()
		o := s.at(h.NodeId)
		switch {
		case o == nil:
			return name
		case name == "":
			return o.path()
		}
		return join(o.path(), name)
	})
	var long time.Duration
	if op == Flush || op == FlushDir {
		long = s.f.o.FlushTime
	}
	if !s.rest(long, r, cancel, h.Pid) {
		return r, fuse.EINTR
	}
	if r == nil {
		return nil, fuse.OK
	}
	return r, fuse.Status(r.rule.Err)
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func status(err error) fuse.Status {
	var e syscall.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.As(err, &e):
		return fuse.Status(e)
	}
	return fuse.EIO
}

func (s *server) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if !s.enter(cancel, h.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	dir := s.at(h.NodeId)
	if dir == nil {
		return fuse.ENOENT
	}
	o := dir.names[name]
	if o == nil {
		return fuse.ENOENT
	}
	s.entry(o, out)
	return fuse.OK
}

func (s *server) Forget(id, n uint64) {
	if !s.enterNow() {
		return
	}
	defer s.exit()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if o := s.at(id); o != nil {
		s.forgotten(o, n)
	}
}

func (s *server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	o := s.of(in.NodeId)
	if o == nil {
		return fuse.ENOENT
	}
	out.SetTimeout(forever)
	s.attr(o, &out.Attr)
	return fuse.OK
}

func (s *server) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	o := s.of(in.NodeId)
	if o == nil {
		return fuse.ENOENT
	}
	if size, ok := in.GetSize(); ok {
		if _, code := s.fault(Truncate, cancel, &in.InHeader, ""); !code.Ok() {
			return code
		}
		if o.mode&kindMask != fileMode {
			return fuse.EINVAL
		}
		if err := s.f.resize(o, int64(size)); err != nil {
			return status(err)
		}
	}
	s.f.mu.Lock()
	if mode, ok := in.GetMode(); ok {
		o.mode = o.mode&kindMask | mode&^kindMask
	}
	if uid, ok := in.GetUID(); ok {
		o.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		o.gid = gid
	}
	if when, ok := in.GetMTime(); ok {
		o.mu.Lock()
		o.mtime, o.changed = when, when
		o.mu.Unlock()
	}
	s.f.mu.Unlock()
	out.SetTimeout(forever)
	s.attr(o, &out.Attr)
	return fuse.OK
}

// make a new object and its name. FS.mu is held.
func (s *server) make(h *fuse.InHeader, name string, mode uint32) (*object, fuse.Status) {
	dir := s.at(h.NodeId)
	switch {
	case dir == nil || dir.names == nil || dir != s.f.root && dir.links == 0:
		return nil, fuse.ENOENT
	case dir.names[name] != nil:
		return nil, fuse.Status(syscall.EEXIST)
	}
	o := s.f.newObject(mode)
	o.uid, o.gid = h.Uid, h.Gid
	s.f.change(step{dir: dir, name: name, is: o})
	return o, fuse.OK
}

func (s *server) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Create, cancel, &in.InHeader, name); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o, code := s.make(&in.InHeader, name, fileMode|in.Mode&^kindMask)
	if !code.Ok() {
		return code
	}
	s.entry(o, &out.EntryOut)
	out.Fh, out.OpenFlags = s.hold(o), s.openFlags()
	return fuse.OK
}

// openFlags: the kernel's cache stays good, since nobody else changes the file.
func (s *server) openFlags() uint32 {
	if s.f.o.Direct {
		return fuse.FOPEN_DIRECT_IO
	}
	return fuse.FOPEN_KEEP_CACHE
}

func (s *server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Open, cancel, &in.InHeader, ""); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o := s.at(in.NodeId)
	if o == nil {
		return fuse.ENOENT
	}
	out.Fh, out.OpenFlags = s.hold(o), s.openFlags()
	return fuse.OK
}

func (s *server) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { s.releaseHandle(in.Fh) }
func (s *server) ReleaseDir(in *fuse.ReleaseIn)                 { s.releaseHandle(in.Fh) }

func (s *server) releaseHandle(number uint64) {
	if !s.enterNow() {
		return
	}
	defer s.exit()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.drop(number)
}

func (s *server) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if !s.enter(cancel, in.Pid) {
		return nil, fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Read, cancel, &in.InHeader, ""); !code.Ok() {
		return nil, code
	}
	o := s.of(in.NodeId)
	if o == nil {
		return nil, fuse.ENOENT
	}
	n, err := s.f.read(o, buf, int64(in.Offset))
	if err != nil && err != io.EOF {
		return nil, status(err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

func (s *server) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if !s.enter(cancel, in.Pid) {
		return uint32(len(data)), fuse.OK // what the kernel writes of a mapping after the power went goes nowhere
	}
	defer s.exit()
	r, code := s.fault(Write, cancel, &in.InHeader, "")
	if !code.Ok() {
		return 0, code
	}
	if r != nil && r.rule.Short && len(data) > 1 {
		data = data[:len(data)/2]
	}
	o := s.of(in.NodeId)
	if o == nil {
		return 0, fuse.ENOENT
	}
	n, err := s.f.write(o, data, int64(in.Offset))
	if n > 0 {
		return uint32(n), fuse.OK
	}
	return 0, status(err)
}

// Flush is close(2), at which the kernel has written what a mapping changed. There is no more to it.
func (s *server) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

func (s *server) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	o := s.of(in.NodeId)
	if o == nil {
		return fuse.ENOENT
	}
	r, code := s.fault(Flush, cancel, &in.InHeader, "")
	switch {
	case r != nil && r.rule.Drop && code == fuse.Status(r.rule.Err):
		if err := s.f.drop(o); err != nil {
			return status(err)
		}
		return code
	case !code.Ok():
		return code
	case r != nil && r.rule.Lie:
		return fuse.OK
	}
	s.f.flushContent(o)
	if s.f.o.Model == Ext4 {
		s.f.mu.Lock()
		s.f.commit(s.f.journal)
		s.f.journal = nil
		s.f.mu.Unlock()
	}
	return fuse.OK
}

func (s *server) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	r, code := s.fault(FlushDir, cancel, &in.InHeader, "")
	switch {
	case !code.Ok():
		return code
	case r != nil && r.rule.Lie:
		return fuse.OK
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o := s.at(in.NodeId)
	switch {
	case o == nil:
		return fuse.ENOENT
	case s.f.o.Model == Ext4:
		s.f.commit(s.f.journal)
		s.f.journal = nil
	default:
		s.f.commitFolder(o)
	}
	return fuse.OK
}

func (s *server) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Write, cancel, &in.InHeader, ""); !code.Ok() {
		return code
	}
	o := s.of(in.NodeId)
	switch {
	case o == nil:
		return fuse.ENOENT
	case in.Mode == unix.FALLOC_FL_KEEP_SIZE:
		return fuse.OK
	case in.Mode != 0:
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return status(s.f.grow(o, int64(in.Offset+in.Length)))
}

func (s *server) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(MakeDir, cancel, &in.InHeader, name); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o, code := s.make(&in.InHeader, name, folderMode|in.Mode&^kindMask)
	if code.Ok() {
		s.entry(o, out)
	}
	return code
}

func (s *server) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	if !s.enter(cancel, h.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Create, cancel, h, name); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o, code := s.make(h, name, linkMode|0o777)
	if code.Ok() {
		o.target = target
		s.entry(o, out)
	}
	return code
}

func (s *server) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	if !s.enter(cancel, h.Pid) {
		return nil, fuse.EIO
	}
	defer s.exit()
	o := s.of(h.NodeId)
	if o == nil {
		return nil, fuse.ENOENT
	}
	return []byte(o.target), fuse.OK
}

func (s *server) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Create, cancel, &in.InHeader, name); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	dir, o := s.at(in.NodeId), s.at(in.Oldnodeid)
	switch {
	case dir == nil || o == nil:
		return fuse.ENOENT
	case o.names != nil:
		return fuse.EPERM
	case dir.names[name] != nil:
		return fuse.Status(syscall.EEXIST)
	}
	s.f.change(step{dir: dir, name: name, is: o})
	s.entry(o, out)
	return fuse.OK
}

func (s *server) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, false)
}

func (s *server) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, true)
}

func (s *server) remove(cancel <-chan struct{}, h *fuse.InHeader, name string, folder bool) fuse.Status {
	if !s.enter(cancel, h.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Remove, cancel, h, name); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	dir := s.at(h.NodeId)
	if dir == nil {
		return fuse.ENOENT
	}
	o := dir.names[name]
	switch {
	case o == nil:
		return fuse.ENOENT
	case folder && o.names == nil:
		return fuse.ENOTDIR
	case !folder && o.names != nil:
		return fuse.Status(syscall.EISDIR)
	case len(o.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	s.f.change(step{dir: dir, name: name})
	return fuse.OK
}

func (s *server) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	if _, code := s.fault(Rename, cancel, &in.InHeader, from); !code.Ok() {
		return code
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	dir, into := s.at(in.NodeId), s.at(in.Newdir)
	if dir == nil || into == nil || dir.names[from] == nil {
		return fuse.ENOENT
	}
	o, over := dir.names[from], into.names[to]
	switch {
	case in.Flags&^uint32(unix.RENAME_NOREPLACE) != 0:
		return fuse.EINVAL
	case over == o:
		return fuse.OK
	case over != nil && in.Flags&unix.RENAME_NOREPLACE != 0:
		return fuse.Status(syscall.EEXIST)
	case over != nil && len(over.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	if over != nil && s.f.o.Model == Ext4 {
		s.f.flushContent(o)
	}
	s.f.change(step{dir: dir, name: from}, step{dir: into, name: to, is: o})
	return fuse.OK
}

func (s *server) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	o := s.at(in.NodeId)
	if o == nil {
		return fuse.ENOENT
	}
	out.Fh = s.hold(o)
	return fuse.OK
}

func (s *server) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if !s.enter(cancel, in.Pid) {
		return fuse.EIO
	}
	defer s.exit()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	h := s.handles[in.Fh]
	if h == nil {
		return fuse.EBADF
	}
	if in.Offset == 0 {
		h.entries = append([]string{".", ".."}, slices.Sorted(maps.Keys(h.o.names))...)
	}
	for _, name := range h.entries[min(int(in.Offset), len(h.entries)):] {
		e := fuse.DirEntry{Name: name, Mode: folderMode, Ino: h.o.number}
		if o := h.o.names[name]; o != nil {
			e.Mode, e.Ino = o.mode, o.number
		} else if name != "." && name != ".." {
			e.Mode = fileMode // removed meanwhile; the place in the list stays
		}
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

func (s *server) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.f.back, &st); err != nil {
		return status(err)
	}
	out.FromStatfsT(&st)
	return fuse.OK
}
