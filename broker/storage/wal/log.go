// Package wal is the storage.Log on tidwall/wal. That library appends and rolls segment files; everything that a partition needs beyond
// it is added here: a lock, repair before the library sees the files, an index by offset and time, reads that do not go through the
// library, truncation that is atomic with the checkpoint, and a handle that dies at the first failed write.
//
// What is in a folder:
//
//	lock    flock of the process that has the log open
//	state   checkpoint, recovery point, and a cut that is under way (state.go)
//	clean   the clean-shutdown marker (R23); absent while the log is open
//	log/    the library's segment files: one record batch per entry, and guards (guard.go)
//
// The library's Read and Truncate calls are never used: positions are known from our own index (segment.go), and a cut is done on the files
// while the library has them closed (cut.go). It is opened at the first append only, so that a log that is merely read costs little memory.
// Start reading at Log.
package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/tidwall/wal"

	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/recent"
)

const (
	// DefaultSegmentBytes is the size at which a segment is closed. The library holds the newest one in memory and grows it by
	// copying, so that 1 MiB is both faster and smaller than the 20 MiB of the library's default.
	DefaultSegmentBytes = 1 << 20
	minSegmentBytes     = 256
	// maxOpenFiles is how many read-only files a log keeps open between reads.
	maxOpenFiles = 4
)

// Options of one log. The zero value is usable.
type Options struct {
	// SegmentBytes is where a segment is closed; 0 means DefaultSegmentBytes, the least is 256. The last batch may reach beyond it.
	SegmentBytes int
	// Cache holds recent batches of all logs of a node; nil means that every read goes to the files.
	Cache *recent.Cache
}

// Log implements storage.Log.
type Log struct {
	dir      string // the log's folder
	files    string // the library's folder in it
	segBytes int64
	lock     io.Closer
	ring     *recent.Ring // nil without a cache
	// step is called between the steps of a cut; only tests set it, to stop there as a crash would.
	step func(name string) error

	// What follows belongs to the one writer.
	wal        *wal.Log // nil until the first append and after a cut
	batch      *wal.Batch
	dirUnsaved bool // a segment has been created since the folder was flushed (S5)

	// mu guards what follows, against readers. It is never held over a write or a flush (S7).
	mu         sync.Mutex
	segments   []*segment // in order, never empty; the last one is appended to
	bounds     storage.Bounds
	checkpoint storage.Checkpoint
	cuts       int        // times that the end moved back
	open       []*segment // whose file is open, oldest first
	err        error      // why nothing works any more: ErrDead or errClosed
}

var _ storage.Log = (*Log)(nil)

var errClosed = fmt.Errorf("log is closed: %w", fs.ErrClosed)

// Open opens the log in dir, and makes it if it is not there. What an unclean end left is repaired first (R23). Errors: storage.ErrLocked,
// storage.ErrDamaged, and what the file system says.
func Open(dir string, opts Options) (*Log, error) {
	return open(dir, opts, func(string) error { return nil })
}

func open(dir string, opts Options, step func(string) error) (_ *Log, err error) {
	if opts.SegmentBytes == 0 {
		opts.SegmentBytes = DefaultSegmentBytes
	}
	if opts.SegmentBytes < minSegmentBytes {
		return nil, fmt.Errorf("open %s: a segment of %d bytes, at least %d expected", dir, opts.SegmentBytes, minSegmentBytes)
	}
	l := &Log{
		dir: dir, files: filepath.Join(dir, "log"), segBytes: int64(opts.SegmentBytes),
		ring: opts.Cache.Ring(), batch: new(wal.Batch), step: step,
	}
	for _, d := range []string{l.dir, l.files} {
		if err := durable.MakeDir(d); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	l.lock, err = durable.Lock(dir)
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("open %s: %w", dir, storage.ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), l.lock.Close())
	}
	return l, nil
}

// Bounds implements storage.Log.
func (l *Log) Bounds() storage.Bounds {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bounds
}

// Checkpoint implements storage.Log.
func (l *Log) Checkpoint() storage.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkpoint
}

// alive fails once the handle is dead or closed.
func (l *Log) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// die makes the handle refuse everything from now on (S3): what a failed write or flush left on disk is unknown, and the library would
// take a second try for a success.
func (l *Log) die(doing string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w: %s of %s: %w", storage.ErrDead, doing, l.dir, err)
	}
	return l.err
}

// tail is the segment that is appended to.
func (l *Log) tail() *segment { return l.segments[len(l.segments)-1] }

// openWAL opens the library on the tail, which it reads into memory.
func (l *Log) openWAL() error {
	if err := l.ensureIndexed(l.tail()); err != nil {
		return err
	}
	w, err := wal.Open(l.files, &wal.Options{
		NoSync:           true, // Flush does it (S1)
		SegmentSize:      int(l.segBytes),
		SegmentCacheSize: 1,
		AllowEmpty:       true,
	})
	if err != nil {
		return err
	}
	last, err := w.LastIndex()
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if want := l.tail().nextIndex() - 1; last != want {
		return errors.Join(fmt.Errorf("the last entry has the index %d, expected %d", last, want), w.Close())
	}
	l.wal, l.dirUnsaved = w, true
	return nil
}

// closeWAL flushes and closes the library, so that everything appended is durable and the files may be changed.
func (l *Log) closeWAL() error {
	if l.wal == nil {
		return nil
	}
	err := l.wal.Close()
	l.wal = nil
	if err != nil {
		return err
	}
	return l.flushDir()
}

func (l *Log) flushDir() error {
	if !l.dirUnsaved {
		return nil
	}
	if err := durable.SyncDir(l.files); err != nil {
		return err
	}
	l.dirUnsaved = false
	return nil
}

// Close implements storage.Log.
func (l *Log) Close(clean bool) error {
	if l.lock == nil {
		return errClosed
	}
	dead := l.alive()
	var err error
	if clean {
		if err = dead; err == nil {
			err = l.closeCleanly()
		}
	}
	if l.wal != nil {
		// Not asked to be clean, or not able to: the next open finds no marker and walks everything, so this error changes nothing.
		_ = l.wal.Close()
		l.wal = nil
	}
	l.mu.Lock()
	l.err = errClosed
	for _, s := range l.segments {
		l.letGo(s)
	}
	l.ring.Drop()
	l.mu.Unlock()
	err = errors.Join(err, l.lock.Close())
	l.lock = nil
	return err
}

func (l *Log) closeCleanly() error {
	if err := l.closeWAL(); err != nil {
		return l.die("flush", err)
	}
	l.mu.Lock()
	l.bounds.Durable = l.bounds.End
	m := marker{End: l.bounds.End}
	for _, s := range l.segments {
		m.Segments = append(m.Segments, s.summary)
	}
	st := l.state(l.checkpoint)
	l.mu.Unlock()
	if err := st.write(l.dir); err != nil {
		return l.die("save state", err)
	}
	if err := m.write(l.dir); err != nil { // last of all (R23)
		return l.die("write clean-shutdown marker", err)
	}
	return nil
}

// path is the file of a segment.
func (l *Log) path(s *segment) string { return rawwal.Path(l.files, s.Index) }
