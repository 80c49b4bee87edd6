package linearizability

import (
	"fmt"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// stepped is one step of an operation on objects, with the interval of its operation. The steps of one operation are judged each for itself.
// Once the operation is completed with OK it is the step as the completion has it: what was seen.
type stepped struct {
	histories.Step
	inv, end         uint64 // sequence numbers; end 0: no completion
	invTime, endTime time.Duration
	process          int32
	outcome          histories.Type // Invoke: never completed
}

// ret is the last moment at which the step can have taken effect.
func (s *stepped) ret() uint64 {
	if s.outcome == histories.OK {
		return s.end
	}
	return forever
}

func (s *stepped) began() string { return stamp(s.invTime) }
func (s *stepped) ended() string {
	if s.end == 0 {
		return "no time"
	}
	return stamp(s.endTime)
}

// proof is the step's operation as a certificate has it.
func (s *stepped) proof(role string) model.ProofOp {
	p := model.ProofOp{Role: role, Op: s.inv, Invoked: int64(s.invTime), Ended: -1, EndSeq: s.end, Process: s.process, What: s.Do.String(), Steps: []model.QuotedStep{quoteStep(s.Step)}}
	if s.end != 0 {
		p.Ended = int64(s.endTime)
	}
	p.Text = p.What + " " + s.what() + ": "
	switch s.outcome {
	case histories.OK:
		p.Text += "ok"
	case histories.Fail:
		p.Text += "refused"
	case histories.Info:
		p.Text += "unknown outcome"
	default:
		p.Text += "no answer"
	}
	return p
}

// what names the object and the value of the step.
func (s *stepped) what() string {
	text := named(s.Key)
	switch s.Do {
	case histories.Commit, histories.Committed, histories.Assigned:
		text += fmt.Sprintf(" offset %d", s.Offset)
		if s.Value.Form != histories.Nil {
			text += " " + datum(s.Value)
		}
		if s.Do != histories.Committed && s.Number > 0 {
			text += fmt.Sprintf(" generation %d", s.Number)
		}
	case histories.Revoked:
	case histories.Delivered, histories.Processed:
		text += fmt.Sprintf(" offsets %d to %d", s.Offset, s.Offset+s.Number-1)
	default:
		if s.Value.Form == histories.Nil {
			return text + " nothing"
		}
		text += " " + datum(s.Value)
		switch {
		case (s.Do == histories.Receive || s.Do == histories.Extend) && s.Number > 0:
			text += " for " + time.Duration(s.Number).String()
		case (s.Do == histories.Enqueue) && s.Number > 0:
			text += fmt.Sprintf(" as number %d", s.Number)
		}
	}
	return text
}

// pending are the steps of an open operation as they were asked for.
type pending struct {
	inv     uint64
	invTime time.Duration
	process int32
	asked   []histories.Step
	kept    []any // what a monitor remembers of each, parallel to asked
}

// joined feeds a monitor with steps: begin when one is asked for, finish when it is over. Memory grows with the operations that are open.
type joined struct {
	open   map[uint64]*pending
	counts model.Operations
}

// listener is told of the steps of a history.
type listener interface {
	begin(s *stepped) (remember any)
	finish(s *stepped, remembered any)
}

// step takes one event. A step that was asked for and that an OK with steps does not list did not take effect; an OK without steps is as asked.
// A completion may list several steps for one that was asked (messages of one receive, records of one poll) but only of objects that were asked for.
func (j *joined) step(ev *histories.Event, l listener) error {
	if ev.Kind != histories.Object {
		return nil
	}
	if ev.Type == histories.Invoke {
		if j.open == nil {
			j.open = make(map[uint64]*pending)
		}
		p := &pending{ev.Seq, ev.Time, ev.Process, slices.Clone(ev.Steps), nil}
		for _, s := range p.asked {
			p.kept = append(p.kept, l.begin(&stepped{Step: s, inv: p.inv, invTime: p.invTime, endTime: -1, process: p.process}))
		}
		j.open[ev.Op] = p
		return nil
	}
	p := j.open[ev.Op]
	if p == nil {
		return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("completes operation %d, which is not open", ev.Op)}
	}
	delete(j.open, ev.Op)
	over := stepped{inv: p.inv, invTime: p.invTime, end: ev.Seq, endTime: ev.Time, process: p.process, outcome: ev.Type}
	switch ev.Type {
	case histories.OK:
		j.counts.OK++
	case histories.Fail:
		j.counts.Fail++
	default:
		j.counts.Info++
	}
	matched := make([]bool, len(p.asked))
	if ev.Type == histories.OK {
		for _, s := range ev.Steps {
			i := slices.IndexFunc(p.asked, func(a histories.Step) bool {
				return a.Do == s.Do && a.Key == s.Key && (a.Do != histories.Commit && a.Do != histories.Enqueue || a.Offset == s.Offset && datum(a.Value) == datum(s.Value))
			})
			if i < 0 {
				return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("a %v of %q, which operation %d did not ask for", s.Do, s.Key, ev.Op)}
			}
			over := over
			over.Step = s
			l.finish(&over, p.kept[i])
			matched[i] = true
		}
	}
	for i, s := range p.asked {
		if !matched[i] {
			over := over
			over.Step = s
			if ev.Type == histories.OK && len(ev.Steps) > 0 {
				over.outcome = histories.Fail
			}
			l.finish(&over, p.kept[i])
		}
	}
	return nil
}
