package world

import "slices"

// Process is one life of a process: it can be paused and go on, and it dies once. Its events and tasks die with it.
type Process struct {
	w       *World
	id      int
	dead    bool
	paused  bool
	waiting []*Event // that would have happened while it was paused
	tasks   []*Task
}

// NewProcess starts a process; id stands for it in the event log.
func (w *World) NewProcess(id int) *Process { return &Process{w: w, id: id} }

// Alive tells whether it has not been killed.
func (p *Process) Alive() bool { return !p.dead }

// Paused tells whether it stands still.
func (p *Process) Paused() bool { return p.paused }

// Pause makes the process stand still while time goes on for the others.
func (p *Process) Pause() { p.paused = true }

// Resume lets it go on: whatever it missed happens now, in the order in which it would have.
func (p *Process) Resume() {
	p.paused = false
	missed := p.waiting
	p.waiting = nil
	for _, e := range missed {
		if e.do != nil {
			p.w.After(0, p, e.do)
		}
	}
}

// Kill ends the process at once. It must not be called by a task of the process itself.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.dead, p.waiting = true, nil
	tasks := p.tasks
	p.tasks = nil
	for _, t := range tasks {
		t.end()
	}
}

func (p *Process) forget(t *Task) {
	if i := slices.Index(p.tasks, t); i >= 0 {
		p.tasks = slices.Delete(p.tasks, i, i+1)
	}
}
