package world

import (
	"errors"
	"iter"
	"time"
)

// Task is a coroutine of a process: plain blocking code that runs until it waits for something. Only one runs at a time.
type Task struct {
	w       *World
	p       *Process
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	stop    func()
	running bool
	ended   bool
	waits   uint64 // counts the waits; a wake-up for an earlier one is void
	timer   *Event
	woken   bool // the last wait ended by a signal
}

// errKilled unwinds a task whose process was killed.
var errKilled = errors.New("the process of this task was killed")

// Go starts a task in p, as an event of its own.
func (w *World) Go(p *Process, body func(t *Task)) *Task {
	t := &Task{w: w, p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.ended = true
			if r := recover(); r != nil && r != errKilled { //nolint:errorlint // the very value
				panic(r)
			}
		}()
		body(t)
	})
	p.tasks = append(p.tasks, t)
	w.After(0, p, t.resume)
	return t
}

// resume lets the task run until it waits again or ends.
func (t *Task) resume() {
	t.running = true
	_, more := t.next()
	t.running = false
	if !more {
		t.p.forget(t)
	}
}

// end unwinds the task where it waits.
func (t *Task) end() {
	if t.running {
		panic("world: a task ended its own process")
	}
	t.w.Cancel(t.timer)
	t.stop()
	t.ended = true
}

// park gives control back until the task is woken.
func (t *Task) park() {
	if !t.yield(struct{}{}) {
		panic(errKilled)
	}
}

// Process is the process that the task belongs to.
func (t *Task) Process() *Process { return t.p }

// Now is the virtual time.
func (t *Task) Now() time.Duration { return t.w.now }

// Sleep waits until d has passed.
func (t *Task) Sleep(d time.Duration) { t.Wait(nil, d) }

// Forever waits without an end in time.
const Forever time.Duration = -1

// Wait waits for the signal (nil: for none) or until limit has passed, and tells whether the signal came. Between the signal and the return other things
// may happen: look again at what was waited for.
func (t *Task) Wait(s *Signal, limit time.Duration) bool {
	t.waits++
	wait := t.waits
	t.woken = false
	t.timer = nil
	if limit >= 0 {
		t.timer = t.w.After(limit, t.p, func() {
			if t.waits == wait {
				t.resume()
			}
		})
	}
	if s != nil {
		s.waiting = append(s.waiting, waiter{t, wait})
	}
	t.park()
	t.waits++
	if s != nil && !t.woken {
		s.forget(t)
	}
	return t.woken
}

// wake is called when the signal of that wait comes.
func (t *Task) wake(wait uint64) {
	if t.waits != wait || t.ended || t.p.dead {
		return
	}
	t.waits++
	t.w.Cancel(t.timer)
	t.woken = true
	t.w.After(0, t.p, t.resume)
}

// Signal is something that tasks wait for. The zero value is ready.
type Signal struct{ waiting []waiter }

func (s *Signal) forget(t *Task) {
	for i, x := range s.waiting {
		if x.t == t {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return
		}
	}
}

type waiter struct {
	t    *Task
	wait uint64
}

// Broadcast wakes all tasks that wait now.
func (s *Signal) Broadcast() {
	for _, x := range s.waiting {
		x.t.wake(x.wait)
	}
	s.waiting = s.waiting[:0]
}
