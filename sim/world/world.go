// Package world is the kernel of the simulator: virtual time, one queue of events, coroutines instead of goroutines, processes that can be paused and
// killed, and a network whose links can be held. Whatever happens follows from the seed alone: one thing happens at a time, in the order of virtual time
// and, within one moment, in the order in which it was asked for. The package knows no broker, no client and no fault; it reads no clock, starts no
// goroutine of its own and iterates over no map.
//
// Start reading at World, then Process and Task, then Net.
package world

import (
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"time"
)

// World is one simulated world. Not safe for concurrent use.
type World struct {
	seed   uint64
	now    time.Duration
	number uint64 // of the next event
	queue  queue
	events uint64
	hash   uint64
	trace  io.Writer
}

// New makes a world in which nothing has been asked for yet. trace, if not nil, is given the canonical event log, one line per note.
func New(seed int64, trace io.Writer) *World {
	return &World{seed: uint64(seed), hash: 14695981039346656037, trace: trace}
}

// Now is the virtual time since the beginning.
func (w *World) Now() time.Duration { return w.now }

// Events is how many events have happened.
func (w *World) Events() uint64 { return w.events }

// Rand makes a random stream that follows from the seed and its own number.
func (w *World) Rand(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, stream*0x9e3779b97f4a7c15+0x73696d))
}

// Hash is the hash of the canonical event log so far: of every event's moment and process, and of every Note.
func (w *World) Hash() uint64 { return w.hash }

// Note puts something that happened into the canonical event log. what is a constant; the numbers say which and how much.
func (w *World) Note(what string, numbers ...int64) {
	h := w.hash
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 1099511628211
	}
	for _, n := range numbers {
		h = mix(h, uint64(n))
	}
	w.hash = h
	if w.trace != nil {
		w.write(what, numbers)
	}
}

func (w *World) write(what string, numbers []int64) {
	fmt.Fprintf(w.trace, "%12.6f %s", w.now.Seconds(), what)
	for _, n := range numbers {
		fmt.Fprintf(w.trace, " %d", n)
	}
	fmt.Fprintln(w.trace)
}

// Tracing tells whether somebody reads the event log.
func (w *World) Tracing() bool { return w.trace != nil }

// Say adds a line for people to the event log. It is not a part of the hash.
func (w *World) Say(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12.6f # %s\n", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

func mix(h, n uint64) uint64 {
	hi, lo := bits.Mul64(h^n, 0x9e3779b97f4a7c15)
	return bits.RotateLeft64(hi^lo, 29) + n
}

// Event is something that will happen. The zero value is nothing.
type Event struct {
	at      time.Duration
	number  uint64
	place   int // in the queue, −1 if not there
	process *Process
	do      func()
}

// After makes do happen in process p when d has passed: at once if d ≤ 0, but never before this event is over. If the process is paused then, it
// happens when the process goes on; if it is dead, never.
func (w *World) After(d time.Duration, p *Process, do func()) *Event {
	e := &Event{at: w.now + max(d, 0), number: w.number, process: p, do: do}
	w.number++
	w.queue.push(e)
	return e
}

// Cancel makes the event not happen, if it has not yet.
func (w *World) Cancel(e *Event) {
	if e == nil {
		return
	}
	if e.place >= 0 {
		w.queue.remove(e.place)
	}
	e.do = nil // if the process is paused it waits there
}

// Step lets the next event happen; false if there is none.
func (w *World) Step() bool {
	e := w.queue.pop()
	if e == nil {
		return false
	}
	w.now = e.at
	w.happen(e)
	return true
}

func (w *World) happen(e *Event) {
	p := e.process
	switch {
	case e.do == nil || p.dead:
	case p.paused:
		p.waiting = append(p.waiting, e)
	default:
		w.events++
		w.hash = mix(mix(w.hash, uint64(w.now)), uint64(p.id))
		do := e.do
		e.do = nil
		do()
	}
}

// Until lets events happen until done says so or none is left.
func (w *World) Until(done func() bool) {
	for !done() && w.Step() {
	}
}
