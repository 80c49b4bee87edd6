package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/internal/window"
)

// cut is a change of the log other than an append: it names the segments that stay. It is saved in `state` together with the new checkpoint,
// before a file is touched, and done again from there if a crash came in between; so log and checkpoint move together (S6).
type cut struct {
	All   bool  `json:"all,omitempty"` // all segments go
	First int64 `json:"first"`         // segments with a lower base offset go
	Last  int64 `json:"last"`          // segments with a higher one go ...
	Bytes int64 `json:"bytes"`         // ... and what this one has beyond so many bytes
}

// keeps tells whether the segment with this base offset stays.
func (c cut) keeps(base int64) bool { return !c.All && base >= c.First && base <= c.Last }

// apply does the cut on the files. Doing it again changes nothing. On return it is durable, so that no later crash brings a file back that an append has
// given the name of.
func (c cut) apply(l *Log) error {
	entries, err := l.fs.List(l.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix} {
			base, ok := baseOf(e.Name, suffix)
			switch {
			case !ok:
			case !c.keeps(base):
				err = l.fs.Remove(l.path(base, suffix))
			case suffix == logSuffix && base == c.Last && e.Size > c.Bytes:
				err = l.shorten(base, c.Bytes)
			}
			if err != nil {
				return err
			}
		}
	}
	return l.fs.FlushDir(l.dir)
}

// shorten replaces a segment file by a copy of its first bytes. The name is not durable: apply flushes the folder for all that it did.
func (l *Log) shorten(base, bytes int64) error {
	path := l.path(base, logSuffix)
	from, err := l.fs.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	temp := path + files.TempSuffix
	to, err := l.fs.Create(temp)
	if err != nil {
		return err
	}
	if err := errors.Join(copyTo(to, from, bytes), to.Flush(), to.Close()); err != nil {
		return err
	}
	return l.fs.Rename(temp, path)
}

func copyTo(to files.Writer, from io.ReaderAt, bytes int64) error {
	buf := make([]byte, min(bytes, window.Most))
	for at := int64(0); at < bytes; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), bytes-at)]
		if _, err := from.ReadAt(buf, at); err != nil {
			return fmt.Errorf("read %d bytes at %d: %w", len(buf), at, err)
		}
		if err := to.Append(buf); err != nil {
			return err
		}
	}
	return nil
}

// Truncate implements storage.Log. A `to` below the start is ErrOutOfRange: that is for Reset to do.
func (l *Log) Truncate(to int64, cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if to < l.bounds.Start {
		return fmt.Errorf("truncate %s to %d: %w: it starts at %d", l.dir, to, storage.ErrOutOfRange, l.bounds.Start)
	}
	if to >= l.bounds.End {
		return l.Save(cp)
	}
	i := l.partAt(to)
	last, err := l.prefix(l.parts[i], to)
	if err != nil { // nothing has been changed
		return fmt.Errorf("truncate %s to %d: %w", l.dir, to, err)
	}
	parts := append(slices.Clone(l.parts[:i]), last)
	if last.Bytes == 0 && i > 0 { // the one before goes on
		parts = slices.Clone(l.parts[:i])
	}
	return l.change(parts, cp)
}

// prefix gives the segment as it will be without the batches that end above `to`.
func (l *Log) prefix(p *part, to int64) (*part, error) {
	v, err := l.view(to)
	if err != nil {
		return nil, err
	}
	defer v.release()
	pos, _, err := v.first(to)
	if err != nil {
		return nil, err
	}
	short, err := l.walker.walk(v.file.file, p.Base, pos)
	if err != nil {
		return nil, damaged(v.path, err)
	}
	return short, nil
}

// Trim implements storage.Log.
func (l *Log) Trim(cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	b := l.bounds
	if cp.LogStart < b.Start || cp.LogStart > b.End {
		return fmt.Errorf("trim %s to %d: %w: it has [%d, %d)", l.dir, cp.LogStart, storage.ErrOutOfRange, b.Start, b.End)
	}
	if cp.LogStart == b.End && b.Start < b.End {
		return l.Reset(b.End, cp)
	}
	i := l.partAt(cp.LogStart)
	if i == 0 {
		return l.Save(cp)
	}
	return l.change(slices.Clone(l.parts[i:]), cp)
}

// Reset implements storage.Log.
func (l *Log) Reset(start int64, cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if start < 0 {
		return fmt.Errorf("reset %s to %d: %w: an offset is not negative", l.dir, start, storage.ErrOutOfRange)
	}
	return l.change([]*part{newPart(start)}, cp)
}

// change carries out a cut that leaves these segments.
func (l *Log) change(parts []*part, cp storage.Checkpoint) error {
	fail := func(err error) error { return l.die("cut", err) }
	// With everything durable, no crash can take away what the cut wants to keep.
	if err := l.flush(); err != nil {
		return l.die("flush before a cut", err)
	}
	if err := l.closeTail(); err != nil {
		return fail(err)
	}
	last := parts[len(parts)-1]
	c := cut{First: parts[0].Base, Last: last.Base, Bytes: last.Bytes, All: len(parts) == 1 && last.Bytes == 0}
	st := state{
		Version: version, Layout: layout, Start: parts[0].Base, Recovery: last.End, Epochs: l.epochs.within(parts[0].Base, last.End), Checkpoint: cp, Cut: &c,
	}
	if !fault.On(fault.CutInTwoSteps) {
		if err := st.write(l.fs, l.dir); err != nil {
			return fail(err)
		}
	}
	l.adopt(parts, st)
	if err := c.apply(l); err != nil {
		return fail(err)
	}
	// A reader may have opened the last file before it was replaced: its bytes up to here are the same, those to come are not.
	l.mu.Lock()
	l.letGo(last)
	l.mu.Unlock()
	st.Cut = nil
	if err := st.write(l.fs, l.dir); err != nil { // before an append that the cut would take away
		return fail(err)
	}
	return nil
}

// adopt shows the readers the log as the state has it.
func (l *Log) adopt(parts []*part, st state) {
	l.recovery, l.epochs = st.Recovery, st.Epochs
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parts {
		if !slices.Contains(parts, p) {
			l.letGo(p)
		}
	}
	b := storage.Bounds{Start: st.Start, Durable: st.Recovery, End: st.Recovery}
	if b.End != l.bounds.End || b.Start == b.End {
		l.cuts++
		l.ring.Drop()
	}
	l.parts, l.bounds, l.checkpoint = parts, b, st.Checkpoint
}

// Save implements storage.Log. Closed segments are flushed with it, which moves the recovery point on.
func (l *Log) Save(cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if err := l.flushClosed(); err != nil {
		return l.die("flush", err)
	}
	if err := l.state(cp).write(l.fs, l.dir); err != nil {
		return l.die("save checkpoint", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoint = cp
	return nil
}
