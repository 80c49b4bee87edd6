package verify

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ackproof/histories"
	"ackproof/model"
)

// move is an operation that a run of an object may have: somewhere in [inv, ret], and for certain if it is firm.
type move struct {
	steps    []histories.Step
	inv, ret uint64
	firm     bool
}

// contents is what the cells of an object hold; a cell that is not there holds nothing, "".
type contents map[string]string

// searchLimit bounds the search for a run, in states.
const searchLimit = 1 << 18

// unexplained demands that the cited operations cannot all stand in one run of the object that keeps real time. All others that can have left what a cited
// one found, or made room for it, may stand in it too, where they were; whoever only reads is left out, which makes more runs possible and no fewer.
func unexplained(p *proof) {
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, o := range p.cited {
		first, last = min(first, o.begin.Seq), max(last, o.end.Seq)
	}
	starts, isMutex := []contents{{}}, p.does(histories.Acquire, histories.Release)
	var moves, others []move
	o := object{text: p.does(histories.AppendTo), stream: p.does(histories.CheckTail, histories.ExpectTail, histories.ExpectToken, histories.SetToken)}
	for _, op := range p.ops {
		for _, s := range op.begin.Steps {
			o.stream = o.stream || s.Do == histories.AppendTo && s.Value.Form == histories.List
		}
	}
	for _, op := range p.ops {
		m := move{op.begin.Steps, op.begin.Seq, math.MaxUint64, false}
		if op.ok() && op.end.Seq <= last { // what it is later is no matter
			m = move{op.end.Steps, op.begin.Seq, op.end.Seq, true}
		}
		isCited := slices.Contains(p.cited, op)
		m.steps = slices.DeleteFunc(slices.Clone(m.steps), func(s histories.Step) bool {
			return reads(s) && (!m.firm || !isCited) || !p.isAbout(s.Key)
		})
		switch {
		case len(m.steps) == 0 || op.done && op.end.Type == histories.Fail || m.inv > last:
		case isMutex && m.ret < first: // over before them: it left the mutex free, or held if somebody took it
			if s := m.steps[0]; s.Do == histories.Acquire && len(starts) == 1 {
				starts = append(starts, contents{s.Key: "held"})
			}
		case isCited:
			moves = append(moves, m)
		default:
			others = append(others, m)
		}
	}
	for i := 0; i < len(moves); i++ { // moves grows with whatever its members may need
		for _, s := range moves[i].steps {
			others = slices.DeleteFunc(others, func(m move) bool {
				needed := slices.ContainsFunc(m.steps, func(w histories.Step) bool { return o.serves(w, s) })
				if needed {
					moves = append(moves, m)
				}
				return needed
			})
		}
	}
	legal, tried := o.explain(moves, starts...)
	p.need(tried < searchLimit, "there are too many runs of %d operations to go through", len(moves))
	p.need(!legal, "the operations can be explained")
}

func reads(s histories.Step) bool {
	return s.Do == histories.Read || s.Do == histories.CheckTail || s.Do == histories.Committed
}

// object is how values are taken: as texts, to which others are appended, or as the records of a stream.
type object struct{ text, stream bool }

// value is what a step leaves or finds in its cell.
func (o object) value(s histories.Step, d histories.Datum) string {
	switch {
	case s.Do == histories.Commit || s.Do == histories.Committed:
		return committed(s)
	case o.text && d.Form == histories.Text:
		return d.Text
	}
	return d.String()
}

// committed is what was committed: nothing, or an offset with its metadata.
func committed(s histories.Step) string {
	if s.Offset < 0 {
		return ""
	}
	return fmt.Sprintf("%d %v", s.Offset, s.Value)
}

// serves tells whether w may leave what s finds.
func (o object) serves(w, s histories.Step) bool {
	switch found := o.value(s, s.Value); {
	case w.Key != s.Key:
		return false
	case o.stream || w.Do == histories.Acquire || w.Do == histories.Release:
		return true
	case s.Do == histories.CompareAndSet:
		return o.value(w, w.Value) == o.value(s, s.Old)
	case !reads(s):
		return false
	case o.text:
		return strings.Contains(found, o.value(w, w.Value))
	default:
		return o.value(w, w.Value) == found
	}
}

// explain looks for a run from one of the states: the moves one after the other, each in its interval and with the answer it had. It takes time in proportion
// to the moves that overlap, not to all.
func (o object) explain(moves []move, starts ...contents) (legal bool, tried int) {
	slices.SortFunc(moves, func(a, b move) int { return cmp.Compare(a.inv, b.inv) })
	been := make(map[string]bool)
	done := make([]byte, len(moves))
	// next goes on where all moves below low are done and none from high on is; latest is the last beginning of one that is.
	var next func(now contents, low, high int, latest uint64) bool
	next = func(now contents, low, high int, latest uint64) bool {
		for low < high && done[low] != 0 {
			low++
		}
		key := strconv.Itoa(low) + " " + string(done[low:high]) + now.key()
		if been[key] || len(been) >= searchLimit {
			return false
		}
		been[key] = true
		first, left := uint64(math.MaxUint64), false // the earliest end among those that still have to happen
		for i := low; i < len(moves) && moves[i].inv <= first; i++ {
			if m := moves[i]; m.firm && done[i] == 0 {
				first, left = min(first, m.ret), true
			}
		}
		if !left {
			return true
		}
		for i := low; i < len(moves) && moves[i].inv <= first; i++ {
			if m := moves[i]; done[i] == 0 && m.ret >= latest {
				if after, ok := o.apply(m, now); ok {
					done[i] = 1
					if next(after, low, max(high, i+1), max(latest, m.inv)) {
						return true
					}
					done[i] = 0
				}
			}
		}
		return false
	}
	legal = slices.ContainsFunc(starts, func(c contents) bool { return next(c, 0, 0, 0) })
	return legal, len(been)
}

func (c contents) key() string {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(c)) {
		b = strconv.AppendQuote(strconv.AppendQuote(b, k), c[k])
	}
	return string(b)
}

// apply gives what the cells hold after a move; false if it cannot have had its answer, or cannot have happened.
func (o object) apply(m move, now contents) (contents, bool) {
	next := maps.Clone(now)
	for _, s := range m.steps {
		if o.stream {
			if !appendTo(next, s, m.firm) {
				return nil, false
			}
			continue
		}
		found, value := next[s.Key], o.value(s, s.Value)
		switch s.Do {
		case histories.Read, histories.Committed:
			if found != value {
				return nil, false
			}
		case histories.CompareAndSet:
			if found != o.value(s, s.Old) {
				return nil, false
			}
			next[s.Key] = value
		case histories.AppendTo:
			next[s.Key] = found + value
		case histories.Acquire, histories.Release:
			free := map[histories.Do]string{histories.Acquire: "", histories.Release: "held"}
			if found != free[s.Do] {
				return nil, false
			}
			next[s.Key] = free[histories.Acquire+histories.Release-s.Do]
		default:
			next[s.Key] = value
		}
	}
	return next, true
}

// appendTo is one step on a stream: conditions first, then the records, whose hashes fold into that of the stream.
func appendTo(c contents, s histories.Step, answered bool) bool {
	cell := func(name string) string { return s.Key + "\x00" + name }
	number := func(name string) uint64 { n, _ := strconv.ParseUint(c[cell(name)], 10, 64); return n }
	tail, hash := number("tail"), number("hash")
	switch s.Do {
	case histories.CheckTail:
		return uint64(s.Offset) == tail
	case histories.Read:
		return uint64(s.Offset) == tail && uint64(s.Value.Int) == hash
	case histories.ExpectTail:
		return uint64(s.Number) == tail
	case histories.ExpectToken:
		return c[cell("token")] == "="+s.Value.Text
	case histories.SetToken:
		c[cell("token")] = "=" + s.Value.Text
	case histories.AppendTo:
		for _, r := range s.Value.List {
			tail, hash = tail+1, model.StreamHash(hash, uint64(r))
		}
		c[cell("tail")], c[cell("hash")] = strconv.FormatUint(tail, 10), strconv.FormatUint(hash, 10)
		return !answered || uint64(s.Offset) == tail
	}
	return true
}
