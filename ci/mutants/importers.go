package main

// importers are the readers of other people's formats, and the writer of EDN. What they get wrong a checker would believe.
var importers = Checker{"importers", []string{"histories"}, "^Test(Fixtures|BadInput|EDN|Lossless|Mutants|Transactions|Empty|Noise|Independent|Notes|Positions|Control|NoProcess)", []Mutant{
	{"histories/tree.go", `c == ',' && t.syntax == ednSyntax:`, `c == ',':`, "commas of JSON are blanks"},
	{"histories/tree.go", `c == '.' || c == 'e'`, `c == 'e'`, "a fraction is no number"},
	{"histories/tree.go", `k == mapNode && count%2 != 0`, `k == mapNode && count%3 != 0`, "a key without a value is passed over, or a good map refused"},
	{"histories/tree.go", `if t.space(); t.at < len(t.src) {
		return t.fault("%q after the form`, `if t.space(); false {
		return t.fault("%q after the form`, "what follows an operation on its line is skipped"},
	{"histories/tree.go", `if depth > maxDepth {`, `if depth > 1<<30 {`, "nesting is not bounded"},
	{"histories/jepsen.go", `case at < j.last:`, `case at < 0:`, "the clock may go back"},
	{"histories/jepsen.go", `case index < j.nextI || index`, `case index`, "indices need not rise"},
	{"histories/jepsen.go", `		j.closed[ev.Process] = true
`, ``, "a process goes on after an :info"},
	{"histories/jepsen.go", `case op.f != name:`, `case false:`, "a completion may be of another function"},
	{"histories/jepsen.go", `case j.open[ev.Process] != nil:`, `case false:`, "a process may have two operations open"},
	{"histories/jepsen.go", `case field != nil && *field != 0:`, `case false:`, "of a key that stands twice the last one wins"},
	{"histories/jepsen.go", `len(asked) != len(got)`, `len(asked) > len(got)`, "a completion may have more steps than its invocation"},
	{"histories/jepsen.go", `g.Do.puts() && !(sameDatum`, `g.Do.puts() && (sameDatum`, "values of completions are compared the wrong way round"},
	{"histories/jepsen.go", `if s.Old, err = j.datum(t.child(value, 0)); err == nil {
			s.Value, err = j.datum(t.child(value, 1))`, `if s.Old, err = j.datum(t.child(value, 1)); err == nil {
			s.Value, err = j.datum(t.child(value, 0))`, "old and new value of a compare-and-set change places"},
	{"histories/jepsen.go", `else if key != op.key {`, `else if false {`, "a completion may be of another independent key"},
	{"histories/jepsen.go", `s.Key = prefix + "/" + s.Key`, `s.Key = prefix + s.Key`, "keys of independent transactions run together"},
	{"histories/kafka.go", `if n := len(offsets); n == len(op.sends) || op.sends[n].key != key || op.sends[n].value != value {`, `if n := len(offsets); n == len(op.sends) || op.sends[n].key != key || value < 0 {`, "a send may be acknowledged with another value"},
	{"histories/kafka.go", `if ev.Type == OK && len(offsets) != len(op.sends) {`, `if false {`, "sends that the completion leaves out count as acknowledged"},
	{"histories/kafka.go", `at.next = r.runs[n-1].Offset + int64(r.runs[n-1].Count)`, `at.next = r.runs[n-1].Offset`, "the position of a reader is off by one"},
	{"histories/kafka.go", `if !kept || seek {`, `if !kept {`, "seek-to-beginning does not go back"},
	{"histories/kafka.go", `if i == 0 && from < 0 || r.runs[i].Offset < from {`, `if i == 0 && from < 0 {`, "a reader that goes back is taken to have asked for more"},
	{"histories/kafka.go", `slices.ContainsFunc(got, isRead) && !slices.ContainsFunc(asked, isRead)`, `false`, "a transaction may read without having asked"},
	{"histories/ednwriter.go", `w.reads[p] || w.busy[p] {`, `w.reads[p] {`, "a reader begins on a process that is busy"},
	{"histories/ednwriter.go", `case op.extra && ev.Type != Info:`, `case op.extra:`, "a process that an :info ended is used again"},
	{"histories/joblog.go", `if n < 4 {`, `if n < 3 {`, "a line without a value is an operation"},
	{"histories/joblog.go", `			s.noise++
`, ``, "noise is not counted"},
	{"histories/joblog.go", `case len(s.buf) > maxForm:`, `case false:`, "lines are not bounded"},
	{"histories/s2.go", `case "AppendIndefiniteFailure":
		typ = Info`, `case "AppendIndefiniteFailure":
		typ = Fail`, "appends of unknown outcome count as refused"},
	{"histories/s2.go", `case records != uint64(len(step.Value.List)):`, `case false:`, "num_records says nothing"},
	{"histories/s2.go", `case open.process != ev.Process:`, `case false:`, "any client may finish an operation"},
	{"histories/s2.go", `		delete(s.open, id)
`, ``, "an operation may finish twice"},
	{"histories/s2.go", `return 2, text(v, SetToken)`, `return 2, text(v, ExpectToken)`, "a token that is set is taken for one that is expected"},
	{"histories/s2.go", `case want != do:`, `case want == Enqueue:`, "an append may be answered as a read"},
	{"histories/jsonlines.go", `case seen&(1<<i) != 0:`, `case false:`, "of a member that stands twice the last one wins"},
	{"histories/jsonlines.go", `		case i < 0:
			return fmt.Errorf("member %q, expected a field of an event", t.raw(k))
`, `		case i < 0:
			i = 31
`, "unknown members are passed over"},
	{"histories/jsonlines.go", `err == nil && int64(T(v)) != v`, `false`, "a number too large for its field wraps"},
	{"histories/jsonlines.go", `	*ev = Event{}
	f := jsonFields{tree: t}`, `	f := jsonFields{tree: t}`, "what an event does not say is that of the event before"},
	{"histories/jsonlines.go", `if !utf8.ValidString(s) {`, `if false {`, "texts that are no UTF-8 are written as they are"},
	{"histories/jsonlines.go", `b = append(b, hexDigits[c>>4], hexDigits[c&15])`, `b = append(b, hexDigits[c>>4], hexDigits[c&7])`, "some control characters come back as others"},
}}
