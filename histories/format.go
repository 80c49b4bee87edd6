package histories

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format names a format in which a history can be kept.
type Format string

// The formats.
const (
	Native    Format = "native"     // binary, for recording and for speed (codec.go)
	JSONLines Format = "jsonl"      // for people and scripts, lossless against Native (jsonlines.go)
	EDN       Format = "edn"        // Jepsen's operations (jepsen.go)
	EDNTxn    Format = "edn-txn"    // EDN with the operations of the kafka workload kept whole, as transactions; never guessed
	ElleJSON  Format = "elle"       // elle-cli's JSON: Jepsen's operations with strings for keywords
	JepsenLog Format = "jepsen-log" // lines of Jepsen's log (joblog.go)
	S2        Format = "s2"         // S2's verification histories, JSON lines (s2.go)
)

// Formats lists what can be read.
func Formats() []Format { return []Format{Native, JSONLines, EDN, EDNTxn, ElleJSON, JepsenLog, S2} }

// source is the reader of one format.
type source interface {
	// Next reads the next event into ev, whose Runs and Steps it may use again; io.EOF at the end.
	Next(ev *Event) error
}

// File is a history of any format as a stream of events. It is not a Joiner: that the events fit each other is for who reads them to see.
type File struct {
	source
	format Format
	close  func() error
	done   error
}

// OpenAny opens the history at path. With an empty format the first bytes decide. Errors about what is in the file are ErrMalformed and
// name line or byte. The caller closes the File.
func OpenAny(path string, format Format) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	in, err := NewFile(f, path, format)
	if err != nil {
		f.Close()
		return nil, err
	}
	in.close = f.Close
	return in, nil
}

// NewFile reads a history of any format from r. The path is for messages, and for the format of an empty file.
func NewFile(r io.Reader, path string, format Format) (*File, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if format == "" {
		var err error
		if format, err = detect(buffered, path); err != nil {
			return nil, err
		}
	}
	in := &File{format: format, close: func() error { return nil }}
	switch format {
	case Native:
		native, err := NewReader(buffered)
		if err != nil {
			return nil, named(path, err)
		}
		in.source = native
	case JSONLines:
		lines := &jsonSource{forms: newForms(buffered, path, jsonSyntax, false)}
		if err := lines.begin(); err != nil {
			return nil, err
		}
		in.source = lines
	case EDN, EDNTxn:
		in.source = &jepsenSource{forms: newForms(buffered, path, ednSyntax, true), jepsen: newJepsen(format == EDNTxn)}
	case ElleJSON:
		in.source = &jepsenSource{forms: newForms(buffered, path, jsonSyntax, true), jepsen: newJepsen(false)}
	case JepsenLog:
		in.source = newLogSource(buffered, path)
	case S2:
		in.source = newS2Source(newForms(buffered, path, jsonSyntax, false))
	default:
		return nil, fmt.Errorf("%w: format %q, expected one of %v", ErrMalformed, format, Formats())
	}
	if format == Native {
		in.source = &namedSource{in.source, path}
	}
	return in, nil
}

// named puts the path before an error that does not know it.
func named(path string, err error) error {
	if path == "" || err == nil || err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

type namedSource struct {
	source
	path string
}

func (n *namedSource) Next(ev *Event) error { return named(n.path, n.source.Next(ev)) }

// Format is what the file was read as.
func (f *File) Format() Format { return f.format }

// inner is the reader of the format itself.
func (f *File) inner() source {
	if n, ok := f.source.(*namedSource); ok {
		return n.source
	}
	return f.source
}

// Header is what the file says about the run; zero for formats that say nothing.
func (f *File) Header() Header {
	if h, ok := f.inner().(interface{ Header() Header }); ok {
		return h.Header()
	}
	return Header{}
}

// Truncated tells, after the end, whether a native file was cut off inside its last block, and at which byte that block begins.
func (f *File) Truncated() (at int64, truncated bool) {
	if r, ok := f.inner().(*Reader); ok {
		return r.Truncated()
	}
	return 0, false
}

// Noise is the number of lines so far that were no operations. Only Jepsen's log has such lines.
func (f *File) Noise() int64 {
	if l, ok := f.source.(*logSource); ok {
		return l.noise
	}
	return 0
}

// endsBlock tells whether the native format ended a block early after the last event.
func (f *File) endsBlock() bool {
	e, ok := f.inner().(interface{ endsBlock() bool })
	return ok && e.endsBlock()
}

// Next reads the next event into ev and uses the memory of ev.Runs and ev.Steps again. The end is io.EOF; every error stays.
func (f *File) Next(ev *Event) error {
	if f.done == nil {
		f.done = f.source.Next(ev)
	}
	return f.done
}

// All gives every event that is left; the Runs and Steps of one are valid until the next is asked for. An error is the last thing given.
func (f *File) All() iter.Seq2[Event, error] { return all(f) }

// ReadAll reads what is left of the history into memory.
func (f *File) ReadAll() ([]Event, error) { return readAll(f) }

// Close closes the file of OpenAny.
func (f *File) Close() error { return f.close() }

func all(s source) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var ev Event
		for {
			switch err := s.Next(&ev); {
			case err == io.EOF:
				return
			case err != nil:
				yield(Event{}, err)
				return
			case !yield(ev, nil):
				return
			}
		}
	}
}

func readAll(s source) ([]Event, error) {
	var events []Event
	for ev, err := range all(s) {
		if err != nil {
			return events, err
		}
		ev.Runs, ev.Steps = slices.Clone(ev.Runs), slices.Clone(ev.Steps)
		events = append(events, ev)
	}
	return events, nil
}

// FormatOf is the format that a path's suffix stands for, "" if none.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".bin":
		return Native
	case ".jsonl":
		return JSONLines
	case ".edn":
		return EDN
	case ".json":
		return ElleJSON
	case ".log":
		return JepsenLog
	}
	return ""
}

// detect guesses a format from the first bytes. A file of nothing is an empty history of the format that its name says.
func detect(r *bufio.Reader, path string) (Format, error) {
	begin, err := r.Peek(r.Size())
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("read history: %w", err)
	}
	if bytes.HasPrefix(begin, []byte("ackproof history")) {
		return Native, nil
	}
	rest := skipBlank(begin)
	if len(rest) == 0 {
		if f := FormatOf(path); f != "" {
			return f, nil
		}
		return EDN, nil
	}
	switch rest[0] {
	case '{':
		if inside := skipBlank(rest[1:]); len(inside) > 0 && inside[0] == '"' {
			return detectJSON(rest), nil
		}
		return EDN, nil
	case '[':
		inside := skipBlank(rest[1:])
		if len(inside) == 0 || inside[0] == ']' {
			if FormatOf(path) == ElleJSON {
				return ElleJSON, nil
			}
			return EDN, nil
		}
		if op := skipBlank(inside[1:]); inside[0] == '{' && len(op) > 0 && op[0] == '"' && detectJSON(inside) == ElleJSON {
			return ElleJSON, nil
		}
		return EDN, nil
	case '(', '#':
		return EDN, nil
	}
	for line := range bytes.Lines(begin) {
		if _, ok := logOperation(line); ok {
			return JepsenLog, nil
		}
	}
	if FormatOf(path) == JepsenLog {
		return JepsenLog, nil
	}
	return "", named(path, fmt.Errorf("%w: begins with %.20q, which is the beginning of none of %v", ErrMalformed, rest, Formats()))
}

// detectJSON tells the three kinds of JSON objects apart by their members. An EDN map with strings for keys counts as JSON.
func detectJSON(b []byte) Format {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	switch {
	case bytes.Contains(line, []byte(`"format"`)) || bytes.Contains(line, []byte(`"kind"`)):
		return JSONLines
	case bytes.Contains(line, []byte(`"event"`)) || bytes.Contains(line, []byte(`"client_id"`)) || bytes.Contains(line, []byte(`"op_id"`)):
		return S2
	}
	return ElleJSON
}

func skipBlank(b []byte) []byte {
	for {
		b = bytes.TrimLeft(b, " \t\r\n,")
		if len(b) == 0 || b[0] != ';' {
			return b
		}
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
}

// located makes an error about a form a LineError, with the line of the fault where the error knows its place.
func (f *forms) located(err error, form []byte, line int64) error {
	var fault *syntaxFault
	if errors.As(err, &fault) {
		line += int64(bytes.Count(form[:min(fault.at, len(form))], []byte("\n")))
	}
	return &LineError{f.path, line, err.Error()}
}

// jepsenSource reads Jepsen's operations in EDN or JSON.
type jepsenSource struct {
	*forms
	*jepsen
	ended bool
}

func (s *jepsenSource) Next(ev *Event) error {
	for {
		if s.jepsen.next(ev) {
			return nil
		}
		if s.ended {
			return io.EOF
		}
		form, line, err := s.forms.next()
		if err == io.EOF {
			s.ended = true
			s.finish()
			continue
		}
		if err != nil {
			return err
		}
		if err = s.tree.parse(form, s.syntax); err == nil && len(s.tree.nodes) > 0 {
			err = s.operation()
		}
		if err != nil {
			return s.located(err, form, line)
		}
	}
}

// jsonSource reads JSON lines.
type jsonSource struct {
	*forms
	tree  tree
	h     Header
	first bool // the tree holds the first event, which was read in search of the header
	line  int64
	form  []byte
	flush bool
}

func (s *jsonSource) begin() error {
	if err := s.parse(); err != nil {
		if err == io.EOF {
			return nil
		}
		return err
	}
	h, is, err := jsonHeader(&s.tree)
	if err != nil {
		return s.located(err, s.form, s.line)
	}
	s.h, s.first = h, !is
	return nil
}

func (s *jsonSource) parse() (err error) {
	if s.form, s.line, err = s.forms.next(); err != nil {
		return err
	}
	if err = s.tree.parse(s.form, jsonSyntax); err != nil {
		return s.located(err, s.form, s.line)
	}
	return nil
}

func (s *jsonSource) Header() Header { return s.h }

func (s *jsonSource) endsBlock() bool { return s.flush }

func (s *jsonSource) Next(ev *Event) error {
	if !s.first {
		if err := s.parse(); err != nil {
			return err
		}
	}
	s.first = false
	var err error
	if s.flush, err = jsonEvent(&s.tree, ev); err != nil {
		return s.located(err, s.form, s.line)
	}
	return nil
}
