package verify

import (
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// committed tells whether a transaction took effect: it went through, or its outcome is unknown and somebody read what it appended.
func (p *proof) committed(o *operation) bool {
	if o.ok() || o.done && o.end.Type == histories.Fail {
		return o.ok()
	}
	return slices.ContainsFunc(o.begin.Steps, func(s histories.Step) bool {
		return s.Do == histories.AppendTo && slices.ContainsFunc(p.ops, func(r *operation) bool { return found(r, s.Key, s.Value.Int) })
	})
}

// list is what a step found: records from s.Offset on if it is a log, a whole list otherwise.
func list(s histories.Step) []int64 {
	if s.Do == histories.Read && s.Value.Form == histories.Int {
		return []int64{s.Value.Int}
	}
	return s.Value.List
}

// found tells whether a transaction that went through read a value.
func found(o *operation, key string, value int64) bool {
	return o.ok() && slices.ContainsFunc(o.end.Steps, func(s histories.Step) bool {
		return s.Do == histories.Read && s.Key == key && slices.Contains(list(s), value)
	})
}

// appended are the values that a transaction appended to an object, in its order.
func appended(o *operation, key string) (values []int64) {
	for _, s := range o.begin.Steps {
		if s.Do == histories.AppendTo && s.Key == key {
			values = append(values, s.Value.Int)
		}
	}
	return values
}

func appends(o *operation, key string, value int64) bool {
	return slices.Contains(appended(o, key), value)
}

// places are where the values of an object stand: in the longest list that was read of it; in a log at the offsets at which they were read, or else acknowledged.
func (p *proof) places(key string) map[int64]int64 {
	at, longest := make(map[int64]int64), []int64(nil)
	for _, do := range []histories.Do{histories.AppendTo, histories.Read} {
		for _, o := range p.ops {
			for _, s := range o.end.Steps {
				switch {
				case !o.ok() || s.Key != key || s.Do != do:
				case do == histories.AppendTo && s.Offset >= 0 && p.logs:
					at[s.Value.Int] = s.Offset
				case do == histories.Read && p.logs:
					for i, v := range list(s) {
						at[v] = s.Offset + int64(i)
					}
				case do == histories.Read && len(s.Value.List) > len(longest):
					longest = s.Value.List
				}
			}
		}
	}
	for i, v := range longest {
		if _, again := at[v]; !again {
			at[v] = int64(i)
		}
	}
	return at
}

// holds tells whether one transaction has to come before another for the reason that is given.
func (p *proof) holds(r model.Relation) bool {
	a, b := p.as(r.From), p.as(r.To)
	switch r.Kind {
	case "process":
		return a.before(b) && a.begin.Process == b.begin.Process
	case "realtime":
		return a.before(b)
	case "wr": // b read what a had appended
		return appends(a, r.Object, r.Value) && found(b, r.Object, r.Value)
	case "ww": // b appended behind something of a
		if !appends(b, r.Object, r.Value) {
			return false
		}
		at := p.places(r.Object)
		mine, seen := at[r.Value]
		return slices.ContainsFunc(appended(a, r.Object), func(v int64) bool { other, known := at[v]; return known && (seen && other < mine || !seen && !p.logs) })
	case "rw": // a read the object without what b appended: to its end, or a whole list
		at, seen := p.places(r.Object)[r.Value]
		return appends(b, r.Object, r.Value) && a.ok() && slices.ContainsFunc(a.end.Steps, func(s histories.Step) bool {
			switch {
			case s.Do != histories.Read || s.Key != r.Object:
				return false
			case !p.logs:
				return !slices.Contains(s.Value.List, r.Value)
			}
			return s.Value.Form == histories.Nil && s.Offset >= 0 && (!seen || at >= s.Offset)
		})
	}
	return false
}

// circle: the relations lead from transaction to transaction and back to the first, and are of the kinds that the anomaly's name says.
func circle(p *proof) {
	n, count, adjacent := len(p.Relations), make(map[string]int), false
	p.need(n > 1 && n == len(p.Operations), "%d relations of %d transactions make no circle", n, len(p.Operations))
	for i, r := range p.Relations {
		next := p.Relations[(i+1)%n]
		p.need(r.To == next.From && r.From == p.Operations[i].Role, "the relations make no circle")
		p.need(p.committed(p.as(r.From)), "%s did not commit", r.From)
		p.need(p.holds(r), "%s does not have to come before %s by %s %s %d", r.From, r.To, r.Kind, r.Object, r.Value)
		adjacent = adjacent || r.Kind == "rw" && next.Kind == "rw"
		count[r.Kind]++
	}
	name := model.G2Item
	switch {
	case count["rw"] == 1:
		name = model.GSingle
	case count["rw"] > 1 && !adjacent:
		name = model.GNonadjacent
	case count["rw"] == 0 && count["wr"] > 0:
		name = model.G1c
	case count["rw"] == 0:
		name = model.G0
	}
	p.need(name == p.Anomaly && count["rw"]+count["wr"]+count["ww"] > 0, "a circle of these relations is no %s", p.Anomaly)
}

// two gives the cited transactions that appended and that read the value.
func (p *proof) two() (writer, reader *operation) {
	writer, reader = &operation{}, &operation{}
	for _, o := range p.cited {
		if appends(o, p.Object, p.number) {
			writer = o
		} else if found(o, p.Object, p.number) {
			reader = o
		}
	}
	return writer, reader
}

func aborted(p *proof) {
	w, r := p.two()
	p.need(w.done && w.end.Type == histories.Fail && r.ok(), "not an aborted append and a read of it")
}

// halfRead: the reader has the value, and not what its writer appended behind it.
func halfRead(p *proof) {
	w, r := p.two()
	more := appended(w, p.Object)
	i := slices.Index(more, p.number)
	p.need(r.ok() && i >= 0 && i < len(more)-1, "not an append with another behind it, and a read of it")
	// Of a list: one that was read without what follows. Of a log: nothing of it was read.
	half := slices.ContainsFunc(r.end.Steps, func(s histories.Step) bool {
		return s.Do == histories.Read && s.Key == p.Object && slices.Contains(list(s), p.number) && (p.logs || i+1 < len(more) && !slices.Contains(list(s), more[i+1]))
	})
	p.need(half && (!p.logs || !found(r, p.Object, more[i+1])), "the reader has what follows too")
}

func neverAppended(p *proof) {
	_, r := p.two()
	p.need(r.ok(), "no cited transaction read the value")
	for _, o := range p.ops {
		p.need(!appends(o, p.Object, p.number), "operation %d appended it", o.begin.Seq)
	}
}

// standsTwice: a list has the value in two places, or a log at two offsets, as was read or acknowledged.
func standsTwice(p *proof) {
	w, _ := p.two()
	at, twice := make(map[int64]bool), false
	for _, o := range p.ops {
		for _, s := range o.end.Steps {
			if !o.ok() || s.Key != p.Object {
				continue
			}
			n := 0
			for i, v := range list(s) {
				if v == p.number {
					n++
					at[s.Offset+int64(i)] = true
				}
			}
			if s.Do == histories.AppendTo && s.Value.Int == p.number && s.Offset >= 0 {
				at[s.Offset] = true
			}
			twice = twice || n > 1
		}
	}
	p.need(len(w.begin.Steps) > 0 && (twice || p.logs && len(at) > 1), "the value does not stand there twice")
}

// disagree: at one offset of a log two values were read or acknowledged.
func disagree(p *proof) {
	values := make(map[int64]bool)
	p.placed = true
	for _, o := range p.cited {
		for _, s := range o.end.Steps {
			switch at := p.Offset - s.Offset; {
			case !o.ok() || s.Key != p.Object || s.Offset < 0:
			case s.Do == histories.AppendTo && at == 0:
				values[s.Value.Int] = true
			case s.Do == histories.Read && 0 <= at && at < int64(len(list(s))):
				values[list(s)[at]] = true
			}
		}
	}
	p.need(len(values) > 1, "the transactions agree on the offset")
}

// lists are the lists that the cited transactions read of the object.
func (p *proof) lists() (all [][]int64) {
	for _, o := range p.cited {
		for _, s := range o.end.Steps {
			if o.ok() && s.Do == histories.Read && s.Key == p.Object && s.Value.Form == histories.List {
				all = append(all, s.Value.List)
			}
		}
	}
	return all
}

// disordered: of two lists neither is the beginning of the other; or a writer's values stand in another order than it appended them in.
func disordered(p *proof) {
	for _, a := range p.lists() {
		for _, b := range p.lists() {
			if n := min(len(a), len(b)); !slices.Equal(a[:n], b[:n]) && p.Value == "" {
				return
			}
		}
	}
	w, r := p.two()
	values, at := appended(w, p.Object), p.places(p.Object)
	i := slices.Index(values, p.number)
	if !p.need(i > 0 && r.ok(), "the lists do not contradict each other") {
		return
	}
	before, seen := at[values[i-1]]
	without := slices.ContainsFunc(p.lists(), func(l []int64) bool {
		j := slices.Index(l, p.number)
		return j >= 0 && !slices.Contains(l[:j], values[i-1])
	})
	p.need(without || p.logs && seen && before > at[p.number], "the values stand in their order")
}

// forgot: a transaction does not find what it had found and appended before, or finds what it only appends afterwards.
func forgot(p *proof) {
	bad := false
	for _, o := range p.cited {
		var seen, own []int64
		read := false
		for _, s := range o.end.Steps {
			switch {
			case !o.ok() || s.Key != p.Object:
			case s.Do == histories.AppendTo:
				bad = bad || slices.Contains(seen, s.Value.Int)
				own = append(own, s.Value.Int)
			case s.Do == histories.Read && s.Value.Form != histories.Int:
				l := s.Value.List
				bad = bad || read && !slices.Equal(l, slices.Concat(seen, own)) || len(l) < len(own) || !slices.Equal(l[len(l)-len(own):], own)
				seen, own, read = l, nil, true
			}
		}
	}
	p.need(bad, "the transaction found what it had to find")
}

// ignored: two transactions read the same list and then appended to it.
func ignored(p *proof) {
	var before [][]int64
	for _, o := range p.cited {
		var seen []int64
		read := false
		for _, s := range o.end.Steps {
			switch {
			case s.Key != p.Object || !p.committed(o):
			case s.Do == histories.Read:
				seen, read = s.Value.List, true
			case read:
				before, read = append(before, seen), false
			default:
				seen, read = nil, false
			}
			if len(before) > 0 && s.Do == histories.AppendTo && s.Key == p.Object {
				break
			}
		}
	}
	p.need(len(p.cited) == 2 && len(before) == 2 && slices.Equal(before[0], before[1]), "not two transactions that read the same and then appended")
}

func early(p *proof) {
	p.need(p.logs && len(p.cited) == 1 && slices.ContainsFunc(p.cited, func(o *operation) bool { return appends(o, p.Object, p.number) && found(o, p.Object, p.number) }),
		"the transaction did not read a record of its own")
}

// torn: the final reads, together, have not the value, although one went past its place or to the end of its log; its transaction committed. Of a torn one
// they have another record; of a lost one none, although it went through; of a dirty one somebody had read a record.
func torn(p *proof) {
	from := p.drain
	for _, o := range p.ops {
		if p.drain == 0 && slices.ContainsFunc(o.begin.Steps, func(s histories.Step) bool { return s.Do == histories.AppendTo }) {
			from = max(from, o.begin.Seq, o.end.Seq)
		}
	}
	final := slices.DeleteFunc(slices.Clone(p.ops), func(o *operation) bool { return !o.ok() || o.begin.Seq <= from })
	there := func(key string, value int64) bool {
		return slices.ContainsFunc(final, func(o *operation) bool { return found(o, key, value) })
	}
	w, _ := p.two()
	p.need(appends(w, p.Object, p.number) && p.committed(w) && !there(p.Object, p.number), "the value is there, or its transaction did not commit")
	place, placed := p.places(p.Object)[p.number]
	passed := false
	for _, o := range final {
		for _, s := range o.end.Steps {
			reached := s.Value.Form == histories.Nil && s.Offset >= 0 || placed && len(list(s)) > 0 && s.Offset+int64(len(list(s))) > place
			passed = passed || s.Do == histories.Read && s.Key == p.Object && reached
		}
	}
	p.need(p.logs && passed, "no final read went past the place of the value")
	rest, read := false, false
	for _, s := range w.begin.Steps {
		rest = rest || s.Do == histories.AppendTo && there(s.Key, s.Value.Int)
		read = read || s.Do == histories.AppendTo && slices.ContainsFunc(p.ops, func(o *operation) bool { return found(o, s.Key, s.Value.Int) })
	}
	switch p.Anomaly {
	case model.TornTxn:
		p.need(rest && len(p.Relations) == 1 && p.holds(p.Relations[0]) && p.as(p.Relations[0].From) == w, "none of its other records is there")
	case model.LostAcked:
		p.need(!rest && w.ok(), "some of its records are there, or it was not acknowledged")
	default:
		p.need(!rest && read && !w.ok(), "some of its records are there, or nobody had read one")
	}
}
