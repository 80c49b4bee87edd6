package segment

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// Append implements storage.Log.
func (l *Log) Append(batches []record.Batch, keep bool) error {
	if err := l.alive(); err != nil {
		return err
	}
	next := l.bounds.End
	lines := l.epochs
	for _, b := range batches {
		if b.BaseOffset != next || len(b.Bytes()) == 0 {
			return fmt.Errorf("append to %s: %w: base offset %d, expected %d", l.dir, storage.ErrOutOfOrder, b.BaseOffset, next)
		}
		next = b.NextOffset()
		if epoch, ok := lines.last(); !ok || epoch != b.LeaderEpoch {
			lines = append(slices.Clip(lines), storage.EpochStart{Epoch: b.LeaderEpoch, Start: b.BaseOffset})
		}
	}
	if len(batches) == 0 {
		return nil
	}
	if len(lines) > len(l.epochs) {
		// Durable before the batches, so that a batch's epoch, which its checksum does not cover, can always be checked.
		l.epochs = lines
		if err := l.state(l.checkpoint).write(l.fs, l.dir); err != nil {
			return l.die("save leader epoch", err)
		}
	}
	if err := l.ensureIndexed(l.last()); err != nil {
		return l.die("append", err)
	}
	for len(batches) > 0 {
		n := l.fitting(batches)
		if n == 0 {
			if err := l.roll(); err != nil {
				return l.die("roll", err)
			}
			continue
		}
		if err := l.write(batches[:n]); err != nil {
			return l.die("append", err)
		}
		l.publish(batches[:n], keep)
		batches = batches[n:]
	}
	return nil
}

// fitting tells how many of the batches go into the last segment: those that do not make it larger than it may be, and one in any case if it is empty.
func (l *Log) fitting(batches []record.Batch) (n int) {
	p := l.last()
	bytes := p.Bytes
	for _, b := range batches {
		bytes += int64(len(b.Bytes()))
		if (bytes > l.segBytes || b.LastOffset()-p.Base > math.MaxInt32) && (p.Bytes > 0 || n > 0) {
			break
		}
		n++
	}
	return n
}

// write puts batches into the file of the last segment. Its name, if it is new, is not durable: Flush comes before a promise, and flushes the folder.
func (l *Log) write(batches []record.Batch) (err error) {
	p := l.last()
	if l.tail == nil {
		if path := l.path(p.Base, logSuffix); p.Bytes == 0 {
			l.dirUnsaved = true
			l.tail, err = l.fs.Create(path)
		} else {
			l.tail, err = l.fs.Edit(path)
		}
		if err != nil {
			return err
		}
	}
	raw := make([][]byte, len(batches))
	for i, b := range batches {
		raw[i] = b.Bytes()
	}
	return l.tail.Append(raw...)
}

// publish lets readers see what has been written.
func (l *Log) publish(batches []record.Batch, keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.last()
	for _, b := range batches {
		p.add(b.Header, l.walker.interval)
	}
	l.bounds.End = p.End
	if keep {
		l.ring.Add(batches)
	} else {
		l.ring.Drop()
	}
}

// roll closes the last segment and begins a new one. It flushes nothing, unless too many wait: that would make every producer wait for a segment's worth of
// disk. The file is kept open until the next Flush or Save does it.
func (l *Log) roll() error {
	p := l.last()
	l.mu.Lock()
	p.seal()
	l.mu.Unlock()
	if err := l.writeIndex(p); err != nil {
		return err
	}
	if l.tail != nil {
		l.unflushed = append(l.unflushed, l.tail)
		l.tail = nil
	}
	if len(l.unflushed) > maxUnflushed {
		if err := l.flushClosed(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(l.parts, newPart(p.End))
	if p.file == nil {
		p.index = nil // nobody reads there: it can be had from disk
	}
	return nil
}

// writeIndex writes the index files of a segment. They are not durable: an index that does not have the right checksum is made again.
func (l *Log) writeIndex(p *part) error {
	if err := l.writeLoose(l.path(p.Base, indexSuffix), p.index.offsets); err != nil {
		return err
	}
	return l.writeLoose(l.path(p.Base, timeSuffix), p.index.times)
}

// writeLoose writes a file that may be lost; not durable: neither content nor name.
func (l *Log) writeLoose(path string, raw []byte) error {
	w, err := l.fs.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(w.Append(raw), w.Close())
}

// Flush implements storage.Log.
func (l *Log) Flush() error {
	if err := l.alive(); err != nil {
		return err
	}
	if l.bounds.Durable == l.bounds.End {
		return nil
	}
	if err := l.flush(); err != nil {
		return l.die("flush", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds.Durable = l.bounds.End
	return nil
}

// flush makes all that was appended durable.
func (l *Log) flush() error {
	if err := l.flushClosed(); err != nil {
		return err
	}
	if l.tail != nil {
		if err := l.tail.Flush(); err != nil {
			return err
		}
	}
	if err := l.flushDir(); err != nil {
		return err
	}
	l.recovery = l.bounds.End
	return nil
}

// flushClosed makes the closed segments durable.
func (l *Log) flushClosed() error {
	if len(l.unflushed) == 0 {
		return nil
	}
	for len(l.unflushed) > 0 {
		w := l.unflushed[0]
		if err := w.Flush(); err != nil {
			return err
		}
		l.unflushed = l.unflushed[1:]
		if err := w.Close(); err != nil {
			return err
		}
	}
	if err := l.flushDir(); err != nil {
		return err
	}
	l.recovery = max(l.recovery, l.last().Base)
	return nil
}

func (l *Log) flushDir() error {
	if !l.dirUnsaved || fault.On(fault.NamesNotFlushed) {
		return nil
	}
	if err := l.fs.FlushDir(l.dir); err != nil {
		return err
	}
	l.dirUnsaved = false
	return nil
}
