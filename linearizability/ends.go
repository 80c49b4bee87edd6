package linearizability

import (
	"slices"
	"sort"

	"ackproof/histories"
	"ackproof/model"
)

// step is one tread of a staircase: the largest offset that a leader of an epoch up to this one has answered.
type step struct {
	epoch  int32
	offset int64
	op     int32
}

// stairs keeps, for every leader epoch, the largest answer of leaders up to that epoch. Both epoch and offset rise from step to step.
type stairs []step

func (s stairs) upTo(epoch int32) (step, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].epoch > epoch })
	if i == 0 {
		return step{}, false
	}
	return s[i-1], true
}

func (s stairs) add(n step) stairs {
	if best, ok := s.upTo(n.epoch); ok && best.offset >= n.offset {
		return s
	}
	from := sort.Search(len(s), func(i int) bool { return s[i].epoch >= n.epoch })
	to := from
	for to < len(s) && s[to].offset <= n.offset {
		to++
	}
	return slices.Replace(s, from, to, n)
}

// ends checks that the visible end and the start of the log do not go back. Two answers are compared if the first had returned before the
// second was asked for, and the second's leader epoch is not older: a leader that was deposed and does not know it may answer what was true
// in its time, and no client can hold that against it, since the answer carries the epoch. Answers without an epoch cannot be compared.
func (h *history) ends(p *part, t *tally) {
	returned := p.answers
	asked := slices.Sorted(slices.Values(returned))
	t.answers += int64(len(asked))
	var ends, starts stairs
	for _, i := range asked {
		o := h.ops.at(i)
		for len(returned) > 0 && h.ops.at(returned[0]).end < o.inv {
			r := h.ops.at(returned[0])
			if n := (step{r.epoch, r.offset, returned[0]}); r.kind == histories.EndOffset {
				ends = ends.add(n)
			} else {
				starts = starts.add(n)
			}
			returned = returned[1:]
		}
		compare := func(s stairs, a model.Anomaly) {
			if before, ok := s.upTo(o.epoch); ok && before.offset > o.offset {
				t.add(finding{claim: model.VisibleEnd, anomaly: a, part: p, offset: o.offset, record: none, other: none, a: before.op, b: i, seen: true})
			}
		}
		if o.kind == histories.EndOffset {
			compare(ends, model.StaleEndOffset)
			compare(starts, model.StartAboveHW)
		} else {
			compare(starts, model.StartOffsetBackwards)
		}
	}
}
