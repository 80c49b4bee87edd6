package wire

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// pooledFrom is the smallest frame that is worth a place in the pool.
	pooledFrom = 16 << 10
	// stepsPerDouble is how many sizes of buffers there are between one power of two and the next: at most a quarter of a buffer is not used.
	stepsPerDouble = 4
	poison         = 0xdb
)

// FramePool keeps the memory of large frames for the next ones, so that a node that takes in a gigabyte does not clear and collect a gigabyte. A frame goes back when its last holder has let
// go of it: the server for as long as the request is handled, then whoever appends, caches or sends the batches in it. The zero value keeps nothing.
type FramePool struct {
	// Budget is how many bytes may lie about unused.
	Budget int
	// Poison is for tests: memory that is let go of is overwritten and never used again, so that whoever still reads it fails, and is reported by the race detector.
	Poison bool

	mu   sync.Mutex
	free map[int][]*Frame // by capacity
	kept int              // bytes in free
}

// Frame is a frame's memory, counted by its holders. A nil Frame is memory that nobody counts.
type Frame struct {
	pool *FramePool
	buf  []byte
	refs atomic.Int32
}

// get gives memory for a frame of that size, held once: the smallest that lies about, unless it is more than twice as large.
func (p *FramePool) get(size int) *Frame {
	size = roundUp(size)
	p.mu.Lock()
	best := 0
	for other, list := range p.free {
		if len(list) > 0 && other >= size && other <= 2*size && (best == 0 || other < best) {
			best = other
		}
	}
	var f *Frame
	if best != 0 {
		list := p.free[best]
		n := len(list) - 1
		f, list[n] = list[n], nil
		p.free[best] = list[:n]
		p.kept -= best
	}
	p.mu.Unlock()
	if f == nil {
		f = &Frame{pool: p, buf: make([]byte, size)}
	}
	f.refs.Store(1)
	return f
}

// put takes memory back. What does not fit into the budget is left to the garbage collector, and so are the sizes that have not been asked for.
func (p *FramePool) put(f *Frame) {
	if p.Poison {
		for i := range f.buf {
			f.buf[i] = poison
		}
		return
	}
	size := len(f.buf)
	p.mu.Lock()
	defer p.mu.Unlock()
	if size > p.Budget {
		return
	}
	for other, list := range p.free { // sizes change with the load: an old one makes room
		if p.kept+size <= p.Budget {
			break
		}
		if other != size {
			p.kept -= other * len(list)
			delete(p.free, other)
		}
	}
	if p.kept+size > p.Budget {
		return
	}
	if p.free == nil {
		p.free = map[int][]*Frame{}
	}
	p.free[size] = append(p.free[size], f)
	p.kept += size
}

// roundUp gives the next larger size of a buffer.
func roundUp(size int) int {
	step := 1 << max(bits.Len(uint(size-1))-1, 2) / stepsPerDouble
	return (size + step - 1) / step * step
}

// Retain adds a holder. The caller holds the frame.
func (f *Frame) Retain() {
	if f != nil && f.refs.Add(1) < 2 {
		panic("wire: a frame is held again after its last holder has let go of it")
	}
}

// Release lets go of the frame. Its bytes must not be touched by this holder after it.
func (f *Frame) Release() {
	if f == nil {
		return
	}
	switch n := f.refs.Add(-1); {
	case n == 0:
		f.pool.put(f)
	case n < 0:
		panic("wire: a frame was let go of more often than held")
	}
}
