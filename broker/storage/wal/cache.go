package wal

import (
	"slices"
	"sort"
	"sync"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// Cache holds the newest batches of all the logs that share it, oldest out first, so that a node's memory does not grow with its partitions. It counts
// the bytes of the batches; a kept batch also keeps alive the buffer that it is a part of.
type Cache struct {
	mu     sync.Mutex
	budget int
	used   int
	queue  []*ring // the owner of each kept batch, oldest first
}

// NewCache makes a cache for so many bytes of batches.
func NewCache(bytes int) *Cache { return &Cache{budget: bytes} }

// ring is one log's part of a cache: the batches from some offset up to the log's end, without gaps. Its fields belong to the cache's lock. A nil
// ring holds nothing.
type ring struct {
	cache   *Cache
	batches []record.Batch
}

// add appends batches that the log has just taken in.
func (r *ring) add(batches []record.Batch) {
	if r == nil {
		return
	}
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range batches {
		r.batches = append(r.batches, b)
		c.queue = append(c.queue, r)
		c.used += len(b.Bytes())
	}
	for c.used > c.budget {
		oldest := c.queue[0]
		c.queue = c.queue[1:]
		c.used -= len(oldest.batches[0].Bytes())
		oldest.batches[0] = record.Batch{} // the array outlives the slice
		oldest.batches = oldest.batches[1:]
	}
}

// drop forgets everything, because the log's end moved in another way than by kept batches.
func (r *ring) drop() {
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
	}
	r.batches = nil
	c.queue = slices.DeleteFunc(c.queue, func(q *ring) bool { return q == r })
}

// read is Log.Read; ok is false if the batch that holds from is not here.
func (r *ring) read(from, to int64, limit int) (chunks []storage.Chunk, ok bool) {
	if r == nil {
		return nil, false
	}
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	if len(r.batches) == 0 || from < r.batches[0].BaseOffset {
		return nil, false
	}
	first := sort.Search(len(r.batches), func(i int) bool { return r.batches[i].NextOffset() > from })
	bytes := 0
	for _, b := range r.batches[first:] {
		if b.NextOffset() > to || (bytes > 0 && bytes+len(b.Bytes()) > limit) {
			break
		}
		bytes += len(b.Bytes())
		chunks = append(chunks, storage.Chunk{Memory: b.Bytes(), Length: len(b.Bytes())})
	}
	return chunks, true
}
