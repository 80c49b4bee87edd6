package histories

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// endless makes a text of n lines while it is read.
type endless struct {
	line func(b []byte, i int) []byte
	n, i int
	buf  []byte
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.buf) == 0 {
		if e.i == e.n {
			return 0, io.EOF
		}
		e.buf = e.line(e.buf[:0], e.i)
		e.i++
	}
	n := copy(p, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

// TestStreaming: readers and writers hold what is open, not what has been read.
func TestStreaming(t *testing.T) {
	const lines = 20_000
	for _, c := range []struct {
		format Format
		to     Format
		line   func(b []byte, i int) []byte
	}{
		{EDN, EDN, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "{:process %d, :type :%s, :f :read, :value nil}\n", i/2%5, typeNames[i%2])
		}},
		{EDN, EDN, func(b []byte, i int) []byte { // polls, which wait for their completion, among sends
			line := [...]string{
				"{:process 1, :type :invoke, :f :poll, :value [[:poll]]}\n",
				"{:process 0, :type :invoke, :f :send, :value [[:send 0 N]]}\n",
				"{:process 0, :type :ok, :f :send, :value [[:send 0 [N N]]]}\n",
				"{:process 1, :type :ok, :f :poll, :value [[:poll {0 [[N N]]}]]}\n",
			}[i%4]
			return append(b, strings.ReplaceAll(line, "N", strconv.Itoa(i/4))...)
		}},
		{JSONLines, Native, func(b []byte, i int) []byte {
			op := i - i%2 + 1
			return fmt.Appendf(b, `{"seq":%d,"time":%d,"type":"%s","kind":"end-offset","op":%d,"process":1}`+"\n", i+1, i, typeNames[i%2], op)
		}},
		{S2, JSONLines, func(b []byte, i int) []byte {
			if i%2 == 0 {
				return fmt.Appendf(b, `{"event":{"Start":"CheckTail"},"client_id":0,"op_id":%d}`+"\n", i)
			}
			return fmt.Appendf(b, `{"event":{"Finish":{"CheckTailSuccess":{"tail":%d}}},"client_id":0,"op_id":%d}`+"\n", i, i-1)
		}},
	} {
		t.Run(fmt.Sprintf("%s to %s", c.format, c.to), func(t *testing.T) {
			in, err := NewFile(&endless{line: c.line, n: lines}, "made", c.format)
			if err != nil {
				t.Fatal(err)
			}
			out, err := NewEventWriter(io.Discard, c.to, in.Header())
			if err != nil {
				t.Fatal(err)
			}
			before, n := heap(), 0
			for ev, err := range in.All() {
				if err == nil {
					err = out.Write(&ev)
				}
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
			if n < lines/2 {
				t.Fatalf("%d events of %d lines", n, lines)
			}
			// 10,000 events kept would be 2 MB at least.
			if grown := int64(heap()) - int64(before); grown > 1<<20 {
				t.Fatalf("%d bytes are held after %d events", grown, n)
			}
			runtime.KeepAlive(in)
			runtime.KeepAlive(out)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
