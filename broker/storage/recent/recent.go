// Package recent keeps the newest batches of a node's logs in memory, within one budget for all of them, so that readers at the end of a log do not go to
// its files. It knows batches and nothing of the stores that fill it.
package recent

import (
	"slices"
	"sort"
	"sync"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// lendsMost bounds what readers may have, in budgets: whoever takes what it has read as slowly as it can, or never, keeps that memory from being used again. Beyond it readers go to the
// files.
const lendsMost = 4

// Cache holds the newest batches of all the logs that share it, oldest out first, so that a node's memory does not grow with its partitions. It counts
// the bytes of the batches; a kept batch also holds the buffer that it is a part of.
type Cache struct {
	mu     sync.Mutex
	budget int
	used   int
	lent   int     // bytes that readers have taken and not given back
	queue  []*Ring // the owner of each kept batch, oldest first
}

// New makes a cache for so many bytes of batches.
func New(bytes int) *Cache { return &Cache{budget: bytes} }

// Ring is one log's part of a cache: the batches from some offset up to the log's end, without gaps. Its fields belong to the cache's lock. A nil
// Ring holds nothing.
type Ring struct {
	cache   *Cache
	batches []record.Batch
}

// Ring makes an empty ring of the cache; nil of a nil cache.
func (c *Cache) Ring() *Ring {
	if c == nil {
		return nil
	}
	return &Ring{cache: c}
}

// Add appends batches that the log has just taken in.
func (r *Ring) Add(batches []record.Batch) {
	if r == nil {
		return
	}
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range batches {
		b.Retain()
		r.batches = append(r.batches, b)
		c.queue = append(c.queue, r)
		c.used += len(b.Bytes())
	}
	for c.used > c.budget {
		oldest := c.queue[0]
		c.queue = c.queue[1:]
		c.used -= len(oldest.batches[0].Bytes())
		oldest.batches[0].Release()
		oldest.batches[0] = record.Batch{} // the array outlives the slice
		oldest.batches = oldest.batches[1:]
	}
}

// Drop forgets everything, because the log's end moved in another way than by kept batches.
func (r *Ring) Drop() {
	if r == nil {
		return
	}
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.batches) == 0 {
		return
	}
	for _, b := range r.batches {
		c.used -= len(b.Bytes())
		b.Release()
	}
	r.batches = nil
	c.queue = slices.DeleteFunc(c.queue, func(q *Ring) bool { return q == r })
}

// Read is storage.Log's Read; ok is false if the batch that holds from is not here.
func (r *Ring) Read(from, to int64, limit int) (_ storage.Records, ok bool) {
	if r == nil {
		return storage.Records{}, false
	}
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.batches) == 0 || from < r.batches[0].BaseOffset {
		return storage.Records{}, false
	}
	first := sort.Search(len(r.batches), func(i int) bool { return r.batches[i].NextOffset() > from })
	end, bytes := first, 0
	for ; end < len(r.batches); end++ {
		b := r.batches[end]
		if b.NextOffset() > to || (bytes > 0 && bytes+len(b.Bytes()) > limit) {
			break
		}
		bytes += len(b.Bytes())
	}
	if c.lent+bytes > lendsMost*c.budget {
		return storage.Records{}, false
	}
	c.lent += bytes
	run := slices.Clone(r.batches[first:end])
	chunks := make([]storage.Chunk, len(run))
	for i, b := range run {
		b.Retain()
		chunks[i] = storage.Chunk{Memory: b.Bytes(), Length: len(b.Bytes())}
	}
	return storage.NewRecords(chunks, func() {
		c.mu.Lock()
		c.lent -= bytes
		c.mu.Unlock()
		for _, b := range run {
			b.Release()
		}
	}), true
}

// Used tells how many bytes of how many batches are kept.
func (c *Cache) Used() (bytes, batches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, len(c.queue)
}
