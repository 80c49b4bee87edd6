package histories

import (
	"fmt"
	"iter"
	"strconv"
	"unicode/utf8"
)

// nodeKind is the kind of a form.
type nodeKind uint8

const (
	nilNode nodeKind = iota
	boolNode
	intNode
	floatNode
	stringNode
	keywordNode // without its colon
	symbolNode
	charNode
	listNode
	vectorNode
	setNode
	mapNode // keys and values in turn
)

var nodeNames = [...]string{"nil", "a boolean", "an integer", "a fraction", "a string", "a keyword", "a symbol", "a character", "a list", "a vector", "a set", "a map"}

// node is one form of EDN or JSON inside a tree.
type node struct {
	kind     nodeKind
	escaped  bool  // a string with escapes
	from, to int32 // its text in the source: without quotes for a string, without colon for a keyword, with brackets for a collection
	next     int32 // the node after it and all that is in it
	count    int32 // of children
}

// tree holds one form in the order of the text, so that a reader can use the same memory for every operation. The root is node 0.
type tree struct {
	src    []byte
	nodes  []node
	syntax syntax
	at     int
}

// syntaxFault is an error at a place in the source of a tree.
type syntaxFault struct {
	at   int
	what string
}

func (e *syntaxFault) Error() string { return e.what }

const maxDepth = 64

// parse reads src, which must hold one form. It leaves no nodes if that is discarded by #_.
func (t *tree) parse(src []byte, s syntax) error {
	t.src, t.nodes, t.syntax, t.at = src, t.nodes[:0], s, 0
	for t.space(); s == ednSyntax && t.discards(0); {
		if t.space(); t.at == len(t.src) {
			return nil
		}
	}
	if err := t.value(0); err != nil {
		return err
	}
	if t.space(); t.at < len(t.src) {
		return t.fault("%q after the form, expected its end", t.src[t.at])
	}
	return nil
}

func (t *tree) fault(format string, args ...any) error {
	return &syntaxFault{t.at, fmt.Sprintf(format, args...)}
}

func (t *tree) space() {
	for ; t.at < len(t.src); t.at++ {
		switch c := t.src[t.at]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',' && t.syntax == ednSyntax:
		case c == ';' && t.syntax == ednSyntax:
			for t.at < len(t.src)-1 && t.src[t.at] != '\n' {
				t.at++
			}
		default:
			return
		}
	}
}

// ends holds the bytes that end a word.
var ends = func() (ends [256]bool) {
	for _, c := range []byte(" \n\t\r,;\"\\{}[]()") {
		ends[c] = true
	}
	return ends
}()

// isEnd tells whether a byte ends a word.
func isEnd(c byte) bool { return ends[c] }

func (t *tree) word() (from, to int) {
	from = t.at
	for t.at < len(t.src) && !isEnd(t.src[t.at]) && (t.syntax == ednSyntax || t.src[t.at] != ':') {
		t.at++
	}
	return from, t.at
}

func (t *tree) add(k nodeKind, from, to int) {
	t.nodes = append(t.nodes, node{kind: k, from: int32(from), to: int32(to), next: int32(len(t.nodes) + 1)})
}

// value reads one form. In EDN tags are read past: #jepsen.history.Op{…} is its map.
func (t *tree) value(depth int) error {
	if depth > maxDepth {
		return t.fault("more than %d levels, expected an operation", maxDepth)
	}
	t.space()
	if t.at == len(t.src) {
		return t.fault("the form ends too early, expected a value")
	}
	switch c := t.src[t.at]; {
	case c == '"':
		return t.str()
	case c == '{':
		return t.collection(mapNode, '}', depth)
	case c == '[':
		return t.collection(vectorNode, ']', depth)
	case c >= '0' && c <= '9' || (c == '-' || c == '+') && t.at+1 < len(t.src) && t.src[t.at+1] >= '0' && t.src[t.at+1] <= '9':
		return t.number()
	case t.syntax == jsonSyntax:
		return t.literal()
	case c == '(':
		return t.collection(listNode, ')', depth)
	case c == ':':
		t.at++
		from, to := t.word()
		if from == to {
			return t.fault("a colon alone, expected a keyword")
		}
		t.add(keywordNode, from, to)
		return nil
	case c == '\\':
		from := t.at
		t.at++
		if t.at == len(t.src) {
			return t.fault("a backslash alone, expected a character")
		}
		_, n := utf8.DecodeRune(t.src[t.at:])
		t.at += n
		t.word()
		t.add(charNode, from, t.at)
		return nil
	case c == '#':
		t.at++
		switch {
		case t.at < len(t.src) && t.src[t.at] == '{':
			return t.collection(setNode, '}', depth)
		case t.at < len(t.src) && t.src[t.at] == '_':
			t.at++
			mark := len(t.nodes)
			if err := t.value(depth + 1); err != nil {
				return err
			}
			t.nodes = t.nodes[:mark]
		default:
			if from, to := t.word(); from == to {
				return t.fault("# alone, expected a tag")
			}
		}
		return t.value(depth + 1)
	}
	return t.literal()
}

func (t *tree) literal() error {
	from, to := t.word()
	switch w := string(t.src[from:to]); {
	case w == "":
		return t.fault("%q, expected a value", t.src[t.at])
	case w == "nil" && t.syntax == ednSyntax, w == "null" && t.syntax == jsonSyntax:
		t.add(nilNode, from, to)
	case w == "true", w == "false":
		t.add(boolNode, from, to)
	case t.syntax == jsonSyntax:
		t.at = from
		return t.fault("%.40q, expected a JSON value", w)
	default:
		t.add(symbolNode, from, to)
	}
	return nil
}

func (t *tree) number() error {
	from, to := t.word()
	text := t.src[from:to]
	kind := intNode
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9', i == 0 && c == '-', i == 0 && c == '+' && t.syntax == ednSyntax:
		case t.syntax == ednSyntax && c == 'N' && i == len(text)-1:
			to-- // a big integer of Clojure; whether it fits is seen where it is used
		case c == '.' || c == 'e' || c == 'E' || c == '/' || c == '+' || c == '-' || c == 'M':
			kind = floatNode
		default:
			t.at = from
			return t.fault("%.40q, expected a number", text)
		}
	}
	t.add(kind, from, to)
	return nil
}

func (t *tree) str() error {
	t.at++
	from, escaped := t.at, false
	for ; t.at < len(t.src); t.at++ {
		switch t.src[t.at] {
		case '\\':
			escaped = true
			t.at++
		case '"':
			t.add(stringNode, from, t.at)
			t.nodes[len(t.nodes)-1].escaped = escaped
			t.at++
			return nil
		}
	}
	return t.fault("a string without end")
}

func (t *tree) collection(k nodeKind, closer byte, depth int) error {
	from, self := t.at, len(t.nodes)
	t.add(k, from, from)
	t.at++
	var count int32
	for {
		t.space()
		switch {
		case t.at == len(t.src):
			return t.fault("the form ends too early, expected %q", closer)
		case t.src[t.at] == closer:
			if k == mapNode && count%2 != 0 {
				return t.fault("a map with a key and no value")
			}
			t.at++
			n := &t.nodes[self]
			n.to, n.next, n.count = int32(t.at), int32(len(t.nodes)), count
			return nil
		case t.syntax == jsonSyntax && k == mapNode && count%2 == 1:
			if t.src[t.at] != ':' {
				return t.fault("%q after a key, expected a colon", t.src[t.at])
			}
			t.at++
		case t.syntax == jsonSyntax && count > 0:
			if t.src[t.at] != ',' {
				return t.fault("%q after a value, expected a comma or %q", t.src[t.at], closer)
			}
			t.at++
			t.space()
			if t.at < len(t.src) && t.src[t.at] == closer {
				return t.fault("a comma before %q, expected a value", closer)
			}
		}
		if t.syntax == ednSyntax && t.discards(depth) {
			continue
		}
		key := len(t.nodes)
		if err := t.value(depth + 1); err != nil {
			return err
		}
		if t.syntax == jsonSyntax && k == mapNode && count%2 == 0 && t.nodes[key].kind != stringNode {
			return t.fault("%s as a key, expected a string", nodeNames[t.nodes[key].kind])
		}
		count++
	}
}

// discards reads past #_ and the form behind it: without it the last form of a collection could not be discarded.
func (t *tree) discards(depth int) bool {
	if t.at+1 >= len(t.src) || t.src[t.at] != '#' || t.src[t.at+1] != '_' {
		return false
	}
	mark, at := len(t.nodes), t.at
	t.at += 2
	if t.value(depth+1) != nil {
		t.at = at // let value meet the fault again
		t.nodes = t.nodes[:mark]
		return false
	}
	t.nodes = t.nodes[:mark]
	return true
}

// children gives the nodes that are directly in n.
func (t *tree) children(n int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for c, end := n+1, t.nodes[n].next; c < end; c = t.nodes[c].next {
			if !yield(c) {
				return
			}
		}
	}
}

// child is the i-th node in n, which must have as many.
func (t *tree) child(n int32, i int) int32 {
	c := n + 1
	for ; i > 0; i-- {
		c = t.nodes[c].next
	}
	return c
}

// isVector tells a sequence of n forms; of any length if n is −1.
func (t *tree) isVector(at int32, n int) bool {
	k := t.nodes[at]
	return (k.kind == vectorNode || k.kind == listNode) && (n < 0 || int(k.count) == n)
}

// raw is the text of a keyword, string, symbol or number as it stands.
func (t *tree) raw(n int32) []byte { return t.src[t.nodes[n].from:t.nodes[n].to] }

// name is the text of a keyword, or of the string that stands for one in JSON.
func (t *tree) name(n int32) []byte {
	switch b := t.raw(n); {
	case t.nodes[n].kind < stringNode || t.nodes[n].kind > symbolNode:
		return nil
	case len(b) > 0 && b[0] == ':':
		return b[1:]
	default:
		return b
	}
}

// text is the text of a string without its escapes.
func (t *tree) text(n int32) (string, error) {
	b := t.raw(n)
	if !t.nodes[n].escaped {
		if !utf8.Valid(b) {
			return "", fmt.Errorf("a string that is not UTF-8")
		}
		return string(b), nil
	}
	s, err := unescape(b)
	if err != nil {
		return "", err
	}
	return s, nil
}

// unescape undoes the escapes of JSON, which are those of EDN.
func unescape(b []byte) (string, error) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		if i++; i == len(b) {
			return "", fmt.Errorf("a string that ends in a backslash")
		}
		switch c := b[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, err := hex4(b[i+1:])
			if err != nil {
				return "", err
			}
			i += 4
			if r >= 0xd800 && r < 0xdc00 { // half of a pair
				low, err := rune(0), error(nil)
				if len(b) > i+6 && b[i+1] == '\\' && b[i+2] == 'u' {
					low, err = hex4(b[i+3:])
				}
				if err != nil || low < 0xdc00 || low > 0xdfff {
					return "", fmt.Errorf("half of a pair of \\u escapes, expected the other half")
				}
				r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
				i += 6
			} else if r >= 0xdc00 && r < 0xe000 {
				return "", fmt.Errorf("half of a pair of \\u escapes, expected the other half")
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", fmt.Errorf("escape \\%c in a string, expected one of \\\" \\\\ \\/ \\n \\t \\r \\b \\f \\u", c)
		}
	}
	if !utf8.Valid(out) {
		return "", fmt.Errorf("a string that is not UTF-8")
	}
	return string(out), nil
}

func hex4(b []byte) (rune, error) {
	if len(b) < 4 {
		return 0, fmt.Errorf("\\u with fewer than four digits")
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("\\u%s, expected four hexadecimal digits", b[:4])
	}
	return rune(v), nil
}

// integer is the value of a node that must be an integer of 64 bits.
func (t *tree) integer(n int32) (int64, error) {
	if t.nodes[n].kind != intNode {
		return 0, fmt.Errorf("%s, expected an integer", t.show(n))
	}
	b := t.raw(n)
	if len(b) < 19 {
		v, negative := int64(0), b[0] == '-'
		if b[0] == '-' || b[0] == '+' {
			b = b[1:]
		}
		for _, c := range b {
			v = v*10 + int64(c-'0')
		}
		if negative {
			v = -v
		}
		return v, nil
	}
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s, expected an integer from −2⁶³ to 2⁶³−1", b)
	}
	return v, nil
}

// unsigned is the value of a node that must be an integer from 0 to 2⁶⁴−1.
func (t *tree) unsigned(n int32) (uint64, error) {
	if t.nodes[n].kind != intNode {
		return 0, fmt.Errorf("%s, expected an integer", t.show(n))
	}
	v, err := strconv.ParseUint(string(t.raw(n)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s, expected an integer from 0 to 2⁶⁴−1", t.raw(n))
	}
	return v, nil
}

// show is a form for messages, cut to a bearable length.
func (t *tree) show(n int32) string {
	s := string(t.appendEDN(nil, n))
	if len(s) > 60 {
		s = s[:57] + "…"
	}
	return s
}

// appendEDN prints a form as EDN, whatever it was read from.
func (t *tree) appendEDN(b []byte, n int32) []byte {
	k := &t.nodes[n]
	switch k.kind {
	case nilNode:
		return append(b, "nil"...)
	case stringNode:
		if k.escaped { // JSON knows escapes that EDN does not
			if s, err := t.text(n); err == nil {
				return appendEDNText(b, s)
			}
		}
		b = append(b, '"')
		b = append(b, t.raw(n)...)
		return append(b, '"')
	case keywordNode:
		b = append(b, ':')
		return append(b, t.raw(n)...)
	case listNode, vectorNode, setNode, mapNode:
		open, closer := "[", byte(']')
		switch k.kind {
		case listNode:
			open, closer = "(", ')'
		case setNode:
			open, closer = "#{", '}'
		case mapNode:
			open, closer = "{", '}'
		}
		b = append(b, open...)
		first := true
		for c := range t.children(n) {
			if !first {
				b = append(b, ' ')
			}
			first = false
			b = t.appendEDN(b, c)
		}
		return append(b, closer)
	}
	return append(b, t.raw(n)...)
}
