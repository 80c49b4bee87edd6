package histories

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// EDNWriter writes a history as Jepsen's operations, one map a line, in a form that Jepsen's own checkers read. Operations on logs become
// the kafka workload, Object events the workload that they look like.
//
// What Jepsen has no word for is bent, not left out. It knows one operation at a time for a process: those of a pipelined process go on
// under further process numbers, and each session of a reader is a process of its own, which assigns its partition first (:seek says from
// where). A value is producer·2⁴⁰ + sequence number, and the operation is marked :packed; one of nobody in particular (KeyProducer) is its
// sequence number. Reads of a named copy are polls with a :node. An append of several records is marked :batch. Ends of logs are the operations :end-offset, :start-offset and :copy-end, which Jepsen's checkers pass over. Whether a
// single step on a named object belongs to a transaction, a key-value store or an independent register is seen from the first 4096 events.
type EDNWriter struct {
	w     io.Writer
	buf   []byte
	index int64
	err   error

	ahead   []Event // until the style is known
	decided bool
	style   ednStyle

	open    map[uint64]ednOperation
	busy    map[int32]bool      // by the process in the output
	current map[int32]int32     // process in the history → process in the output, where they differ
	readers map[ednReader]int32 // → process in the output
	reads   map[int32]bool      // processes in the output that are readers
	free    []int32             // further processes that have nothing open
	further int32               // the last further process
}

type ednStyle uint8

const (
	registerStyle ednStyle = iota
	keyValueStyle
	transactionStyle
)

type ednOperation struct {
	process int32
	runs    []Run  // of an append
	steps   []Step // of an operation on objects
	kafka   bool   // they are of the kafka workload
	extra   bool   // goes back to free
}

type ednReader struct{ process, session, partition int32 }

// firstFurther is where the processes begin that only the output has.
const firstFurther = 1 << 24

// NewEDNWriter is a writer of EDN. A header has no place in that format.
func NewEDNWriter(w io.Writer) *EDNWriter {
	return &EDNWriter{w: w, open: map[uint64]ednOperation{}, busy: map[int32]bool{}, current: map[int32]int32{}, readers: map[ednReader]int32{}, reads: map[int32]bool{}, further: firstFurther}
}

// Write adds one event.
func (w *EDNWriter) Write(ev *Event) error {
	if w.err != nil {
		return w.err
	}
	if !w.decided {
		kept := *ev
		kept.Runs, kept.Steps = slices.Clone(ev.Runs), slices.Clone(ev.Steps)
		if w.ahead = append(w.ahead, kept); len(w.ahead) < 4096 {
			return nil
		}
		return w.decide()
	}
	return w.event(ev)
}

func (w *EDNWriter) decide() error {
	w.decided = true
	for i := range w.ahead {
		w.style = max(w.style, styleOf(&w.ahead[i]))
	}
	for i := range w.ahead {
		if err := w.event(&w.ahead[i]); err != nil {
			return err
		}
	}
	w.ahead = nil
	return nil
}

func styleOf(ev *Event) ednStyle {
	style := registerStyle
	for i := range ev.Steps {
		switch s := &ev.Steps[i]; {
		case len(ev.Steps) > 1, s.Do == AppendTo && s.Value.Form != Text, s.Do == Read && s.Value.Form == List && s.Key != "":
			return transactionStyle
		case s.Key != "" && (s.Do == AppendTo || s.Value.Form == Text):
			style = keyValueStyle
		}
	}
	return style
}

// Flush hands everything to the writer below.
func (w *EDNWriter) Flush() error {
	if w.err == nil && !w.decided {
		w.decide()
	}
	if w.err == nil {
		if _, err := w.w.Write(w.buf); err != nil {
			w.err = fmt.Errorf("write %d bytes of history: %w", len(w.buf), err)
		}
		w.buf = w.buf[:0]
	}
	return w.err
}

// begin prints an operation up to its value.
func (w *EDNWriter) begin(ev *Event, typ Type, process int32, f string) {
	b := strconv.AppendInt(append(w.buf, "{:index "...), w.index, 10)
	w.index++
	b = strconv.AppendInt(append(b, ", :time "...), int64(ev.Time), 10)
	b = append(append(b, ", :type :"...), typ.String()...)
	switch {
	case ev.Kind.IsOperation():
		b = strconv.AppendInt(append(b, ", :process "...), int64(process), 10)
	case f != "":
		b = append(b, ", :process :nemesis"...)
	}
	if f != "" {
		b = append(append(b, ", :f :"...), f...)
	}
	w.buf = b
}

// end prints what else there is to say about an operation.
func (w *EDNWriter) end(ev *Event) {
	b := w.buf
	for _, f := range [...]struct {
		name  string
		value int64
	}{{", :node ", int64(ev.Node)}, {", :code ", int64(ev.Code)}} {
		b = appendJSONInt(b, f.name, f.value)
	}
	if ev.Note != "" && ev.Kind.IsOperation() {
		b = append(b, ", "...)
		if isExtras(ev.Note) {
			b = append(b, ev.Note...)
		} else {
			b = appendEDNText(append(b, ":note "...), ev.Note)
		}
	}
	w.buf = append(b, "}\n"...)
}

// isExtras tells a note that is a row of keys and values already, as the reader of EDN keeps them.
func isExtras(note string) bool {
	if note == "" || note[0] != ':' {
		return false
	}
	var t tree
	if t.parse([]byte("{"+note+"\n}"), ednSyntax) != nil {
		return false
	}
	for k := int32(1); k < t.nodes[0].next; k = t.nodes[t.nodes[k].next].next {
		switch string(t.name(k)) {
		case "", "index", "time", "type", "process", "f", "value", "key", "offset", "number", "node", "code", "seek", "seek-to-beginning?", "high-watermark", "leader-epoch", "batch", "packed", "note":
			return false
		}
	}
	return true
}

// isMark tells a note that holds what the reader of EDN kept of an operation of no client.
func isMark(note string) bool {
	before := "{:type :info, "
	switch {
	case strings.HasPrefix(note, ":f "):
		before += ":process :nemesis, "
	case !strings.HasPrefix(note, ":process "):
		return false
	}
	j := newJepsen(false)
	if j.tree.parse([]byte(before+note+"\n}"), ednSyntax) != nil {
		return false
	}
	f, err := j.fields(0)
	return err == nil && f.index == 0 && f.time == 0 && j.tree.nodes[f.process].kind != intNode && j.tree.name(f.f) != nil
}

func (w *EDNWriter) event(ev *Event) error {
	if w.err = w.print(ev); w.err == nil && len(w.buf) >= flushBytes {
		return w.Flush()
	}
	return w.err
}

func (w *EDNWriter) print(ev *Event) error {
	switch {
	case ev.Kind > Phase || ev.Type > Info:
		return &EventError{ev.Seq, fmt.Sprintf("is %v of kind %v, which EDN has no word for", ev.Type, ev.Kind)}
	case !ev.Kind.IsOperation():
		w.mark(ev)
		return nil
	}
	var op ednOperation
	if ev.Type == Invoke {
		op = w.process(ev)
		op.runs, op.steps, op.kafka = slices.Clone(ev.Runs), slices.Clone(ev.Steps), isKafkaSteps(ev.Steps)
		w.open[ev.Op] = op
	} else {
		var isOpen bool
		if op, isOpen = w.open[ev.Op]; !isOpen {
			return &EventError{ev.Seq, fmt.Sprintf("completes operation %d, which is not open", ev.Op)}
		}
		delete(w.open, ev.Op)
		w.release(ev, op)
	}
	switch ev.Kind {
	case Append:
		return w.send(ev, op)
	case Fetch, CopyRead:
		return w.poll(ev, op)
	case Object:
		if op.kafka {
			if len(ev.Steps) > 0 {
				if err := sameKafkaSteps(op.steps, ev.Steps, ev.Type); err != nil {
					return &EventError{ev.Seq, err.Error()}
				}
			}
			return w.kafka(ev, op)
		}
		if len(ev.Steps) > 0 || ev.Type == OK {
			if err := sameSteps(op.steps, ev.Steps, ev.Type); err != nil {
				return &EventError{ev.Seq, err.Error()}
			}
		}
		if ev.Type == Invoke && len(ev.Steps) == 1 && ev.Steps[0].Key == "" && ev.Steps[0].Value.Form == List && len(ev.Steps[0].Value.List) == 2 {
			return &EventError{ev.Seq, fmt.Sprintf("%v of a list of two, which EDN's readers would take for an independent key and a value", ev.Steps[0].Do)}
		}
		w.object(ev, op)
	default:
		w.begin(ev, ev.Type, op.process, ev.Kind.String())
		b := strconv.AppendInt(append(w.buf, ", :value ["...), int64(ev.Partition), 10)
		if ev.Type == OK {
			b = strconv.AppendInt(append(b, ' '), ev.Offset, 10)
		} else {
			b = append(b, " nil"...)
		}
		b = append(b, ']')
		b = appendJSONInt(b, ", :high-watermark ", ev.HighWatermark)
		w.buf = appendJSONInt(b, ", :leader-epoch ", int64(ev.LeaderEpoch))
		w.end(ev)
	}
	return nil
}

func (w *EDNWriter) mark(ev *Event) {
	switch {
	case ev.Kind == Phase:
		w.begin(ev, Info, 0, "phase")
		w.buf = appendEDNText(append(w.buf, ", :value "...), ev.Note)
	case isMark(ev.Note) && ev.Offset == 0:
		w.begin(ev, Info, 0, "")
		if ev.Note[:3] == ":f " {
			w.buf = append(w.buf, ", :process :nemesis"...)
		}
		w.buf = append(append(w.buf, ", "...), ev.Note...)
	default:
		w.begin(ev, Info, 0, "fault")
		w.buf = appendEDNText(append(w.buf, ", :value "...), ev.Note)
		w.buf = appendJSONInt(w.buf, ", :offset ", ev.Offset)
	}
	w.end(ev)
}

// process finds the process of an operation in the output.
func (w *EDNWriter) process(ev *Event) ednOperation {
	if ev.Kind.IsRead() {
		id := ednReader{ev.Process, ev.Session, ev.Partition}
		p, known := w.readers[id]
		if !known {
			if p = ev.Process; w.reads[p] || w.busy[p] { // the first session of a reader keeps its number
				p = w.fresh()
			}
			w.reads[p] = true
			w.readers[id] = p
			w.assign(ev, p)
		}
		if !w.busy[p] {
			w.busy[p] = true
			return ednOperation{process: p}
		}
	} else {
		p, moved := w.current[ev.Process]
		if !moved {
			p = ev.Process
		}
		if !w.busy[p] {
			w.busy[p] = true
			return ednOperation{process: p}
		}
	}
	if n := len(w.free); n > 0 {
		p := w.free[n-1]
		w.free = w.free[:n-1]
		return ednOperation{process: p, extra: true}
	}
	return ednOperation{process: w.fresh(), extra: true}
}

func (w *EDNWriter) fresh() int32 {
	w.further++
	return w.further
}

// release notes that an operation is over. An :info ends its process: whoever it was goes on as another one.
func (w *EDNWriter) release(ev *Event, op ednOperation) {
	switch {
	case op.extra && ev.Type != Info:
		w.free = append(w.free, op.process)
	case op.extra:
	case ev.Type != Info:
		delete(w.busy, op.process)
	default:
		delete(w.busy, op.process)
		if id := (ednReader{ev.Process, ev.Session, ev.Partition}); ev.Kind.IsRead() && w.readers[id] == op.process {
			delete(w.readers, id)
		} else if !ev.Kind.IsRead() {
			w.current[ev.Process] = w.fresh()
		}
	}
}

// assign says from where a reader reads.
func (w *EDNWriter) assign(ev *Event, process int32) {
	for _, typ := range [...]Type{Invoke, OK} {
		w.begin(ev, typ, process, "assign")
		b := strconv.AppendInt(append(w.buf, ", :value ["...), int64(ev.Partition), 10)
		if ev.Offset == 0 {
			b = append(b, "], :seek-to-beginning? true}\n"...)
		} else {
			b = strconv.AppendInt(append(b, "], :seek {"...), int64(ev.Partition), 10)
			b = strconv.AppendInt(append(b, ' '), ev.Offset, 10)
			b = append(b, "}}\n"...)
		}
		w.buf = b
	}
}

func ednValue(producer int32, sequence int64) (int64, error) {
	if producer >= 0 {
		if producer >= 1<<21 || sequence >= 1<<packedBits {
			return 0, fmt.Errorf("value %d of producer %d, expected fewer than 2⁴⁰ values of fewer than 2²¹ producers", sequence, producer)
		}
		return int64(producer)<<packedBits | sequence, nil
	}
	return sequence, nil
}

// appendPacked marks an operation whose values carry their producers.
func appendPacked(b []byte, ev *Event, runs []Run) ([]byte, error) {
	owned, nobodys := false, false
	for _, r := range runs {
		if r.Defect == Sound {
			owned, nobodys = owned || r.Producer >= 0, nobodys || r.Producer < 0
		}
	}
	if owned && nobodys {
		return nil, &EventError{ev.Seq, "has values of producers and of nobody in particular, expected one of the two: EDN has no room for both in one operation"}
	}
	if owned {
		b = append(b, ", :packed true"...)
	}
	return b, nil
}

func (w *EDNWriter) send(ev *Event, op ednOperation) error {
	w.begin(ev, ev.Type, op.process, "send")
	b := append(w.buf, ", :value ["...)
	first, offset, records := true, ev.Offset, int64(0)
	for _, r := range op.runs {
		records += int64(r.Count)
		for i := range int64(r.Count) {
			v, err := ednValue(r.Producer, r.Sequence+i)
			if err != nil {
				return &EventError{ev.Seq, err.Error()}
			}
			if !first {
				b = append(b, ' ')
			}
			first = false
			b = strconv.AppendInt(append(b, "[:send "...), int64(ev.Partition), 10)
			b = append(b, ' ')
			switch {
			case ev.Type != OK:
				b = strconv.AppendInt(b, v, 10)
			case ev.Offset < 0:
				b = append(strconv.AppendInt(append(b, "[nil "...), v, 10), ']')
			default:
				b = strconv.AppendInt(append(b, '['), offset, 10)
				b = append(strconv.AppendInt(append(b, ' '), v, 10), ']')
				offset++
			}
			b = append(b, ']')
		}
	}
	b = append(b, ']')
	if records > 1 {
		b = append(b, ", :batch true"...)
	}
	b, err := appendPacked(b, ev, op.runs)
	if err != nil {
		return err
	}
	w.buf = b
	w.end(ev)
	return nil
}

func (w *EDNWriter) poll(ev *Event, op ednOperation) error {
	w.begin(ev, ev.Type, op.process, "poll")
	b := append(w.buf, ", :value [[:poll"...)
	if ev.Type == OK {
		b = strconv.AppendInt(append(b, " {"...), int64(ev.Partition), 10)
		b = append(b, " ["...)
		for _, r := range ev.Runs {
			for i := range int64(r.Count) {
				if b[len(b)-1] != '[' {
					b = append(b, ' ')
				}
				b = append(strconv.AppendInt(append(b, '['), r.Offset+i, 10), ' ')
				if r.Defect != Sound {
					b = append(append(append(b, ':'), r.Defect.String()...), ']')
					continue
				}
				v, err := ednValue(r.Producer, r.Sequence+i)
				if err != nil {
					return &EventError{ev.Seq, err.Error()}
				}
				b = append(strconv.AppendInt(b, v, 10), ']')
			}
		}
		b = append(b, "]}"...)
	}
	b = append(b, "]]"...)
	if ev.Type == OK && ev.HighWatermark != -1 {
		b = strconv.AppendInt(append(b, ", :high-watermark "...), ev.HighWatermark, 10)
	}
	b, err := appendPacked(b, ev, ev.Runs)
	if err != nil {
		return err
	}
	w.buf = b
	w.end(ev)
	return nil
}

// isKafkaSteps tells an invocation of the kafka workload that was read whole: its offsets are unknown yet.
func isKafkaSteps(steps []Step) bool {
	for i := range steps {
		s := &steps[i]
		_, err := strconv.ParseInt(s.Key, 10, 31)
		send := s.Do == AppendTo && s.Value.Form == Int && err == nil
		if poll := s.Do == Read && s.Key == ""; s.Offset != -1 || !send && !poll {
			return false
		}
	}
	return len(steps) > 0
}

// kafka prints a transaction of the kafka workload. Reads that follow each other were one poll or can have been.
func (w *EDNWriter) kafka(ev *Event, op ednOperation) error {
	f := "txn"
	switch isRead := func(s Step) bool { return s.Do == Read }; {
	case !slices.ContainsFunc(op.steps, isRead):
		f = "send"
	case !slices.ContainsFunc(op.steps, func(s Step) bool { return s.Do != Read }):
		f = "poll"
	}
	w.begin(ev, ev.Type, op.process, f)
	b := append(w.buf, ", :value "...)
	if len(ev.Steps) == 0 {
		w.buf = append(b, "nil"...)
		w.end(ev)
		return nil
	}
	b = append(b, '[')
	for i := 0; i < len(ev.Steps); {
		s := &ev.Steps[i]
		if i > 0 {
			b = append(b, ' ')
		}
		switch {
		case s.Do == AppendTo && s.Value.Form == Int && s.Key != "":
			b = append(append(append(b, "[:send "...), s.Key...), ' ')
			if s.Offset >= 0 {
				b = strconv.AppendInt(append(b, '['), s.Offset, 10)
				b = append(strconv.AppendInt(append(b, ' '), s.Value.Int, 10), "]]"...)
			} else {
				b = append(strconv.AppendInt(b, s.Value.Int, 10), ']')
			}
			i++
		case s.Do == Read && s.Key == "":
			b = append(b, "[:poll]"...)
			i++
		case s.Do == Read:
			n := i
			for n < len(ev.Steps) && ev.Steps[n].Do == Read && ev.Steps[n].Key != "" {
				n++
			}
			b = append(appendPolled(append(b, "[:poll {"...), ev.Steps[i:n]), "}]"...)
			i = n
		default:
			return &EventError{ev.Seq, fmt.Sprintf("%v of %q, expected a send or a poll as in its invocation", s.Do, s.Key)}
		}
	}
	w.buf = append(b, ']')
	w.end(ev)
	return nil
}

// appendPolled prints what reads found, by key in the order of its first read.
func appendPolled(b []byte, reads []Step) []byte {
	done := make(map[string]bool)
	for i := range reads {
		if done[reads[i].Key] {
			continue
		}
		if len(done) > 0 {
			b = append(b, ", "...)
		}
		done[reads[i].Key] = true
		b = append(append(b, reads[i].Key...), " ["...)
		for k := range reads {
			if reads[k].Key != reads[i].Key {
				continue
			}
			for n, v := range reads[k].Value.List {
				if b[len(b)-1] != '[' {
					b = append(b, ' ')
				}
				b = strconv.AppendInt(append(b, '['), reads[k].Offset+int64(n), 10)
				b = append(strconv.AppendInt(append(b, ' '), v, 10), ']')
			}
		}
		b = append(b, ']')
	}
	return b
}

// object prints an operation on objects. A single step is an operation of its own unless the history is one of transactions.
func (w *EDNWriter) object(ev *Event, op ednOperation) {
	if len(op.steps) != 1 || w.style == transactionStyle && op.steps[0].Key != "" {
		w.transaction(ev, op)
		return
	}
	s, silent := &op.steps[0], len(ev.Steps) == 0 // a completion may say no more than how it ended
	if !silent {
		s = &ev.Steps[0]
	}
	f := s.Do.String()
	if w.style == keyValueStyle && s.Key != "" {
		switch s.Do {
		case Read:
			f = "get"
		case Write:
			f = "put"
		}
	}
	_, err := strconv.ParseInt(s.Key, 10, 64)
	independent := s.Key != "" && err == nil && w.style == registerStyle
	w.begin(ev, ev.Type, op.process, f)
	b := w.buf
	if s.Key != "" && !independent {
		b = appendEDNText(append(b, ", :key "...), s.Key)
	}
	b = append(b, ", :value "...)
	if independent {
		b = append(append(append(b, '['), s.Key...), ' ')
	}
	switch {
	case silent:
		b = append(b, "nil"...)
	case s.Do == CompareAndSet:
		b = appendEDNDatum(append(b, '['), &s.Old)
		b = append(appendEDNDatum(append(b, ' '), &s.Value), ']')
	default:
		b = appendEDNDatum(b, &s.Value)
	}
	if independent {
		b = append(b, ']')
	}
	if !silent {
		b = appendJSONInt(b, ", :offset ", s.Offset)
	}
	if !silent && (s.Do != Enqueue || s.Number != -1) {
		b = appendJSONInt(b, ", :number ", s.Number)
	}
	w.buf = b
	w.end(ev)
}

func (w *EDNWriter) transaction(ev *Event, op ednOperation) {
	w.begin(ev, ev.Type, op.process, "txn")
	b := append(w.buf, ", :value "...)
	if len(ev.Steps) == 0 {
		w.buf = append(b, "nil"...)
		w.end(ev)
		return
	}
	b = append(b, '[')
	for i := range ev.Steps {
		s := &ev.Steps[i]
		if i > 0 {
			b = append(b, ' ')
		}
		do := s.Do.String()
		switch s.Do {
		case Read:
			do = "r"
		case Write:
			do = "w"
		}
		b = append(append(append(b, "[:"...), do...), ' ')
		switch _, err := strconv.ParseInt(s.Key, 10, 64); {
		case s.Key == "":
			b = append(b, "nil"...)
		case err == nil:
			b = append(b, s.Key...)
		default:
			b = appendEDNText(b, s.Key)
		}
		b = appendEDNDatum(append(b, ' '), &s.Value)
		if !s.Old.isZero() || s.Offset != 0 || s.Number != 0 {
			b = append(b, " {"...)
			if !s.Old.isZero() {
				b = appendEDNDatum(append(b, ":old "...), &s.Old)
			}
			b = appendJSONInt(b, " :offset ", s.Offset)
			b = appendJSONInt(b, " :number ", s.Number)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	w.buf = append(b, ']')
	w.end(ev)
}

func appendEDNDatum(b []byte, d *Datum) []byte {
	switch d.Form {
	case Int:
		return strconv.AppendInt(b, d.Int, 10)
	case Text:
		if isKeyword(d.Text) {
			return append(b, d.Text...)
		}
		return appendEDNText(b, d.Text)
	case List:
		b = append(b, '[')
		for i, n := range d.List {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, n, 10)
		}
		return append(b, ']')
	}
	return append(b, "nil"...)
}

// isKeyword tells a text that a keyword was read as.
func isKeyword(s string) bool {
	if len(s) < 2 || s[0] != ':' {
		return false
	}
	for _, c := range s[1:] {
		if c > 127 || c < '!' || isEnd(byte(c)) || c == ':' || c == '\\' || c == '#' {
			return false
		}
	}
	return true
}

// appendEDNText prints a string. EDN has the escapes of JSON; what is not UTF-8 has no place in it and becomes U+FFFD.
func appendEDNText(b []byte, s string) []byte {
	return appendJSONText(b, string([]rune(s)))
}
