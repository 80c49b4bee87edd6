// Package disk simulates a disk: the file system that a store sees (files.FS), over memory that keeps apart what was written and what was flushed. A power
// loss takes what was not flushed, in whole or in part and in any order of sectors and names; every choice comes from the caller, so that a run can be
// repeated and crash states can be counted through. A disk can be stopped at any operation, and can fail.
//
// The model is what POSIX promises, no more: the content of a file lasts once the file was flushed, a name once its folder was. Two things are promised
// beside that, because stores build on them and real file systems keep them: a name points to one file or to another, never to a mixture, and a
// sector (SectorBytes) is written as a whole. A file that was cut shows nothing of what it had behind the cut.
//
// It is pure: no clock, no goroutine, no lock, no randomness of its own; time that operations take is added up for the caller to charge (Took). Start
// reading at Disk.
package disk

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"ackproof/broker/storage/files"
)

// SectorBytes is what a disk writes as a whole.
const SectorBytes = 512

// Kind is what an operation does.
type Kind string

// The kinds of operations. List and the opening of files are not counted: they have no effect that a crash could cut off.
const (
	Create   Kind = "create"
	Write    Kind = "write" // Append and WriteAt
	Truncate Kind = "truncate"
	Flush    Kind = "flush"
	Rename   Kind = "rename"
	Remove   Kind = "remove"
	MakeDir  Kind = "make dir"
	FlushDir Kind = "flush dir"
	Read     Kind = "read" // not counted either, but can fail
)

// Op is one operation, as it is about to happen.
type Op struct {
	Number int // how many changes there were before it on this disk
	Kind   Kind
	Path   string
	Bytes  int // of a write or read
}

// Fault says how an operation fails. The zero value lets it be.
type Fault struct {
	Err  error // files.ErrIO, files.ErrNoSpace, …; nil: none
	Keep int   // bytes of a failing write that are written nevertheless
	// Drop, of a failing flush: what was to be flushed is taken for flushed from now on, and is not. It can still be read until the power fails. The next flush
	// reports no error. That is what Linux does.
	Drop bool
}

// Speed is how long operations take. The zero value takes no time.
type Speed struct {
	Op       time.Duration // each operation
	Flush    time.Duration // each flush, of a file or a folder, on top
	PerMByte time.Duration // each 2²⁰ bytes that are written or read
}

// Disk is one node's disk. It outlives the processes that use it.
type Disk struct {
	// Fault is asked before each operation; nil: nothing fails.
	Fault func(Op) Fault
	// Speed is how long operations take from now on.
	Speed Speed

	root   *folder
	locks  map[string]bool
	mount  *mount // of the process that is alive
	number int    // of changes
	stop   int    // the change at which the process ends; −1: none
	torn   Choices
	took   time.Duration
}

// New makes an empty disk, with the root folder.
func New() *Disk {
	return &Disk{root: newFolder(), locks: map[string]bool{}, stop: -1}
}

// Mount gives the file system to a new process. The one before is dead: whatever it does fails and has no effect.
func (d *Disk) Mount() files.FS {
	d.Kill()
	d.mount = &mount{disk: d}
	return d.mount
}

// Kill ends the process. What it wrote stays, flushed or not; its locks are free.
func (d *Disk) Kill() {
	if d.mount != nil {
		d.mount.dead = true
		d.mount = nil
	}
	clear(d.locks)
}

// StopAt ends the process, be it the one of now or a later one, when it is about to make the change with that number (see Changes), which has no effect then. Only a write may leave a part of
// itself: how much is chosen by torn, among nothing, some and all; nil for nothing.
func (d *Disk) StopAt(number int, torn Choices) { d.stop, d.torn = number, torn }

// Stopped tells whether the process has ended, by StopAt or Kill.
func (d *Disk) Stopped() bool { return d.mount == nil }

// Changes counts the operations that change something, from the first on.
func (d *Disk) Changes() int { return d.number }

// Took is how long the operations since the last call have taken.
func (d *Disk) Took() time.Duration {
	took := d.took
	d.took = 0
	return took
}

// Wipe ends the process and empties the disk.
func (d *Disk) Wipe() {
	d.Kill()
	d.root = newFolder()
}

// PowerLoss ends the process and takes what was not flushed, as far as choose says.
func (d *Disk) PowerLoss(choose Choices) {
	d.Kill()
	d.root.crash("/", choose)
}

// Flip changes one bit of a file, on the disk and in memory. It fails if there is no such byte.
func (d *Disk) Flip(file string, at int64, bit uint) error {
	f, err := d.file(file)
	if err != nil {
		return err
	}
	if at < 0 || at >= int64(len(f.content)) {
		return fmt.Errorf("flip a bit of byte %d of %s: it has %d bytes", at, file, len(f.content))
	}
	f.flip(at, byte(1)<<(bit%8))
	return nil
}

// Clone copies the disk as it is, without its process and what was set for it.
func (d *Disk) Clone() *Disk {
	out := New()
	seen := map[*inode]*inode{}
	out.root, out.number, out.Speed = d.root.clone(seen), d.number, d.Speed
	return out
}

// Files lists the paths of all files, in order.
func (d *Disk) Files() []string {
	var out []string
	d.root.walk("/", func(path string, _ *inode) { out = append(out, path) })
	return out
}

// dir finds a folder.
func (d *Disk) dir(name string) (*folder, error) {
	at := d.root
	for rest := path.Clean("/" + name)[1:]; rest != ""; {
		var step string
		step, rest = cutPath(rest)
		switch next := at.names[step].(type) {
		case *folder:
			at = next
		case *inode:
			return nil, fmt.Errorf("folder %s: %s is a file", name, step)
		default:
			return nil, fmt.Errorf("folder %s: %w", name, fs.ErrNotExist)
		}
	}
	return at, nil
}

func cutPath(p string) (first, rest string) {
	for i := range p {
		if p[i] == '/' {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

// file finds a file.
func (d *Disk) file(name string) (*inode, error) {
	dir, err := d.dir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	switch f := dir.names[path.Base(name)].(type) {
	case *inode:
		return f, nil
	case *folder:
		return nil, fmt.Errorf("file %s: it is a folder", name)
	}
	return nil, fmt.Errorf("file %s: %w", name, fs.ErrNotExist)
}

// node is a file or a folder.
type node interface{ isNode() }

func (*inode) isNode()  {}
func (*folder) isNode() {}

// folder is a folder: its names as they are, as they were flushed, and the changes in between.
type folder struct {
	names   map[string]node
	flushed map[string]node
	changes []nameChange
}

// nameChange is one step from flushed names to names: `gone` loses its meaning, and `name` gets the meaning `to`.
type nameChange struct {
	gone string // "" for none
	name string // "" for none
	to   node
}

func newFolder() *folder { return &folder{names: map[string]node{}, flushed: map[string]node{}} }

func (f *folder) change(c nameChange) {
	c.apply(f.names)
	f.changes = append(f.changes, c)
}

func (c nameChange) apply(names map[string]node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.name != "" {
		names[c.name] = c.to
	}
}

func (f *folder) flush() {
	f.flushed, f.changes = maps.Clone(f.names), nil
}

// sorted are the names in order.
func (f *folder) sorted() []string { return slices.Sorted(maps.Keys(f.names)) }

// crash loses changes of names, then, in what is left, changes of content.
func (f *folder) crash(at string, choose Choices) {
	names := maps.Clone(f.flushed)
	for i, c := range f.changes {
		p := Choice{What: Name, Path: path.Join(at, max(c.name, c.gone)), Index: i, Of: len(f.changes), Versions: 2}
		if choose(p) == 1 {
			c.apply(names)
		}
	}
	f.names = names
	f.flush()
	for _, name := range f.sorted() {
		switch n := f.names[name].(type) {
		case *folder:
			n.crash(path.Join(at, name), choose)
		case *inode:
			n.crash(path.Join(at, name), choose)
		}
	}
}

func (f *folder) walk(at string, visit func(string, *inode)) {
	for _, name := range f.sorted() {
		switch n := f.names[name].(type) {
		case *folder:
			n.walk(path.Join(at, name), visit)
		case *inode:
			visit(path.Join(at, name), n)
		}
	}
}

func (f *folder) clone(seen map[*inode]*inode) *folder {
	folders := map[*folder]*folder{}
	of := func(n node) node {
		switch n := n.(type) {
		case *folder:
			if folders[n] == nil {
				folders[n] = n.clone(seen)
			}
			return folders[n]
		case *inode:
			if seen[n] == nil {
				seen[n] = n.clone()
			}
			return seen[n]
		}
		return nil
	}
	out := newFolder()
	for _, name := range f.sorted() {
		out.names[name] = of(f.names[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.flushed)) {
		out.flushed[name] = of(f.flushed[name])
	}
	for _, c := range f.changes {
		out.changes = append(out.changes, nameChange{c.gone, c.name, of(c.to)})
	}
	return out
}
