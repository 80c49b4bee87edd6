package histories

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// JSON lines: first the header, then one event a line with the names of Event's fields in snake_case, times in nanoseconds; what is zero is
// left out. Values of steps are numbers, texts or lists. A text that is not UTF-8 stands as {"base64": "…"}. "flush" marks an event after
// which the native format ended a block before it was full, so that converting there and back gives the same bytes.
//
//	{"format":"ackproof history","version":1,"run":9,"seed":7}
//	{"seq":1,"time":0,"type":"invoke","kind":"append","op":1,"process":3,"partition":2,"runs":[{"producer":7,"sequence":0,"count":1}]}
//
// The header may be missing: it is then zero.
const jsonFormat = "ackproof history"

// JSONWriter writes JSON lines. It is not safe for concurrent use.
type JSONWriter struct {
	w   io.Writer
	buf []byte // whole lines, and the last one without its end: a flush mark may still follow
	any bool   // buf ends in such a line
	err error
}

// NewJSONWriter is a writer that begins with the header.
func NewJSONWriter(w io.Writer, h Header) *JSONWriter {
	b := append([]byte(nil), `{"format":"`+jsonFormat+`","version":1`...)
	if h.Run != 0 {
		b = strconv.AppendUint(append(b, `,"run":`...), h.Run, 10)
	}
	if h.Seed != 0 {
		b = strconv.AppendInt(append(b, `,"seed":`...), h.Seed, 10)
	}
	if !h.Start.IsZero() {
		b = append(h.Start.UTC().AppendFormat(append(b, `,"start":"`...), time.RFC3339Nano), '"')
	}
	if len(h.Names) > 0 {
		b = append(b, `,"names":[`...)
		for i, n := range h.Names {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSONText(b, n)
		}
		b = append(b, ']')
	}
	return &JSONWriter{w: w, buf: append(b, "}\n"...)}
}

// Write adds one event.
func (w *JSONWriter) Write(ev *Event) error {
	if w.err != nil {
		return w.err
	}
	w.endLine()
	if len(w.buf) >= flushBytes {
		if err := w.write(); err != nil {
			return err
		}
	}
	w.buf = appendJSONEvent(w.buf, ev)
	w.any = true
	return nil
}

// EndBlock marks that the native format ended a block after the last event.
func (w *JSONWriter) EndBlock() error {
	if w.any {
		w.buf = append(w.buf, `,"flush":true`...)
	}
	return w.err
}

func (w *JSONWriter) endLine() {
	if w.any {
		w.buf = append(w.buf, "}\n"...)
		w.any = false
	}
}

func (w *JSONWriter) write() error {
	if w.err != nil {
		return w.err
	}
	if _, err := w.w.Write(w.buf); err != nil {
		w.err = fmt.Errorf("write %d bytes of history: %w", len(w.buf), err)
	}
	w.buf = w.buf[:0]
	return w.err
}

// Flush hands everything to the writer below.
func (w *JSONWriter) Flush() error {
	w.endLine()
	return w.write()
}

// appendJSONEvent prints an event without the last brace.
func appendJSONEvent(b []byte, ev *Event) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), ev.Seq, 10)
	b = strconv.AppendInt(append(b, `,"time":`...), int64(ev.Time), 10)
	b = append(append(append(b, `,"type":"`...), ev.Type.String()...), '"')
	b = append(append(append(b, `,"kind":"`...), ev.Kind.String()...), '"')
	b = strconv.AppendUint(append(b, `,"op":`...), ev.Op, 10)
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{`,"process":`, int64(ev.Process)}, {`,"session":`, int64(ev.Session)}, {`,"partition":`, int64(ev.Partition)}, {`,"node":`, int64(ev.Node)},
		{`,"offset":`, ev.Offset}, {`,"high_watermark":`, ev.HighWatermark}, {`,"leader_epoch":`, int64(ev.LeaderEpoch)}, {`,"code":`, int64(ev.Code)},
	} {
		b = appendJSONInt(b, f.name, f.value)
	}
	if ev.Pipelined {
		b = append(b, `,"pipelined":true`...)
	}
	if len(ev.Runs) > 0 {
		b = append(b, `,"runs":[`...)
		for i := range ev.Runs {
			r := &ev.Runs[i]
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(b, `{"producer":`...), int64(r.Producer), 10)
			b = strconv.AppendInt(append(b, `,"sequence":`...), r.Sequence, 10)
			b = strconv.AppendInt(append(b, `,"count":`...), int64(r.Count), 10)
			b = appendJSONInt(b, `,"offset":`, r.Offset)
			if r.Defect != Sound {
				b = append(append(append(b, `,"defect":"`...), r.Defect.String()...), '"')
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if len(ev.Steps) > 0 {
		b = append(b, `,"steps":[`...)
		for i := range ev.Steps {
			s := &ev.Steps[i]
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"do":`...)
			if int(s.Do) < len(doNames) {
				b = append(append(append(b, '"'), s.Do.String()...), '"')
			} else {
				b = strconv.AppendInt(b, int64(s.Do), 10)
			}
			if s.Key != "" {
				b = appendJSONText(append(b, `,"key":`...), s.Key)
			}
			b = appendJSONDatum(b, `,"value":`, &s.Value)
			b = appendJSONDatum(b, `,"old":`, &s.Old)
			b = appendJSONInt(b, `,"offset":`, s.Offset)
			b = appendJSONInt(b, `,"number":`, s.Number)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if ev.Note != "" {
		b = appendJSONText(append(b, `,"note":`...), ev.Note)
	}
	return b
}

func appendJSONInt(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), v, 10)
}

func appendJSONDatum(b []byte, name string, d *Datum) []byte {
	switch d.Form {
	case Int:
		b = strconv.AppendInt(append(b, name...), d.Int, 10)
	case Text:
		b = appendJSONText(append(b, name...), d.Text)
	case List:
		b = append(append(b, name...), '[')
		for i, n := range d.List {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		b = append(b, ']')
	}
	return b
}

const hexDigits = "0123456789abcdef"

func appendJSONText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		b = append(b, `{"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(s))
		return append(b, `"}`...)
	}
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}

// jsonFields walks over the members of an object of a tree, and refuses what it does not know and what stands twice.
type jsonFields struct {
	tree *tree
	seen uint32 // bits of the members that the last object had
}

// each calls field with every member: it answers the number of the name, −1 for an unknown one.
func (f *jsonFields) each(n int32, field func(name []byte, value int32) (int, error)) error {
	t := f.tree
	if t.nodes[n].kind != mapNode {
		return fmt.Errorf("%s, expected an object", t.show(n))
	}
	seen := uint32(0)
	for k := n + 1; k < t.nodes[n].next; {
		v := t.nodes[k].next
		i, err := field(t.raw(k), v)
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", t.raw(k), err)
		case i < 0:
			return fmt.Errorf("member %q, expected a field of an event", t.raw(k))
		case seen&(1<<i) != 0:
			return fmt.Errorf("member %q stands twice", t.raw(k))
		}
		seen |= 1 << i
		k = t.nodes[v].next
	}
	f.seen = seen
	return nil
}

func narrow[T int16 | int32](t *tree, n int32, to *T) error {
	v, err := t.integer(n)
	if err == nil && int64(T(v)) != v {
		return fmt.Errorf("%d, which is out of range", v)
	}
	*to = T(v)
	return err
}

func wide(t *tree, n int32, to *int64) (err error) {
	*to, err = t.integer(n)
	return err
}

// jsonText reads a text, or the object that stands for one that is not UTF-8.
func jsonText(t *tree, n int32) (string, error) {
	switch k := &t.nodes[n]; {
	case k.kind == stringNode:
		return t.text(n)
	case k.kind == mapNode && k.count == 2 && string(t.raw(t.child(n, 0))) == "base64" && t.nodes[t.child(n, 1)].kind == stringNode:
		b, err := base64.StdEncoding.DecodeString(string(t.raw(t.child(n, 1))))
		if err != nil {
			return "", fmt.Errorf("base64: %w", err)
		}
		return string(b), nil
	}
	return "", fmt.Errorf("%s, expected a text", t.show(n))
}

// jsonName finds a name in a table, or the number behind prefix that stands for a thing without a name.
func jsonName(t *tree, n int32, names []string, prefix string, bits int) (uint8, error) {
	if t.nodes[n].kind == stringNode {
		raw := t.raw(n)
		for i, name := range names {
			if string(raw) == name {
				return uint8(i), nil
			}
		}
		if len(raw) > len(prefix) && string(raw[:len(prefix)]) == prefix {
			if v, err := strconv.ParseUint(string(raw[len(prefix):]), 10, bits); err == nil && int(v) >= len(names) {
				return uint8(v), nil
			}
		}
	}
	return 0, fmt.Errorf("%s, expected one of %q", t.show(n), names)
}

// jsonHeader reads the first line; false if it is no header.
func jsonHeader(t *tree) (h Header, is bool, err error) {
	if t.nodes[0].kind != mapNode || t.nodes[0].count == 0 || string(t.raw(t.child(0, 0))) != "format" {
		return h, false, nil
	}
	f := jsonFields{tree: t}
	err = f.each(0, func(name []byte, v int32) (int, error) {
		var err error
		switch string(name) {
		case "format":
			if string(t.raw(v)) != jsonFormat {
				err = fmt.Errorf("%s, expected %q", t.show(v), jsonFormat)
			}
			return 0, err
		case "version":
			if string(t.raw(v)) != "1" {
				err = fmt.Errorf("%s, expected 1", t.show(v))
			}
			return 1, err
		case "run":
			h.Run, err = t.unsigned(v)
			return 2, err
		case "seed":
			return 3, wide(t, v, &h.Seed)
		case "start":
			h.Start, err = time.Parse(time.RFC3339Nano, string(t.raw(v)))
			if y := h.Start.Year(); err == nil && (y < 1678 || y > 2261) {
				err = fmt.Errorf("year %d, expected 1678 to 2261", y)
			}
			h.Start = h.Start.UTC()
			return 4, err
		case "names":
			if t.nodes[v].kind != vectorNode {
				return 5, fmt.Errorf("%s, expected a list of texts", t.show(v))
			}
			for c := range t.children(v) {
				s, err := jsonText(t, c)
				if err != nil {
					return 5, err
				}
				if slices.Contains(h.Names, s) {
					return 5, fmt.Errorf("%q twice, expected distinct names", s)
				}
				h.Names = append(h.Names, s)
			}
			return 5, nil
		}
		return -1, nil
	})
	return h, true, err
}

// jsonEvent reads one event into ev, using the memory of its Runs and Steps again.
func jsonEvent(t *tree, ev *Event) (flush bool, err error) {
	runs, steps := ev.Runs[:0], ev.Steps[:0]
	*ev = Event{}
	f := jsonFields{tree: t}
	err = f.each(0, func(name []byte, v int32) (int, error) {
		var err error
		switch string(name) {
		case "seq":
			ev.Seq, err = t.unsigned(v)
			return 0, err
		case "time":
			var ns int64
			err = wide(t, v, &ns)
			ev.Time = time.Duration(ns)
			return 1, err
		case "type":
			n, err := jsonName(t, v, typeNames[:], "type-", 2)
			ev.Type = Type(n)
			return 2, err
		case "kind":
			n, err := jsonName(t, v, kindNames[:], "kind-", 7)
			ev.Kind = Kind(n)
			return 3, err
		case "op":
			ev.Op, err = t.unsigned(v)
			return 4, err
		case "process":
			return 5, narrow(t, v, &ev.Process)
		case "session":
			return 6, narrow(t, v, &ev.Session)
		case "partition":
			return 7, narrow(t, v, &ev.Partition)
		case "node":
			return 8, narrow(t, v, &ev.Node)
		case "offset":
			return 9, wide(t, v, &ev.Offset)
		case "high_watermark":
			return 10, wide(t, v, &ev.HighWatermark)
		case "leader_epoch":
			return 11, narrow(t, v, &ev.LeaderEpoch)
		case "code":
			return 12, narrow(t, v, &ev.Code)
		case "pipelined":
			ev.Pipelined, err = jsonBool(t, v)
			return 13, err
		case "runs":
			runs, err = jsonRuns(t, v, runs)
			return 14, err
		case "steps":
			steps, err = jsonSteps(t, v, steps)
			return 15, err
		case "note":
			ev.Note, err = jsonText(t, v)
			return 16, err
		case "flush":
			flush, err = jsonBool(t, v)
			return 17, err
		}
		return -1, nil
	})
	ev.Runs, ev.Steps = runs, steps
	if err == nil && f.seen&31 != 31 {
		err = fmt.Errorf("an event without one of seq, time, type, kind and op: %s", t.show(0))
	}
	return flush, err
}

func jsonBool(t *tree, n int32) (bool, error) {
	if t.nodes[n].kind != boolNode {
		return false, fmt.Errorf("%s, expected true or false", t.show(n))
	}
	return string(t.raw(n)) == "true", nil
}

func jsonRuns(t *tree, n int32, runs []Run) ([]Run, error) {
	if t.nodes[n].kind != vectorNode {
		return nil, fmt.Errorf("%s, expected a list of runs", t.show(n))
	}
	f := jsonFields{tree: t}
	for c := range t.children(n) {
		var r Run
		if err := f.each(c, func(name []byte, v int32) (int, error) {
			switch string(name) {
			case "producer":
				return 0, narrow(t, v, &r.Producer)
			case "sequence":
				return 1, wide(t, v, &r.Sequence)
			case "count":
				return 2, narrow(t, v, &r.Count)
			case "offset":
				return 3, wide(t, v, &r.Offset)
			case "defect":
				d, err := jsonName(t, v, defectNames[:], "defect-", 2)
				if err == nil && Defect(d) > Foreign {
					err = fmt.Errorf("%s, expected one of %q", t.show(v), defectNames)
				}
				r.Defect = Defect(d)
				return 4, err
			}
			return -1, nil
		}); err != nil {
			return nil, err
		}
		if f.seen&7 != 7 {
			return nil, fmt.Errorf("a run without producer, sequence or count: %s", t.show(c))
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func jsonSteps(t *tree, n int32, steps []Step) ([]Step, error) {
	if t.nodes[n].kind != vectorNode {
		return nil, fmt.Errorf("%s, expected a list of steps", t.show(n))
	}
	f := jsonFields{tree: t}
	for c := range t.children(n) {
		var s Step
		if err := f.each(c, func(name []byte, v int32) (i int, err error) {
			switch string(name) {
			case "do":
				if t.nodes[v].kind == intNode {
					d, err := t.unsigned(v)
					if err == nil && (d < uint64(len(doNames)) || d > 255) {
						err = fmt.Errorf("%d, expected a name", d)
					}
					s.Do = Do(d)
					return 0, err
				}
				d, err := jsonName(t, v, doNames[:], "do-", 0)
				s.Do = Do(d)
				return 0, err
			case "key":
				s.Key, err = jsonText(t, v)
				return 1, err
			case "value":
				s.Value, err = jsonDatum(t, v)
				return 2, err
			case "old":
				s.Old, err = jsonDatum(t, v)
				return 3, err
			case "offset":
				return 4, wide(t, v, &s.Offset)
			case "number":
				return 5, wide(t, v, &s.Number)
			}
			return -1, nil
		}); err != nil {
			return nil, err
		}
		if f.seen&1 == 0 {
			return nil, fmt.Errorf("a step without do: %s", t.show(c))
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func jsonDatum(t *tree, n int32) (d Datum, err error) {
	switch t.nodes[n].kind {
	case nilNode:
		return d, nil
	case intNode:
		d.Form = Int
		return d, wide(t, n, &d.Int)
	case vectorNode:
		d.Form, d.List = List, make([]int64, 0, t.nodes[n].count)
		for c := range t.children(n) {
			v, err := t.integer(c)
			if err != nil {
				return d, err
			}
			d.List = append(d.List, v)
		}
		return d, nil
	}
	d.Form = Text
	d.Text, err = jsonText(t, n)
	return d, err
}
