package lossy

import (
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"
)

// content is what a file holds: all of it in the backing file, and beside it what it takes to go back to what was flushed. mu guards all of it.
type content struct {
	mu      sync.Mutex
	file    *os.File // the backing file; nil while nobody needs it
	users   int      // open handles
	size    int64
	durable int64            // the size that was flushed
	old     map[int64][]byte // by sector: what it held when it was flushed, up to durable; of sectors that have changed since
	dirty   []extent         // what was written since the flush; the last write is the last one
	cut     int64            // the smallest size that it was cut to since the flush, below durable; noCut: none
	stuck   map[int64]bool   // sectors that a failed flush has dropped: they last no more, whatever is flushed, until they are written again
	since   time.Time        // of the oldest change that may be lost; zero: none
	changed time.Time        // mtime
}

const noCut = math.MaxInt64

// extent is a range of bytes.
type extent struct{ from, to int64 }

// open gives the backing file. mu is held.
func (f *FS) open(o *object) (*os.File, error) {
	if o.file == nil {
		file, err := os.OpenFile(f.backing(o), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		o.file = file
	}
	return o.file, nil
}

// close gives the backing file up.
func (o *object) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
		o.file = nil
	}
}

func (o *object) touch() {
	o.changed = time.Now()
	if o.since.IsZero() {
		o.since = o.changed
	}
}

// write puts bytes into the file.
func (f *FS) write(o *object, p []byte, at int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	file, err := f.open(o)
	if err != nil {
		return 0, err
	}
	if err := f.keep(o, at, at+int64(len(p))); err != nil {
		return 0, err
	}
	n, err := file.WriteAt(p, at)
	if n > 0 {
		end := at + int64(n)
		o.touch()
		o.size = max(o.size, end)
		for s := at / f.sector(); s*f.sector() < end && len(o.stuck) > 0; s++ {
			if o.stuck[s] { // what a failed flush has dropped is written again with the rest of its sector
				delete(o.stuck, s)
				o.note(extent{s * f.sector(), min((s+1)*f.sector(), o.size)})
			}
		}
		o.note(extent{at, end})
	}
	return n, err
}

// note remembers what was written. Writes that follow each other become one, but for the last.
func (o *object) note(e extent) {
	if n := len(o.dirty); n > 1 && o.dirty[n-2].to == o.dirty[n-1].from {
		o.dirty[n-2].to = o.dirty[n-1].to
		o.dirty = o.dirty[:n-1]
	}
	o.dirty = append(o.dirty, e)
}

// resize cuts the file, or adds zeros.
func (f *FS) resize(o *object, size int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if size == o.size {
		return nil
	}
	file, err := f.open(o)
	if err != nil {
		return err
	}
	if err := f.keep(o, size, o.size); err != nil {
		return err
	}
	if err := file.Truncate(size); err != nil {
		return err
	}
	o.touch()
	if size < o.durable {
		o.cut = min(o.cut, size)
	}
	for i := range o.dirty {
		e := &o.dirty[i]
		e.from, e.to = min(e.from, size), min(e.to, size)
	}
	o.dirty = slices.DeleteFunc(o.dirty, func(e extent) bool { return e.from == e.to })
	maps.DeleteFunc(o.stuck, func(s int64, _ bool) bool { return s*f.sector() >= size })
	o.size = size
	return nil
}

// keep saves what the range held when it was flushed. mu is held.
func (f *FS) keep(o *object, from, to int64) error {
	for s := from / f.sector(); s*f.sector() < min(to, o.durable); s++ {
		if err := f.keepSector(o, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *FS) keepSector(o *object, sector int64) error {
	b, err := f.before(o, sector)
	if err != nil {
		return err
	}
	if o.old == nil {
		o.old = map[int64][]byte{}
	}
	o.old[sector] = b
	return nil
}

func (f *FS) sector() int64 { return int64(f.o.Sector) }

// flush makes the content last, but for what a failed flush has dropped before. mu is held.
func (o *object) flush(sector int64) {
	maps.DeleteFunc(o.old, func(s int64, _ []byte) bool { return !o.stuck[s] })
	for s, b := range o.old { // behind a cut nothing is left of them either
		o.old[s] = b[:max(0, min(int64(len(b)), o.cut-s*sector, o.size-s*sector))]
	}
	o.durable, o.dirty, o.cut, o.since = o.size, nil, noCut, time.Time{}
}

// flushContent is a successful flush of the file.
func (f *FS) flushContent(o *object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(f.sector())
}

// flushOlder flushes what has been waiting since before the moment.
func (f *FS) flushContentOlder(o *object, then time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() && o.since.Before(then) {
		o.flush(f.sector())
	}
}

// drop is a failed flush as Linux has it: what was to be flushed can be read, is taken for flushed, and is not.
func (f *FS) drop(o *object) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for s := range o.written(f.sector()) {
		if err := f.keepSector(o, s); err != nil {
			return err
		}
		if o.stuck == nil {
			o.stuck = map[int64]bool{}
		}
		o.stuck[s] = true
	}
	o.dirty = nil
	return nil
}

// written are those that were written since the flush. mu is held.
func (o *object) written(sector int64) map[int64]bool {
	out := map[int64]bool{}
	for _, e := range o.dirty {
		for s := e.from / sector; s*sector < e.to; s++ {
			out[s] = true
		}
	}
	return out
}

// pending tells whether a loss of power could change the file. mu is held.
func (o *object) pending() bool {
	return len(o.dirty) > 0 || len(o.stuck) > 0 || o.cut != noCut || o.size != o.durable
}

func (f *FS) read(o *object, p []byte, at int64) (int, error) {
	o.mu.Lock()
	file, err := f.open(o)
	o.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(p, at)
}

// grow makes the file at least so long.
func (f *FS) grow(o *object, size int64) error {
	o.mu.Lock()
	now := o.size
	o.mu.Unlock()
	if size <= now {
		return nil
	}
	return f.resize(o, size)
}
