package harness

import (
	"fmt"
	"iter"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// gapless gives the events of a run's own journal, and an error where one is missing. The recorder numbers every event that it is given and the run ends it
// with a mark, so a number that is not there, or no mark, is something that was seen and not kept: of such a history nothing can be said.
func gapless(events iter.Seq2[histories.Event, error]) iter.Seq2[histories.Event, error] {
	return func(yield func(histories.Event, error) bool) {
		var last histories.Event
		for ev, err := range events {
			if err == nil && ev.Seq != last.Seq+1 {
				err = fmt.Errorf("event %d is followed by event %d, expected every number: the recorder has lost what lies between", last.Seq, ev.Seq)
			}
			if !yield(ev, err) || err != nil {
				return
			}
			last = ev
		}
		if last.Kind != histories.Phase || last.Note != endMark {
			yield(histories.Event{}, fmt.Errorf("the last event is number %d, expected the mark of the run's end: the recorder has lost what lies behind", last.Seq))
		}
	}
}

// endMark is the phase that ends a journal.
const endMark = "end"

// miscounted says that the check has not seen what the clients were told, "" if it has: they count acknowledged records on a way of their own. Who skips a
// partition, or loses an acknowledgement, would find less to complain of.
func (r *run) miscounted(a *linearizability.Answer) string {
	if clients := r.counters.Total(); a.Records.Acked != clients && a.Verdict() != model.Violated {
		return fmt.Sprintf("the clients were told of %d acknowledged records, the check knows of %d", clients, a.Records.Acked)
	}
	return ""
}
