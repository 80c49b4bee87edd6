package page

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ackproof/histories"
)

// Offsets shown before and after the one that a window is about.
const (
	windowBefore = 4
	windowAfter  = 8
)

// maxWindows bounds the neighbourhoods that are shown.
const maxWindows = 8

// record is one value: who wrote it, and its number with that producer.
type record struct {
	producer int32
	sequence int64
	defect   histories.Defect
}

func (r record) String() string {
	if r.defect == histories.Corrupt {
		return "corrupt"
	}
	s := fmt.Sprintf("%d·%d", r.producer, r.sequence)
	if r.defect == histories.Foreign {
		s += " foreign"
	}
	return s
}

// sighting is one record that was seen at an offset, with the first operation that saw it and how many did.
type sighting struct {
	record
	op      uint64
	process int32
	node    int32
	at      time.Duration
	times   int
}

// stretch is the neighbourhood of some offsets of one partition, as everybody saw it.
type stretch struct {
	partition int32
	from, to  int64 // offsets [from, to)
	marked    map[int64]bool
	why       string
	calm      bool // about no anomaly

	acked, read, final map[int64][]sighting
	copies             map[int32]map[int64][]sighting // by node
	finalEnd           int64                          // end of the log as the drain read it, −1 unknown
	copyEnd            map[int32]int64
	unknown            []histories.Run // written by appends whose outcome nobody knows
}

func newStretch(partition int32, offset int64, why string) *stretch {
	from := max(0, offset-windowBefore)
	return &stretch{partition: partition, from: from, to: from + windowBefore + windowAfter + 1, marked: map[int64]bool{offset: true}, why: why,
		acked: map[int64][]sighting{}, read: map[int64][]sighting{}, final: map[int64][]sighting{}, copies: map[int32]map[int64][]sighting{},
		finalEnd: -1, copyEnd: map[int32]int64{}}
}

// look reads the history again for the stretches.
func look(run *Run, stretches []*stretch) error {
	if len(stretches) == 0 {
		return nil
	}
	by := map[int32][]*stretch{}
	for _, s := range stretches {
		by[s.partition] = append(by[s.partition], s)
	}
	writes := map[uint64][]histories.Run{} // appends under way on these partitions
	draining := false
	for ev, err := range run.Events() {
		if err != nil {
			return err
		}
		if ev.Kind == histories.Phase && ev.Note == "drain" {
			draining = true
		}
		near := by[ev.Partition]
		if len(near) == 0 || !ev.Kind.IsOperation() {
			continue
		}
		switch {
		case ev.Kind == histories.Append && ev.Type == histories.Invoke:
			writes[ev.Op] = slices.Clone(ev.Runs)
		case ev.Kind == histories.Append:
			for _, s := range near {
				s.wrote(&ev, writes[ev.Op])
			}
			delete(writes, ev.Op)
		case ev.Type == histories.OK && ev.Kind.IsRead():
			for _, s := range near {
				s.saw(&ev, draining)
			}
		case ev.Type == histories.OK && ev.Kind == histories.CopyEnd:
			for _, s := range near {
				s.copyEnd[ev.Node] = ev.Offset
			}
		}
	}
	for _, runs := range writes {
		for _, s := range stretches {
			s.unknown = append(s.unknown, runs...)
		}
	}
	return nil
}

func (s *stretch) wrote(ev *histories.Event, runs []histories.Run) {
	if ev.Type == histories.Info {
		s.unknown = append(s.unknown, runs...)
	}
	if ev.Type != histories.OK || ev.Offset < 0 || ev.Offset >= s.to {
		return
	}
	at := ev.Offset
	for _, r := range runs {
		s.note(s.acked, ev, at, r)
		at += int64(r.Count)
	}
}

func (s *stretch) saw(ev *histories.Event, draining bool) {
	into := s.read
	switch {
	case ev.Kind == histories.CopyRead:
		if into = s.copies[ev.Node]; into == nil {
			into = map[int64][]sighting{}
			s.copies[ev.Node] = into
		}
	case draining:
		into = s.final
		s.finalEnd = max(s.finalEnd, ev.Offset)
	}
	for _, r := range ev.Runs {
		s.note(into, ev, r.Offset, r)
		if draining && ev.Kind == histories.Fetch {
			s.finalEnd = max(s.finalEnd, r.Offset+int64(r.Count))
		}
	}
}

// note adds the records of a run that begins at an offset.
func (s *stretch) note(into map[int64][]sighting, ev *histories.Event, at int64, r histories.Run) {
	for k := max(at, s.from); k < min(at+int64(r.Count), s.to); k++ {
		v := record{r.Producer, r.Sequence + k - at, r.Defect}
		if r.Defect == histories.Corrupt {
			v = record{defect: histories.Corrupt}
		}
		i := slices.IndexFunc(into[k], func(g sighting) bool { return g.record == v })
		if i >= 0 {
			into[k][i].times++
			continue
		}
		into[k] = append(into[k], sighting{v, ev.Op, ev.Process, ev.Node, ev.Time, 1})
	}
}

// doubtful tells whether the append of a record has an outcome that nobody knows.
func (s *stretch) doubtful(v record) bool {
	return v.defect == histories.Sound && slices.ContainsFunc(s.unknown, func(r histories.Run) bool {
		return r.Producer == v.producer && r.Sequence <= v.sequence && v.sequence < r.Sequence+int64(r.Count)
	})
}

// grid is a stretch as a table.
type grid struct {
	Title, Why string
	Calm       bool // it is about no anomaly
	Partition  int32
	Offsets    []gridHead
	Rows       []gridRow
}

type gridHead struct {
	Offset int64
	Marked bool
}

type gridRow struct {
	Name, Title string
	Cells       []cell
}

// cell is what one party saw at one offset.
type cell struct {
	Texts  []cellText
	Class  string // of the look: "", "marked"
	Empty  string // why there is nothing, in a word
	Spoken string // for who cannot see the colour
}

type cellText struct {
	Text, Title string
	Op          uint64
	Class       string // "", "differs", "doubtful"
}

// grid lays the stretch out. What the final read found is what the others are compared with; where it found nothing, the acknowledgement.
func (s *stretch) grid() grid {
	g := grid{Title: fmt.Sprintf("Partition %d, offsets %s to %s", s.partition, number(s.from), number(s.to-1)), Why: s.why, Calm: s.calm, Partition: s.partition}
	for k := s.from; k < s.to; k++ {
		g.Offsets = append(g.Offsets, gridHead{k, s.marked[k]})
	}
	row := func(name, title string, seen map[int64][]sighting, end int64, verb string) {
		r := gridRow{Name: name, Title: title}
		for k := s.from; k < s.to; k++ {
			r.Cells = append(r.Cells, s.cell(k, seen[k], end, verb))
		}
		g.Rows = append(g.Rows, r)
	}
	row("acknowledged", "what producers were told to be at the offset", s.acked, -1, "acknowledged to")
	row("read", "what readers were given before the drain", s.read, -1, "read by")
	row("final read", "what the leader's log holds in the end", s.final, s.finalEnd, "read by")
	for _, node := range slices.Sorted(maps.Keys(s.copies)) {
		end, ok := s.copyEnd[node]
		if !ok {
			end = -1
		}
		row("copy on n"+strconv.Itoa(int(node)), "what this replica holds in the end", s.copies[node], end, "read by")
	}
	return g
}

func (s *stretch) cell(k int64, seen []sighting, end int64, verb string) cell {
	c := cell{}
	if s.marked[k] {
		c.Class = "marked"
	}
	if len(seen) == 0 {
		if end >= 0 && k >= end {
			c.Empty = "end"
		}
		return c
	}
	want := s.final[k]
	if len(want) == 0 {
		want = s.acked[k]
	}
	beyond := s.finalEnd >= 0 && k >= s.finalEnd && len(s.final[k]) == 0 // the log is shorter in the end
	for _, v := range seen {
		t := cellText{Text: v.String(), Op: v.op}
		times := ""
		if v.times > 1 {
			times = fmt.Sprintf(", seen %s times", number(v.times))
		}
		node := ""
		if v.node != 0 {
			node = fmt.Sprintf(" by n%d", v.node)
		}
		t.Title = fmt.Sprintf("record %d of producer %d, %s process %d at %s%s, operation %d%s", v.sequence, v.producer, verb, v.process, moment(v.at), node, v.op, times)
		if v.defect == histories.Corrupt {
			t.Title = strings.Replace(t.Title, fmt.Sprintf("record %d of producer %d", v.sequence, v.producer), "a record that is damaged or not of this run's making", 1)
		}
		switch {
		case beyond:
			t.Class = "differs"
			t.Title += "; the log ends before this offset now"
		case len(want) > 0 && !slices.ContainsFunc(want, func(w sighting) bool { return w.record == v.record }):
			t.Class = "differs"
			t.Title += "; the final read found another record here"
		case s.doubtful(v.record):
			t.Class = "doubtful"
			t.Title += "; its producer never learned whether it was written"
		}
		c.Texts = append(c.Texts, t)
	}
	return c
}

// stretches are the places that are worth looking at: round each proof, or, where nothing broke, where writing went on after the longest gap.
func stretchesOf(run *Run, c *collection, gaps []gap) []*stretch {
	var out []*stretch
	for _, p := range run.Proofs {
		if p.Partition < 0 || p.Offset < 0 || len(p.Operations) == 0 {
			continue
		}
		why := fmt.Sprintf("%s (%s)", p.Anomaly, p.Claim)
		i := slices.IndexFunc(out, func(s *stretch) bool {
			return s.partition == p.Partition && s.from <= p.Offset && p.Offset < s.to
		})
		switch {
		case i >= 0:
			out[i].marked[p.Offset] = true
			if !strings.Contains(out[i].why, why) {
				out[i].why += ", " + why
			}
		case len(out) < maxWindows:
			out = append(out, newStretch(p.Partition, p.Offset, why))
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, g := range gaps {
		if at, ok := c.resumed[place{g.partition, g.to}]; ok {
			s := newStretch(g.partition, at, fmt.Sprintf("where writing went on after the longest gap, %s at %s", span(g.to-g.from), moment(g.from)))
			s.calm = true
			return []*stretch{s}
		}
	}
	return nil
}

// place is a moment in a partition.
type place struct {
	partition int32
	at        time.Duration
}
