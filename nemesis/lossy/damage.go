package lossy

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
)

// files calls do for every name of a file that the pattern matches, in the order of the paths. FS.mu is held.
func (f *FS) files(glob string, do func(dir *object, name string, o *object)) {
	f.walk(f.root, "", func(dir *object, name, at string) {
		if o := dir.names[name]; o != nil && o.mode&kindMask == fileMode && matches(glob, at) {
			do(dir, name, o)
		}
	})
}

// walk visits all names below the folder, those of a folder before the folder itself. FS.mu is held.
func (f *FS) walk(dir *object, at string, visit func(dir *object, name, path string)) {
	for _, name := range slices.Sorted(maps.Keys(dir.names)) {
		if o := dir.names[name]; o.names != nil {
			f.walk(o, path.Join(at, name), visit)
		}
		visit(dir, name, path.Join(at, name))
	}
}

// Wipe takes the files that one of the patterns matches (see Rule.Glob; "" matches all), and the folders that are empty then, off the disk for good. The node's processes must be gone. It tells how many files
// that were.
func (f *FS) Wipe(globs ...string) (files int, err error) {
	if err := f.takeIn(); err != nil {
		return 0, err
	}
	f.endMount()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit(f.journal)
	f.journal = nil
	emptied := map[*object]bool{}
	for _, glob := range globs {
		f.files(glob, func(dir *object, name string, _ *object) {
			f.edit(dir, name, nil)
			emptied[dir] = true
			files++
		})
	}
	f.walk(f.root, "", func(dir *object, name, _ string) {
		if o := dir.names[name]; emptied[o] && len(o.names) == 0 {
			f.edit(dir, name, nil)
			emptied[dir] = true
		}
	})
	return files, nil
}

// Replace puts a new disk in the place of this one: everything on it is gone, for good, and what lies in the folder where processes see it counts as flushed, as at the first
// Attach. The node's processes must be gone.
func (f *FS) Replace() error {
	f.endMount()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit(f.journal)
	f.journal = nil
	for _, name := range slices.Sorted(maps.Keys(f.root.names)) {
		f.edit(f.root, name, nil)
	}
	f.taken = true
	return f.takeFolder(f.root, f.dir)
}

// Flip turns one bit over, on the medium, of a file that the pattern matches: any bit of all of them is as likely as any other. The node's processes must be gone, because the kernel may have the
// bit in its cache. It tells which one it was; an error if there is none.
func (f *FS) Flip(glob string, pick *rand.Rand) (what string, err error) {
	if err := f.takeIn(); err != nil {
		return "", err
	}
	f.endMount()
	f.mu.Lock()
	defer f.mu.Unlock()
	o, at, err := f.anywhere(glob, pick)
	if err != nil {
		return "", fmt.Errorf("flip a bit of %s: %w", glob, err)
	}
	bit := byte(1) << pick.IntN(8)
	return fmt.Sprintf("a bit of byte %d of %s (%d bytes)", at, o.path(), o.size), f.flip(o, at, bit)
}

// anywhere draws a byte of the files that the pattern matches, any of all of them as likely as any other. FS.mu is held.
func (f *FS) anywhere(glob string, pick *rand.Rand) (o *object, at int64, err error) {
	var all []*object
	var sum int64
	f.files(glob, func(_ *object, _ string, o *object) {
		all = append(all, o)
		sum += o.size
	})
	if sum == 0 {
		return nil, 0, errors.New("there is no such file with anything in it")
	}
	at = pick.Int64N(sum)
	for _, o := range all {
		if at < o.size {
			return o, at, nil
		}
		at -= o.size
	}
	panic("the sizes of files have changed under the lock")
}

func (f *FS) flip(o *object, at int64, bit byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	file, err := f.open(o)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= bit
	if _, err := file.WriteAt(b, at); err != nil {
		return err
	}
	if old := o.old[at/f.sector()]; at%f.sector() < int64(len(old)) {
		old[at%f.sector()] ^= bit
	}
	return nil
}

// Cut takes the end off a file that the pattern matches, on the medium, from any byte of all of them on. The node's processes must be gone. It tells what it was; an error if there is no such file.
func (f *FS) Cut(glob string, pick *rand.Rand) (what string, err error) {
	if err := f.takeIn(); err != nil {
		return "", err
	}
	f.endMount()
	f.mu.Lock()
	defer f.mu.Unlock()
	o, to, err := f.anywhere(glob, pick)
	if err != nil {
		return "", fmt.Errorf("cut the end of %s off: %w", glob, err)
	}
	was := o.size
	if err := f.resize(o, to); err != nil {
		return "", err
	}
	f.flushContent(o)
	return fmt.Sprintf("the last %d of %d bytes of %s", was-to, was, o.path()), nil
}
