package main

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// badCases are about what no client should send.
var badCases = []testCase{
	{"unknown versions", 18, func(t *talk) {
		if t.v > 0 {
			return // once is enough
		}
		for _, k := range slices.Sorted(maps.Keys(t.serves)) {
			if _, both := t.peer.serves[k]; !both || k == 18 {
				continue
			}
			t.raw(kmsg.NameForKey(k)+", version 99", header(k, 99))
			t.raw(kmsg.NameForKey(k)+", version -1", header(k, -1))
		}
	}},
	{"unknown key", 18, func(t *talk) { t.raw("key 999", header(999, 0)) }},
	{"too new api versions", 18, func(t *talk) {
		back, err := t.send(anyBroker, append(header(18, 99), "\x00what only the future knows"...)) // no tags in its header
		if err != nil {
			t.note("version 99", "", err.Error())
			return
		}
		q := kmsg.NewPtrApiVersionsRequest()
		resp, err := read(back, q, 7)
		if err != nil {
			t.note("version 99", "", err.Error())
			return
		}
		r := resp.(*kmsg.ApiVersionsResponse)
		t.note("version 99", "ErrorCode", code(r.ErrorCode))
		for _, k := range r.ApiKeys {
			if k.ApiKey == 18 {
				t.note("version 99", "names ApiVersions", "yes")
			}
		}
	}},
	{"bad frames", 18, func(t *talk) {
		t.raw("empty", nil)
		t.raw("one byte", []byte{0})
		t.raw("header cut", header(3, 1)[:9])
		t.raw("body cut", append(header(3, 1), 0, 0, 0, 9))
		t.raw("array beyond the frame", append(header(3, 1), 0x7f, 0xff, 0xff, 0xff))
		t.raw("negative array", append(header(3, 1), 0x80, 0, 0, 0))
		t.raw("client id beyond the frame", append(header(3, 1)[:8], 0x7f, 0xff))
		c := t.open(anyBroker)
		c.Write(binary.BigEndian.AppendUint32(nil, 0x7fffffff))
		t.raw("frame of 2 GiB", nil)
		c = t.open(anyBroker)
		c.Write(binary.BigEndian.AppendUint32(nil, 0xffffffff))
		t.raw("frame of negative size", nil)
		t.raw("HTTP", []byte("GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"))
	}},
}

// header is that of a request, in layout 1.
func header(k, version int16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(k))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 7)
	return append(binary.BigEndian.AppendUint16(b, 1), 'c')
}

// raw sends a frame and keeps only whether there is an answer.
func (t *talk) raw(step string, frame []byte) {
	if _, err := t.send(anyBroker, frame); err != nil {
		t.note(step, "", err.Error())
	} else {
		t.note(step, "", "answered")
	}
}
