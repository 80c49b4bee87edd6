// Package raftlog keeps what the control plane's raft needs across a crash: hard state, snapshot and entries. Every Save is one checksummed record
// of a tidwall/wal log, flushed before Save returns; a snapshot replaces the base, a file that holds everything up to then, and begins a new log. It
// knows the types of controller.Persist and nothing of raft's rules, beyond how entries replace each other.
//
// What is in a folder:
//
//	lock          flock of the process that has it open
//	base          generation, and the content when that generation began; replaced atomically
//	log-<gen>/    the records since then; other generations are leftovers
//
// Start reading at Log.
package raftlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/wal"

	"ackproof/broker/core/controller"
	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
)

const (
	baseFile     = "base"
	logPrefix    = "log-"
	segmentBytes = 1 << 20
)

// Log is the open log of one voter. It is used by one goroutine at a time.
type Log struct {
	dir  string
	lock io.Closer
	// step is called between the steps that begin a generation; only tests set it, to stop there as a crash would.
	step func(string) error

	generation uint64
	content    content
	wal        *wal.Log
	next       uint64 // index of the next record
	segment    int64  // bytes in the newest segment file
	err        error  // why nothing works any more
}

// Open opens the log in dir, makes it if it is not there, and gives what all Saves together have stored. The part of a Save that a crash
// interrupted is dropped: nobody was told of it. Errors: storage.ErrLocked, storage.ErrDamaged (nothing is then changed), and what the file system says.
func Open(dir string) (*Log, controller.Stored, error) {
	return open(dir, func(string) error { return nil })
}

func open(dir string, step func(string) error) (*Log, controller.Stored, error) {
	l := &Log{dir: dir, step: step}
	err := durable.MakeDir(dir)
	if err == nil {
		l.lock, err = durable.Lock(dir)
	}
	if errors.Is(err, durable.ErrLocked) {
		err = storage.ErrLocked
	}
	if err == nil {
		if err = l.recover(); err != nil {
			err = errors.Join(err, l.lock.Close())
		}
	}
	if err != nil {
		return nil, controller.Stored{}, fmt.Errorf("open raft log %s: %w", dir, err)
	}
	return l, l.content.stored(), nil
}

// recover reads base and records, and opens the library for more.
func (l *Log) recover() error {
	// A base that a killed process has named may be in memory only. Were the generation before it dropped, a loss of power could bring back the old base without
	// its records (S5).
	if err := durable.SyncDir(l.dir); err != nil {
		return err
	}
	if err := l.readBase(); err != nil {
		return err
	}
	if err := l.dropOthers(); err != nil {
		return err
	}
	if err := durable.MakeDir(l.files()); err != nil {
		return err
	}
	if err := l.replay(); err != nil {
		return err
	}
	return l.openWAL()
}

// files is the library's folder.
func (l *Log) files() string { return l.generationDir(l.generation) }

func (l *Log) generationDir(g uint64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%s%020d", logPrefix, g))
}

func (l *Log) readBase() error {
	raw, err := durable.ReadFile(filepath.Join(l.dir, baseFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, statErr := os.Stat(l.generationDir(1)); statErr == nil {
			return fmt.Errorf("%w: there are records, but no file %q", storage.ErrDamaged, baseFile)
		}
		l.generation = 1
		return l.writeBase(l.generation, l.content)
	case errors.Is(err, durable.ErrChecksum):
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	case err != nil:
		return err
	}
	if l.generation, l.content, err = decodeBase(raw); err != nil {
		return fmt.Errorf("%w: file %q: %w", storage.ErrDamaged, baseFile, err)
	}
	return nil
}

func (l *Log) writeBase(generation uint64, c content) error {
	raw, err := encodeBase(generation, c)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.dir, baseFile), raw)
}

// dropOthers removes what a crash between two generations left.
func (l *Log) dropOthers() error {
	names, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, entry := range names {
		path := filepath.Join(l.dir, entry.Name())
		if strings.HasPrefix(entry.Name(), logPrefix) && path != l.files() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// openWAL opens the library behind the last record that replay took.
func (l *Log) openWAL() error {
	w, err := wal.Open(l.files(), &wal.Options{SegmentSize: segmentBytes, SegmentCacheSize: 1, AllowEmpty: true})
	if err != nil {
		return err
	}
	last, err := w.LastIndex()
	if err == nil && last+1 != l.next {
		err = fmt.Errorf("the last record is %d, expected %d", last, l.next-1)
	}
	if err == nil {
		err = durable.SyncDir(l.files()) // it may have made the first segment (S5)
	}
	if err != nil {
		return errors.Join(err, w.Close())
	}
	l.wal = w
	return nil
}

// Save stores the parts of p that are not nil. On success they are durable (S1). An error that is not storage.ErrDead means that p does not
// fit what is stored, which is unchanged; after storage.ErrDead the log has to be opened again (S3).
func (l *Log) Save(p controller.Persist) error {
	if l.err != nil {
		return l.err
	}
	after, err := l.content.with(p)
	if err != nil {
		return fmt.Errorf("save to raft log %s: %w", l.dir, err)
	}
	if p.Snapshot != nil {
		err = l.begin(after)
	} else {
		err = l.append(p)
	}
	if err != nil {
		l.err = fmt.Errorf("%w: save to raft log %s: %w", storage.ErrDead, l.dir, err)
		return l.err
	}
	l.content = after
	return nil
}

// append adds one record.
func (l *Log) append(p controller.Persist) error {
	if p.HardState == nil && len(p.Entries) == 0 {
		return nil
	}
	raw, err := encodeRecord(l.next, p)
	if err != nil {
		return err
	}
	if err := l.wal.Write(l.next, raw); err != nil { // flushes too
		return err
	}
	l.next++
	if l.segment += rawwal.EntryBytes(len(raw)); l.segment < segmentBytes {
		return nil
	}
	l.segment = 0 // the library has begun a new segment; its name has to last too (S5)
	if err := l.wal.ClearCache(); err != nil {
		return err
	}
	return durable.SyncDir(l.files())
}

// begin starts a generation with this content. The one write that replaces base decides between the old and the new.
func (l *Log) begin(c content) error {
	old := l.files()
	if err := l.writeBase(l.generation+1, c); err != nil {
		return err
	}
	l.generation++
	if err := l.step("base written"); err != nil {
		return err
	}
	if err := l.wal.Close(); err != nil {
		return err
	}
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := l.step("old records gone"); err != nil {
		return err
	}
	if err := durable.MakeDir(l.files()); err != nil {
		return err
	}
	l.next, l.segment = 1, 0
	return l.openWAL()
}

// Close gives everything back. There is nothing to flush.
func (l *Log) Close() error {
	if l.lock == nil {
		return fmt.Errorf("raft log %s: %w", l.dir, fs.ErrClosed)
	}
	err := l.wal.Close()
	if errors.Is(err, wal.ErrClosed) || l.err != nil {
		err = nil // a dead log has said so already
	}
	err = errors.Join(err, l.lock.Close())
	l.lock, l.err = nil, fmt.Errorf("raft log %s: %w", l.dir, fs.ErrClosed)
	return err
}
