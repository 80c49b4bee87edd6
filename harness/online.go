package harness

import (
	"fmt"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// certainty is the end of a load that has nothing more to find: a violation is certain.
type certainty struct {
	reached  chan struct{} // closed when it is
	online   *linearizability.Online
	sighting *linearizability.Sighting // the first of a claim that was asked for; written under the journal's lock
	monitors []linearizability.Monitor // of the groups; nil: of another workload
	proof    *model.Certificate        // the first of theirs, likewise
}

// sure tells whether a violation is certain.
func (c *certainty) sure() bool { return c.sighting != nil || c.proof != nil }

// reach ends the load, unless the test is to go on. It may be called again.
func (r *run) reach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.certain.reached:
	default:
		close(r.certain.reached)
	}
}

// watchLog is the journal's tap: the online checker sees every event as it is written, until it has seen a violation. The check of the whole
// history has to confirm it.
func (r *run) watchLog(ev histories.Event) {
	c := &r.certain
	if c.sighting != nil || c.online == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.online = nil
			r.died("the online checker", p)
		}
	}()
	s := c.online.Step(&ev)
	if s == nil || !r.asked(s.Claim) {
		return
	}
	c.sighting = s
	r.note(fmt.Sprintf("a violation is certain %.1f s into the run: %v", ev.Time.Seconds(), s))
	r.reach()
}

// finishOnline asks the online checker for what it can only tell at the end.
func (r *run) finishOnline() {
	c := &r.certain
	if c.online == nil || c.sighting != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.died("the online checker", p)
		}
	}()
	if s := c.online.Finish(); s != nil && r.asked(s.Claim) {
		c.sighting = s
	}
}

// unconfirmed says what the online checker saw and the check of the whole history did not find, "" if they agree.
func (r *run) unconfirmed(v model.Verdict) string {
	if s := r.certain.sighting; s != nil && v != model.Violated {
		return fmt.Sprintf("the online checker saw %v, and the check of the whole history finds nothing", s)
	}
	if c := r.certain.proof; c != nil && v != model.Violated {
		return fmt.Sprintf("the online checker saw %s in %s, and the check of the whole history finds nothing: %s", c.Anomaly, c.Object, c.Sentence)
	}
	return ""
}
