package linearizability

import (
	"errors"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/model"
)

// OpinionOptions bound the second opinion.
type OpinionOptions struct {
	Budget time.Duration // for all windows together; 0: 2 s
}

// Opinion is what porcupine had to say.
type Opinion struct {
	model.SecondOpinion
	Skipped int    // windows that were not decided
	Reason  string // why, "" if none was skipped
}

// ErrDisagreement: porcupine and the exact checkers answer differently. One of them is wrong, and so is ackproof: exit code 255, never a verdict.
var ErrDisagreement = errors.New("porcupine and the exact checkers disagree")

// Disagreement says where. It is an ErrDisagreement.
type Disagreement struct {
	Partition int32
	From, To  int64  // offsets of the window
	FromSeq   uint64 // real time of the window, as sequence numbers
	ToSeq     uint64
	Porcupine string // its answer
	Exact     string // ours
}

// Error names the window and both answers.
func (d *Disagreement) Error() string {
	return fmt.Sprintf("%v on p%d, offsets %d to %d, events %d to %d: porcupine says %s, the exact checkers say %s",
		ErrDisagreement, d.Partition, d.From, d.To, d.FromSeq, d.ToSeq, d.Porcupine, d.Exact)
}

// Unwrap makes it an ErrDisagreement.
func (d *Disagreement) Unwrap() error { return ErrDisagreement }

// windowTime bounds one window: a window that porcupine cannot decide soon it will not decide at all.
const windowTime = 200 * time.Millisecond

// SecondOpinion has porcupine decide windows of the history that a answers for: those with anomalies first, then others spread evenly over
// the run, until the budget is used up. A window gets its operations only when its turn comes. The error is a Disagreement; the Opinion that comes with it has Agreed false.
func SecondOpinion(a *Answer, o OpinionOptions) (Opinion, error) {
	if o.Budget <= 0 {
		o.Budget = 2 * time.Second
	}
	deadline := time.Now().Add(o.Budget)
	out := Opinion{SecondOpinion: model.SecondOpinion{By: "porcupine", Agreed: true}}
	var windows []window
	for _, p := range a.log.parts {
		windows = append(windows, a.log.windows(p)...)
	}
	var found error
	late, large, unread := 0, 0, 0
	for i, w := range spread(windows) {
		left := time.Until(deadline)
		if left <= 0 {
			late += len(windows) - i
			break
		}
		w.build()
		switch {
		case len(w.ops) <= 1: // nothing but the window's own
		case w.unread:
			unread++
		case len(w.ops) > windowMax:
			large++
		default:
			verdict := porcupine.CheckOperationsTimeout(w.model(), w.ops, min(left, windowTime))
			if verdict == porcupine.Unknown {
				late++
				break
			}
			out.Windows++
			out.Operations += len(w.ops) - 1
			if d := w.disagree(verdict); d != nil && found == nil {
				found = d
				out.Agreed = false
			}
		}
		w.ops = nil
	}
	out.Skipped = late + large + unread
	if out.Skipped > 0 {
		out.Reason = fmt.Sprintf("%d out of time, %d without a quiet moment in %d operations, %d with unread offsets", late, large, windowMax, unread)
	}
	return out, found
}

// spread puts windows with anomalies first and the others in an order whose every beginning covers the run about evenly.
func spread(in []window) []*window {
	var first, rest []*window
	for i := range in {
		if w := &in[i]; w.suspect != 0 {
			first = append(first, w)
		} else {
			rest = append(rest, w)
		}
	}
	// Halving steps: 0, n/2, n/4, 3n/4, …
	taken := make([]bool, len(rest))
	for step := len(rest); step > 0; step /= 2 {
		for i := 0; i < len(rest); i += step {
			if !taken[i] {
				taken[i] = true
				first = append(first, rest[i])
			}
		}
	}
	return first
}

func (w *window) disagree(v porcupine.CheckResult) error {
	d := &Disagreement{Partition: w.part.number, From: w.from, To: w.to, FromSeq: w.h.seq(w.after), ToSeq: w.h.seq(w.until), Porcupine: string(v), Exact: "no anomaly"}
	switch {
	case v == porcupine.Illegal && w.suspect == 0:
		return d
	case v == porcupine.Ok && w.suspect&mustFail != 0:
		d.Exact = "an anomaly"
		return d
	}
	return nil
}
