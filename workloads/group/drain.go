package group

import (
	"fmt"
	"time"

	"ackproof/workloads"
)

// What the harness demands of the groups of a system that is said to be whole again, and how it lets each of them read to the end.

const lookAgain = 50 * time.Millisecond

// Answers waits until the group's coordinator tells the committed offsets, and records the answer; "" if it did within the bound.
func (w *Workload) Answers(g Group, env workloads.Env, links map[int32]string, bound time.Duration) (problem string) {
	client := w.client(env, links)
	defer client.Close()
	process, end := w.log.NewProcess(), env.Now()+bound
	for {
		_, code := w.readBack(g, client, process)
		if code == 0 {
			return ""
		}
		if env.Now() > end || env.Stopped() {
			return fmt.Sprintf("nobody coordinates group %s (code %d)", g.Name, code)
		}
		env.Sleep(lookAgain)
	}
}

// Drain lets the group read what is left: a member joins, waits until it alone owns everything, reads every partition up to an empty read at its visible end, processes and commits
// it and leaves; then the committed offsets are read back and have to be those ends. Nothing may be written meanwhile. It gives up after the patience and says why.
func (w *Workload) Drain(g Group, env workloads.Env, links map[int32]string, patience time.Duration) (problem string) {
	end := env.Now() + patience
	for {
		m := w.newMember(g, env, links)
		m.calm = true
		for m.reason() != "" && !m.retired && env.Now() < end && !env.Stopped() {
			m.turn()
			env.Sleep(5 * time.Millisecond)
		}
		problem = m.reason()
		ends := map[int32]int64{}
		for p, at := range m.places {
			ends[p] = at.position
		}
		if problem == "" {
			m.leave()
			problem = w.confirm(g, env, m, ends, end)
		}
		retired := m.retired
		m.kafka.Close()
		if !retired || env.Now() >= end || env.Stopped() {
			return problem
		}
	}
}

// reason says what keeps a member from having read and committed everything, "" if nothing does.
func (m *member) reason() string {
	if !m.joined || len(m.places) < m.cfg.Log.Partitions {
		return fmt.Sprintf("%s: one member alone got %d of %d partitions", m.group.Name, len(m.places), m.cfg.Log.Partitions)
	}
	for _, p := range m.owns() {
		switch at := m.places[p]; {
		case !at.ready:
			return fmt.Sprintf("%s: nobody tells where to begin in p%d", m.group.Name, p)
		case !at.atEnd:
			return fmt.Sprintf("%s: the end of p%d was not reached, only offset %d", m.group.Name, p, at.position)
		case at.committed != at.position:
			return fmt.Sprintf("%s: offset %d of p%d is not committed", m.group.Name, at.position, p)
		}
	}
	return ""
}

// confirm reads the committed offsets back; they have to be the ends that were committed last.
func (w *Workload) confirm(g Group, env workloads.Env, m *member, ends map[int32]int64, until time.Duration) string {
	for {
		offsets, code := w.readBack(g, m.kafka, m.process)
		for p := range int32(w.cfg.Log.Partitions) {
			if code == 0 && offsets[p].Offset != ends[p] {
				return fmt.Sprintf("%s: offset %d of p%d was committed last, and %d is found", g.Name, ends[p], p, offsets[p].Offset)
			}
		}
		if code == 0 {
			return ""
		}
		if env.Now() > until {
			return fmt.Sprintf("%s: nobody tells the committed offsets (code %d)", g.Name, code)
		}
		env.Sleep(lookAgain)
	}
}
