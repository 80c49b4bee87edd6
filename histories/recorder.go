package histories

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Recorder is the one journal of a run. It stamps every event with one counter and one monotonic clock under one lock: whatever happened
// before, as any client could see it, has the smaller number. Call Invoke before the request leaves and Complete after the answer came, so
// that an operation's interval can only be too wide. Safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	out    *Writer
	now    func() time.Duration
	seq    uint64
	taps   []func(Event)
	closed bool
}

// NewRecorder writes the header at once and counts time from now on. A failed write shows in Err and Close: the run has then no
// history to be judged by, which is a failure of the infrastructure.
func NewRecorder(w io.Writer, h Header) *Recorder {
	start := time.Now()
	return NewRecorderClock(w, h, func() time.Duration { return time.Since(start) })
}

// NewRecorderClock is NewRecorder with another clock, for simulated time. It is called under the recorder's lock and must not fall.
func NewRecorderClock(w io.Writer, h Header, now func() time.Duration) *Recorder {
	return &Recorder{out: NewWriter(w, h), now: now}
}

// Tap adds a function that is given every later event, in order and under the lock: it must be quick and must not call the recorder.
// The event's Runs belong to the caller of Invoke or Complete.
func (r *Recorder) Tap(f func(Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taps = append(r.taps, f)
}

// Invoke stamps and records the beginning of an operation. The number it returns is the Op that Complete needs.
func (r *Recorder) Invoke(ev Event) (op uint64) {
	ev.Type, ev.Op = Invoke, 0
	return r.record(ev)
}

// Complete stamps and records the end of the operation ev.Op; ev.Type is OK, Fail or Info. It returns the event's number.
func (r *Recorder) Complete(ev Event) (seq uint64) {
	return r.record(ev)
}

// Mark stamps and records a Fault or a Phase.
func (r *Recorder) Mark(ev Event) (seq uint64) {
	ev.Op = 0
	return r.record(ev)
}

// record gives an event whose Op is 0 its own number as Op.
func (r *Recorder) record(ev Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	ev.Seq, ev.Time = r.seq, r.now()
	if ev.Op == 0 {
		ev.Op = ev.Seq
	}
	if r.closed {
		r.out.err = errors.Join(r.out.err, errors.New("history: event recorded after Close"))
		return ev.Seq
	}
	r.out.Write(&ev) // the error is kept by the writer
	for _, tap := range r.taps {
		tap(ev)
	}
	return ev.Seq
}

// Last is the number of the last event, 0 before the first.
func (r *Recorder) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// Now is the recorder's clock.
func (r *Recorder) Now() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now()
}

// Flush hands everything so far to the writer below.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Flush()
}

// Err is the first error of a write, if any. Taps go on after it.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Err()
}

// Close flushes and returns the first error of the whole recording. It does not close the writer below.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.out.Flush()
	r.closed = true
	return err
}
