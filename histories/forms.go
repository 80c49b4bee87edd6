package histories

import (
	"bytes"
	"fmt"
	"io"
)

// maxForm bounds one operation in a text format, in bytes. Readers hold one at a time.
const maxForm = 16 << 20

// LineError says where a text file leaves its format. It is an ErrMalformed.
type LineError struct {
	Path string // "" if unknown
	Line int64  // from 1
	What string // what is there, and what was expected
}

// Error names file, line and expectation.
func (e *LineError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("history: line %d: %s", e.Line, e.What)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.What)
}

// Unwrap makes it an ErrMalformed.
func (e *LineError) Unwrap() error { return ErrMalformed }

// syntax is what EDN and JSON differ in.
type syntax uint8

const (
	ednSyntax syntax = iota
	jsonSyntax
)

// forms cuts a stream into its outermost forms, so that one form at a time is in memory. A file may be a row of forms or, with elements
// set, one vector, list or JSON array of them.
//
// EDN is read by this package itself. The usual library, olympos.io/encoding/edn, decodes such operations at a seventh of the speed (about
// 0.1 million a CPU second, before anything is made of them), takes a file that is one vector as one value, and knows no lines.
type forms struct {
	r        io.Reader
	path     string
	syntax   syntax
	elements bool // an outermost vector is the history, not an operation

	buf      []byte
	at       int   // where the unread part of buf begins
	line     int64 // of buf[at]
	eof      bool
	closer   byte // what ends the outermost vector, 0 outside
	ended    bool // the vector has been closed
	wasComma bool // the last thing between elements of a JSON array was its comma
	first    bool
}

func newForms(r io.Reader, path string, syntax syntax, elements bool) *forms {
	return &forms{r: r, path: path, syntax: syntax, elements: elements, line: 1, first: true}
}

func (f *forms) errorf(line int64, format string, args ...any) error {
	return &LineError{f.path, line, fmt.Sprintf(format, args...)}
}

// more reads on; false at the end of the file.
func (f *forms) more() (bool, error) {
	if f.eof {
		return false, nil
	}
	if f.at > 0 {
		f.buf = f.buf[:copy(f.buf, f.buf[f.at:])]
		f.at = 0
	}
	if len(f.buf) == cap(f.buf) {
		grown := make([]byte, len(f.buf), max(64<<10, 2*cap(f.buf)))
		copy(grown, f.buf)
		f.buf = grown
	}
	for tries := 0; ; tries++ {
		n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		switch {
		case err == io.EOF:
			f.eof = true
			return n > 0, nil
		case err != nil:
			return false, fmt.Errorf("read history: %w", err)
		case n > 0:
			return true, nil
		case tries == 100:
			return false, fmt.Errorf("read history: %w", io.ErrNoProgress)
		}
	}
}

// space goes on to the next byte that is neither white space nor comment; false at the end of the file.
func (f *forms) space() (byte, bool, error) {
	comment := false
	for {
		for ; f.at < len(f.buf); f.at++ {
			switch c := f.buf[f.at]; {
			case c == '\n':
				f.line++
				comment = false
			case comment || c == ' ' || c == '\t' || c == '\r':
			case c == ',' && (f.syntax == ednSyntax || f.closer != 0 && !f.wasComma && !f.first):
				f.wasComma = true
			case c == ';' && f.syntax == ednSyntax:
				comment = true
			default:
				return c, true, nil
			}
		}
		if ok, err := f.more(); !ok {
			return 0, false, err
		}
	}
}

// next gives the next form and the line that it begins in; io.EOF at the end. The form is valid until the next call.
func (f *forms) next() (form []byte, line int64, err error) {
	for {
		f.wasComma = false
		c, ok, err := f.space()
		switch {
		case err != nil:
			return nil, 0, err
		case !ok && f.closer != 0 && !f.ended:
			return nil, 0, f.errorf(f.line, "the file ends inside the list of operations, expected %q", f.closer)
		case !ok:
			return nil, 0, io.EOF
		case f.ended:
			return nil, 0, f.errorf(f.line, "%q after the end of the list of operations, expected nothing", c)
		case f.first && f.elements && f.closer == 0 && (c == '[' || c == '(' && f.syntax == ednSyntax):
			f.closer = map[byte]byte{'[': ']', '(': ')'}[c]
			f.at++
			continue
		case f.closer != 0 && c == f.closer:
			if f.syntax == jsonSyntax && f.wasComma {
				return nil, 0, f.errorf(f.line, "a comma before the end of the array, expected an element")
			}
			f.at++
			f.ended = true
			continue
		case f.syntax == jsonSyntax && f.closer != 0 && !f.first && !f.wasComma:
			return nil, 0, f.errorf(f.line, "%q after an element of the array, expected a comma or the end", c)
		}
		f.first = false
		line = f.line
		n, err := f.form()
		if err != nil {
			return nil, 0, err
		}
		form = f.buf[f.at : f.at+n]
		f.at += n
		f.line += int64(bytes.Count(form, []byte("\n")))
		return form, line, nil
	}
}

// form finds the length of the form at the read position, and reads on until all of it is in memory.
func (f *forms) form() (int, error) {
	for {
		n, what := f.scan(f.buf[f.at:])
		switch {
		case what != "":
			return 0, f.errorf(f.line+int64(bytes.Count(f.buf[f.at:f.at+n], []byte("\n"))), "%s", what)
		case n > maxForm || n == 0 && len(f.buf)-f.at > maxForm:
			return 0, f.errorf(f.line, "a form of more than %d bytes, expected an operation", maxForm)
		case n > 0:
			return n, nil
		}
		ok, err := f.more()
		if err != nil {
			return 0, err
		}
		if !ok {
			// A bare word at the very end has no delimiter behind it; anything else is cut off.
			if rest := f.buf[f.at:]; !bytes.ContainsAny(rest, "{[(\"") && rest[0] != '#' {
				return len(rest), nil
			}
			return 0, f.errorf(f.line, "the file ends inside the form that begins here")
		}
	}
}

// delimits holds the bytes that scan has to look at inside a collection.
var delimits = func() (d [256]bool) {
	for _, c := range []byte("\"{[(}]);\\") {
		d[c] = true
	}
	return d
}()

// scan finds the end of the form at the beginning of b: 0 if it is not there. With a fault, n is where.
func (f *forms) scan(b []byte) (n int, fault string) {
	depth, tag := 0, false
	for i := 0; i < len(b); i++ {
		if c := b[i]; depth > 0 && !delimits[c] {
			continue
		}
		switch c := b[i]; c {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) {
				return 0, ""
			}
			if depth == 0 {
				return i + 1, ""
			}
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
			switch {
			case depth < 0 && i > 0: // the end of the list around a bare word
				return i, ""
			case depth < 0:
				return i, fmt.Sprintf("%q without its beginning", c)
			case depth == 0:
				return i + 1, ""
			}
		case ';':
			if f.syntax == ednSyntax {
				for i < len(b) && b[i] != '\n' {
					i++
				}
			}
		case '\\':
			if f.syntax == ednSyntax {
				i++
			}
		case '#':
			if depth == 0 {
				tag = true
			}
		case ' ', '\t', '\r', '\n', ',':
			if depth == 0 && !tag && i > 0 {
				return i, ""
			}
		}
	}
	return 0, ""
}
