package histories

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// logSource reads the operations out of Jepsen's log: lines
//
//	INFO  jepsen.util - PROCESS<TAB>:TYPE<TAB>:F<TAB>VALUE
//
// and, after an error, one more column. A line of another shape is noise, which is counted.
type logSource struct {
	r      *bufio.Reader
	path   string
	line   int64
	noise  int64
	buf    []byte
	jepsen *jepsen
	ended  bool
}

func newLogSource(r *bufio.Reader, path string) *logSource {
	return &logSource{r: r, path: path, jepsen: newJepsen(false)}
}

// logOperation gives what follows the prefix of a line that logs an operation.
func logOperation(line []byte) (op []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("INFO"))
	if !ok {
		return nil, false
	}
	trimmed := bytes.TrimLeft(rest, " \t")
	if len(trimmed) == len(rest) {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(trimmed, []byte("jepsen.util")); !ok {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte("-")); !ok {
		return nil, false
	}
	op = bytes.TrimSpace(rest)
	words := bytes.Fields(op)
	if len(words) < 3 || len(words[2]) < 2 || words[2][0] != ':' {
		return nil, false
	}
	switch string(words[1]) {
	case ":invoke", ":ok", ":fail", ":info":
		return op, true
	}
	return nil, false
}

// readLine reads a line of bounded length, without its end.
func (s *logSource) readLine() error {
	s.buf = s.buf[:0]
	s.line++
	for {
		part, err := s.r.ReadSlice('\n')
		s.buf = append(s.buf, part...)
		switch {
		case len(s.buf) > maxForm:
			return &LineError{s.path, s.line, fmt.Sprintf("a line of more than %d bytes", maxForm)}
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(s.buf) > 0, err == nil:
			s.buf = bytes.TrimRight(s.buf, "\r\n")
			return nil
		case err == io.EOF:
			return io.EOF
		default:
			return fmt.Errorf("read history: %w", err)
		}
	}
}

func (s *logSource) Next(ev *Event) error {
	for {
		if s.jepsen.next(ev) {
			return nil
		}
		if s.ended {
			return io.EOF
		}
		err := s.readLine()
		switch {
		case err == io.EOF:
			s.ended = true
			s.jepsen.finish()
			continue
		case err != nil:
			return err
		}
		op, ok := logOperation(s.buf)
		if !ok {
			s.noise++
			continue
		}
		if err := s.operation(op); err != nil {
			return &LineError{s.path, s.line, err.Error()}
		}
	}
}

// operation rewrites a line's columns as the map that EDN would have.
func (s *logSource) operation(op []byte) error {
	t := &s.jepsen.tree
	if err := t.parse(append(append([]byte("["), op...), "\n]"...), ednSyntax); err != nil {
		return fmt.Errorf("%.80q, expected process, type, f and value: %w", op, err)
	}
	n := t.nodes[0].count
	if n < 4 {
		return fmt.Errorf("%.80q, expected process, type, f and value", op)
	}
	b := []byte("{")
	for i, name := range []string{":process ", " :type ", " :f ", " :value "} {
		b = t.appendEDN(append(b, name...), t.child(0, i))
	}
	if n > 4 {
		b = append(b, " :error "...)
		if n > 5 {
			b = append(b, '[')
		}
		for i := 4; i < int(n); i++ {
			b = append(t.appendEDN(b, t.child(0, i)), ' ')
		}
		if n > 5 {
			b = append(b, ']')
		}
	}
	if err := t.parse(append(b, '}'), ednSyntax); err != nil {
		return err
	}
	return s.jepsen.operation()
}
