// Package segment is the storage.Log in Kafka's own layout, over a small file interface, so that its recovery runs on a simulated disk too.
//
// What is in a folder:
//
//	lock                        of the process that has the log open
//	state                       checkpoint, recovery point, leader epochs of the batches, and a cut that is under way (state.go)
//	clean                       the clean-shutdown marker (R23); absent while the log is open
//	00000000000000000042.log    a segment: raw record batches, the first at offset 42
//	….index, ….timeindex        its sparse indexes (index.go), written when it is closed; caches, never trusted without their checksum
//
// A segment is only appended to. Whatever else changes the log (truncate, trim, reset) is a cut: saved in `state` together with the new checkpoint, then done
// on the files (cut.go). A file that shrinks is replaced by a copy, so that who reads from the old one keeps reading what it was given. Start reading at Log.
package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/recent"
)

const (
	// DefaultSegmentBytes is the size at which a segment is closed. Smaller than Kafka's 1 GiB, because a crash costs a walk of what was not flushed, and a
	// truncation a copy of one segment.
	DefaultSegmentBytes = 64 << 20
	minSegmentBytes     = 256
	// DefaultIndexBytes is Kafka's log.index.interval.bytes.
	DefaultIndexBytes = 4096
	// maxOpenFiles is how many files a log keeps open for reading between reads, and how many closed segments keep their index in memory.
	maxOpenFiles = 4
	// maxUnflushed is how many closed segments may wait for a flush: each keeps a file open.
	maxUnflushed = 16
)

// Options of one log. The zero value is usable.
type Options struct {
	// FS is where the log lives; nil means the operating system.
	FS files.FS
	// Made tells that the folder is there and its name durable, so that Open need not see to it.
	Made bool
	// SegmentBytes is where a segment is closed (log.segment.bytes); 0 means DefaultSegmentBytes, the least is 256, the most 2³¹−1. A batch that is larger has a
	// segment of its own.
	SegmentBytes int64
	// IndexBytes is the distance of two entries of the index (log.index.interval.bytes); 0 means DefaultIndexBytes.
	IndexBytes int64
	// Cache holds recent batches of all logs of a node; nil means that every read goes to the files.
	Cache *recent.Cache
}

// Log implements storage.Log.
type Log struct {
	fs       files.FS
	dir      string
	segBytes int64
	walker   walker // for files that are known to be good
	lock     io.Closer
	ring     *recent.Ring // nil without a cache

	// What follows belongs to the one writer.
	tail       files.Writer   // of the last segment; nil until the first append and after a cut
	unflushed  []files.Writer // of closed segments that have not been flushed
	dirUnsaved bool           // a segment has been created since the folder was flushed (S5)
	recovery   int64          // everything below has been flushed; at least bounds.Durable
	epochs     epochs         // of the batches on disk; saved before the first batch of an epoch is written

	// mu guards what follows, against readers. It is never held over a write or a flush (S7).
	mu         sync.Mutex
	parts      []*part // in order, never empty; the last one is appended to
	bounds     storage.Bounds
	checkpoint storage.Checkpoint
	cuts       int     // times that the end moved back
	open       []*part // whose file is open, oldest first
	err        error   // why nothing works any more: ErrDead or errClosed
}

var _ storage.Log = (*Log)(nil)

var errClosed = fmt.Errorf("log is closed: %w", fs.ErrClosed)

// Open opens the log in dir, and makes it if it is not there. What an unclean end left is repaired first (R23). Errors: storage.ErrLocked,
// storage.ErrDamaged, and what the file system says.
func Open(dir string, opts Options) (*Log, error) {
	if opts.FS == nil {
		opts.FS = files.OS{}
	}
	if opts.SegmentBytes == 0 {
		opts.SegmentBytes = DefaultSegmentBytes
	}
	if opts.IndexBytes == 0 {
		opts.IndexBytes = DefaultIndexBytes
	}
	if opts.SegmentBytes < minSegmentBytes || opts.SegmentBytes > math.MaxInt32 {
		return nil, fmt.Errorf("open %s: a segment of %d bytes, expected %d to %d", dir, opts.SegmentBytes, minSegmentBytes, math.MaxInt32)
	}
	l := &Log{fs: opts.FS, dir: dir, segBytes: opts.SegmentBytes, walker: walker{interval: opts.IndexBytes}, ring: opts.Cache.Ring()}
	if !opts.Made {
		if err := files.MakeDirs(l.fs, dir); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	var err error
	l.lock, err = l.fs.Lock(dir)
	if errors.Is(err, files.ErrLocked) {
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

// die makes the handle refuse everything from now on (S3): what a failed write or flush left on disk is unknown, and a second flush may report a success
// that the first one's data has no part in.
func (l *Log) die(doing string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w: %s of %s: %w", storage.ErrDead, doing, l.dir, err)
	}
	return l.err
}

// last is the segment that is appended to.
func (l *Log) last() *part { return l.parts[len(l.parts)-1] }

// Close implements storage.Log.
func (l *Log) Close(clean bool) error {
	if l.lock == nil {
		return errClosed
	}
	var err error
	if clean {
		if err = l.alive(); err == nil {
			err = l.closeCleanly()
		}
	}
	// Not asked to be clean, or not able to: the next open finds no marker and walks everything, so these errors change nothing.
	for _, w := range l.unflushed {
		_ = w.Close()
	}
	_ = l.closeTail()
	l.mu.Lock()
	l.err = errClosed
	for _, p := range l.parts {
		l.letGo(p)
	}
	l.ring.Drop()
	l.mu.Unlock()
	err = errors.Join(err, l.lock.Close())
	l.lock = nil
	return err
}

func (l *Log) closeTail() error {
	if l.tail == nil {
		return nil
	}
	err := l.tail.Close()
	l.tail = nil
	return err
}

func (l *Log) closeCleanly() error {
	if fault.On(fault.MarkerTooEarly) {
		l.recovery = l.bounds.End
	} else if err := l.flush(); err != nil {
		return l.die("flush", err)
	}
	l.mu.Lock()
	l.bounds.Durable = l.bounds.End
	last := l.last()
	if last.index != nil {
		last.seal()
	}
	l.mu.Unlock()
	if last.index != nil && last.Bytes > 0 {
		if err := l.writeIndex(last); err != nil {
			return l.die("write index", err)
		}
	}
	if err := l.state(l.checkpoint).write(l.fs, l.dir); err != nil {
		return l.die("save state", err)
	}
	if err := l.marker().write(l.fs, l.dir); err != nil { // last of all (R23)
		return l.die("write clean-shutdown marker", err)
	}
	return nil
}
