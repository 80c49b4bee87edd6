package lossy

import (
	"os"
	"path"
	"slices"
	"syscall"
	"time"
)

// Kinds of objects, as in st_mode.
const (
	kindMask   = syscall.S_IFMT
	folderMode = syscall.S_IFDIR
	fileMode   = syscall.S_IFREG
	linkMode   = syscall.S_IFLNK
)

// object is a file, a folder or a symbolic link. FS.mu guards it, but for the content.
type object struct {
	number   uint64
	mode     uint32
	uid, gid uint32
	links    uint32 // names that point to it
	refs     int    // names, changes in the journal, mounts and open handles that know it; at 0 it is gone
	parent   *object
	name     string             // in the parent; the last one that it got
	names    map[string]*object // of a folder; nil for others
	target   string             // of a symbolic link
	mtime    time.Time          // of folders and links; files have theirs with the content

	content
}

// newObject makes an object that nobody knows yet. FS.mu is held.
func (f *FS) newObject(mode uint32) *object {
	f.next++
	o := &object{number: f.next, mode: mode, mtime: time.Now()}
	o.cut = noCut
	if mode&kindMask == folderMode {
		o.names = map[string]*object{}
	}
	f.objects[o.number] = o
	return o
}

// forget takes n references away. FS.mu is held.
func (f *FS) forget(o *object, n int) {
	if o == nil {
		return
	}
	if o.refs -= n; o.refs > 0 {
		return
	}
	delete(f.objects, o.number)
	for name := range o.names {
		f.edit(o, name, nil)
	}
	if o.mode&kindMask == fileMode {
		o.close()
		os.Remove(f.backing(o)) // if it stays, Close removes it with the folder
	}
}

// edit makes a name point to another object, or to none. FS.mu is held.
func (f *FS) edit(dir *object, name string, to *object) {
	was := dir.names[name]
	if to != nil {
		to.refs, to.links = to.refs+1, to.links+1
		to.parent, to.name = dir, name
		dir.names[name] = to
	} else {
		delete(dir.names, name)
	}
	dir.mtime = time.Now()
	if was != nil {
		was.links--
		f.forget(was, 1)
	}
}

// step is one name that changes its meaning.
type step struct {
	dir     *object
	name    string
	was, is *object // nil: none
}

// change is what one operation did to names. All of it lasts, or nothing.
type change struct {
	at    time.Time
	steps []step
}

// rename the meaning of names, in a way that may be lost. FS.mu is held.
func (f *FS) change(steps ...step) {
	c := &change{at: time.Now(), steps: steps}
	for i := range steps {
		s := &steps[i]
		s.was = s.dir.names[s.name]
		for _, o := range []*object{s.dir, s.was, s.is} {
			if o != nil {
				o.refs++
			}
		}
	}
	f.journal = append(f.journal, c)
	for _, s := range steps {
		f.edit(s.dir, s.name, s.is)
	}
}

// release the objects that a change has held.
func (f *FS) release(c *change) {
	for _, s := range c.steps {
		f.forget(s.was, 1)
		f.forget(s.is, 1)
		f.forget(s.dir, 1)
	}
}

// commit makes changes last; the caller takes them out of the journal. FS.mu is held.
func (f *FS) commit(changes []*change) {
	for _, c := range changes {
		f.release(c)
	}
}

// commitFolder makes the changes in a folder last. One that touches two folders, a rename, lasts as a whole with either. FS.mu is held.
func (f *FS) commitFolder(dir *object) {
	var done []*change
	f.journal = slices.DeleteFunc(f.journal, func(c *change) bool {
		if slices.ContainsFunc(c.steps, func(s step) bool { return s.dir == dir }) {
			done = append(done, c)
			return true
		}
		return false
	})
	f.commit(done)
}

// undo takes back the changes from number `from` on. FS.mu is held.
func (f *FS) undo(from int) {
	for i := len(f.journal) - 1; i >= from; i-- {
		c := f.journal[i]
		for _, s := range slices.Backward(c.steps) {
			f.edit(s.dir, s.name, s.was)
		}
		f.release(c)
	}
	f.commit(f.journal[:from])
	f.journal = nil
}

// path of an object from the root, for rules and people. FS.mu is held.
func (o *object) path() string {
	p := ""
	for ; o.parent != nil; o = o.parent {
		p = path.Join(o.name, p)
	}
	return p
}
