package sandbox

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ackproof/nemesis"
)

const (
	// reorderLeast and reorderMost bound how long a packet is held back so that others overtake it.
	reorderLeast = time.Millisecond
	reorderMost  = 20 * time.Millisecond
	// rateBacklog is how long a packet waits at most for its turn on a slow link; one that would wait longer is lost, as in the full buffer of a router.
	rateBacklog = 500 * time.Millisecond
)

// shaping is one treatment at work. Its fields are guarded by the queue's mu.
type shaping struct {
	t       nemesis.Treatment
	pick    *rand.Rand
	lanes   map[*lane]*turn
	clogged []waiting
	counts  nemesis.Treated
}

// turn is where a treatment is on one lane.
type turn struct {
	last time.Time // when the packet before this one goes on: delayed packets keep their order
	free time.Time // when the slow link has sent what it has
}

// waiting is a packet on its way.
type waiting struct {
	due   time.Time
	order uint64 // of arrival: whoever came first goes first, if both are due
	way   path
	p     packet
	by    []*shaping
}

// queue holds the packets that are on their way. Its lock is taken after the fabric's.
type queue struct {
	mu    sync.Mutex
	heap  waitingHeap
	count uint64
	// latest is the number of the latest packet that went on late, of each way.
	latest map[path]uint64
	wake   chan struct{}
	ended  chan struct{}
}

type waitingHeap []waiting

func (h waitingHeap) Len() int { return len(h) }
func (h waitingHeap) Less(i, j int) bool {
	return h[i].due.Before(h[j].due) || h[i].due.Equal(h[j].due) && h[i].order < h[j].order
}
func (h waitingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *waitingHeap) Push(x any)   { *h = append(*h, x.(waiting)) }
func (h *waitingHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = waiting{}
	*h = old[:len(old)-1]
	return last
}

// shape begins a treatment.
func (f *fabric) shape(t nemesis.Treatment, keys []nemesis.Lane) (end func() nemesis.Treated) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &shaping{t: t, pick: rand.New(rand.NewPCG(t.Seed, 0x7061636b657473)), lanes: map[*lane]*turn{}}
	for _, k := range keys {
		l := f.lane(k)
		if s.lanes[l] == nil { // a lane that is named twice is treated once
			s.lanes[l] = &turn{}
			l.shapings = append(l.shapings, s)
		}
	}
	return func() nemesis.Treated { return f.unshape(s) }
}

// unshape ends a treatment; what still waits by it goes on at once.
func (f *fabric) unshape(s *shaping) nemesis.Treated {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range s.lanes {
		l.shapings = slices.DeleteFunc(l.shapings, func(o *shaping) bool { return o == s })
	}
	f.queue.mu.Lock()
	out := s.clogged
	s.clogged = nil
	if s.t.Shuffle {
		s.pick.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	var late waitingHeap
	f.queue.heap = slices.DeleteFunc(f.queue.heap, func(w waiting) bool {
		mine := slices.Contains(w.by, s)
		if mine {
			late = append(late, w)
		}
		return mine
	})
	heap.Init(&f.queue.heap)
	slices.SortFunc(late, func(a, b waiting) int { return a.due.Compare(b.due) })
	for _, w := range late {
		f.queue.goesOn(w)
	}
	counts := s.counts
	f.queue.mu.Unlock()
	for _, w := range append(out, late...) {
		f.deliver(w.way, w.p)
	}
	return counts
}

// treat sends a packet through the treatments of its lanes; f.mu is held for reading.
func (f *fabric) treat(way path, p packet) {
	q := &f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now, copies := time.Now(), 1
	p = slices.Clone(p)
	q.count++
	w := waiting{due: now, order: q.count, way: way, p: p}
	var turns []*turn
	for _, l := range way {
		if l != nil {
			for _, s := range l.shapings {
				w.by, turns = append(w.by, s), append(turns, s.lanes[l])
			}
		}
	}
	share := func(s *shaping, of float64) bool { return of > 0 && s.pick.Float64() < of }
	for i, s := range w.by {
		s.counts.Seen++
		if share(s, s.t.Lose) {
			s.counts.Lost++
			return
		}
		if share(s, s.t.Duplicate) {
			s.counts.Duplicated++
			copies++
		}
		if share(s, s.t.Corrupt) && len(p) > p.header() {
			s.counts.Corrupted++
			p[p.header()+s.pick.IntN(len(p)-p.header())] ^= 1 << s.pick.IntN(8)
		}
		turn := turns[i]
		if s.t.Rate > 0 {
			begin := w.due
			if turn.free.After(begin) {
				begin = turn.free
				s.counts.Waited++
			}
			if begin.Sub(now) > rateBacklog {
				s.counts.Lost++
				return
			}
			turn.free = begin.Add(time.Duration(float64(len(p)) / float64(s.t.Rate) * float64(time.Second)))
			w.due = turn.free
		}
		if s.t.Delay > 0 || s.t.Jitter > 0 {
			w.due = w.due.Add(s.t.Delay)
			if s.t.Jitter > 0 {
				w.due = w.due.Add(time.Duration(s.pick.Int64N(int64(s.t.Jitter))))
			}
			if w.due.Before(turn.last) {
				w.due = turn.last
			}
			turn.last = w.due
			s.counts.Late++
		}
		if share(s, s.t.Reorder) {
			w.due = w.due.Add(reorderLeast + time.Duration(s.pick.Int64N(int64(reorderMost-reorderLeast))))
		}
		if s.t.Clog {
			s.counts.Waited++
			s.clogged = append(s.clogged, w)
			return
		}
	}
	for range copies {
		heap.Push(&q.heap, w)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// carryLate delivers what is due, until the fabric is closed.
func (f *fabric) carryLate() {
	q := &f.queue
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		due, next := q.due(time.Now())
		for _, w := range due {
			f.mu.RLock()
			f.deliver(w.way, w.p)
			f.mu.RUnlock()
		}
		if len(due) > 0 {
			continue
		}
		t.Reset(next)
		select {
		case <-q.ended:
			return
		case <-q.wake:
		case <-t.C:
		}
	}
}

// due takes out what is due now; if nothing is, next is how long that takes at least.
func (q *queue) due(now time.Time) (due []waiting, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.heap) > 0 && !q.heap[0].due.After(now) {
		w := heap.Pop(&q.heap).(waiting)
		q.goesOn(w)
		due = append(due, w)
	}
	if len(q.heap) == 0 {
		return due, time.Hour
	}
	return due, q.heap[0].due.Sub(now)
}

// goesOn counts whether others have overtaken the packet.
func (q *queue) goesOn(w waiting) {
	for _, s := range w.by {
		if w.order < q.latest[w.way] {
			s.counts.Reordered++
		}
	}
	q.latest[w.way] = max(q.latest[w.way], w.order)
}
