package wal

import (
	"fmt"

	"github.com/tidwall/wal"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
)

// Append implements storage.Log.
func (l *Log) Append(batches []record.Batch, keep bool) error {
	if err := l.alive(); err != nil {
		return err
	}
	next, bytes := l.bounds.End, 0
	for _, b := range batches {
		if b.BaseOffset != next || len(b.Bytes()) == 0 {
			return fmt.Errorf("append to %s: %w: base offset %d, expected %d", l.dir, storage.ErrOutOfOrder, b.BaseOffset, next)
		}
		next = b.NextOffset()
		bytes += len(b.Bytes())
	}
	if len(batches) == 0 {
		return nil
	}
	if l.wal == nil {
		if err := l.openWAL(); err != nil {
			return l.die("open for append", err)
		}
	}
	rolls := 0
	layout(l.tail().chain(), l.tail().Bytes, l.segBytes, batches, placer{
		roll:  func(chain) { rolls++ },
		guard: func(g guard) { l.batch.Write(g.index, g.encode()) },
		batch: func(index uint64, b record.Batch) { l.batch.Write(index, b.Bytes()) },
	})
	if err := l.wal.WriteBatch(l.batch); err != nil {
		return l.die("append", err)
	}
	if bytes > int(l.segBytes) {
		l.batch = new(wal.Batch) // it keeps its buffer; do not let one large append decide how much memory we hold
	}
	if rolls > 0 {
		l.dirUnsaved = true
		if err := l.wal.ClearCache(); err != nil { // it would keep the segment before the tail in memory
			return l.die("append", err)
		}
	}
	l.publish(batches, keep)
	return nil
}

// publish lets readers see what has been written.
func (l *Log) publish(batches []record.Batch, keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	layout(l.tail().chain(), l.tail().Bytes, l.segBytes, batches, placer{
		roll:  func(c chain) { l.segments = append(l.segments, newSegment(c.index, c.offset)) },
		guard: func(g guard) { l.tail().addGuard(g.epoch) },
		batch: func(_ uint64, b record.Batch) { l.tail().addBatch(b.Header) },
	})
	l.bounds.End = l.tail().End
	if keep {
		l.ring.Add(batches)
	} else {
		l.ring.Drop()
	}
}

// placer is told where the entries of an append go.
type placer struct {
	roll  func(next chain) // a new segment begins
	guard func(guard)
	batch func(index uint64, b record.Batch)
}

// layout goes through an append as the library will: c and bytes describe the tail before it. The library closes a segment as soon as an
// entry makes it reach its size, and before a write if it is larger than that (as after a change of the option).
func layout(c chain, bytes, segBytes int64, batches []record.Batch, p placer) {
	roll := func() {
		c.guarded, bytes = false, 0
		p.roll(c)
	}
	added := func(size int) {
		c.index++
		if bytes += rawwal.EntryBytes(size); bytes >= segBytes {
			roll()
		}
	}
	if bytes > segBytes {
		roll()
	}
	for _, b := range batches {
		for !c.guarded || c.epoch != b.LeaderEpoch {
			c.epoch, c.guarded = b.LeaderEpoch, true
			p.guard(guard{index: c.index, offset: c.offset, epoch: c.epoch})
			added(guardBytes)
		}
		p.batch(c.index, b)
		c.offset = b.NextOffset()
		added(len(b.Bytes()))
	}
}

// Flush implements storage.Log.
func (l *Log) Flush() error {
	if err := l.alive(); err != nil {
		return err
	}
	if l.bounds.Durable == l.bounds.End {
		return nil
	}
	// The library flushed earlier segments when it closed them; their names are flushed here, before anything is promised (S5).
	if err := l.wal.Sync(); err != nil {
		return l.die("flush", err)
	}
	if err := l.flushDir(); err != nil {
		return l.die("flush", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds.Durable = l.bounds.End
	return nil
}
