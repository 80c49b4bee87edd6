package sandbox

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestResetPacketsAreWellFormed(t *testing.T) {
	p := resetPacket(netip.MustParseAddrPort("10.77.0.1:9092"), netip.MustParseAddrPort("10.77.128.2:40000"), 0xfffffff0)
	if !p.whole() || p.tcp() == nil || !p.tcp().has(flagRST) || p.tcp().has(flagACK) || p.tcp().from() != 9092 || p.tcp().to() != 40000 || p.bytes() != 0 {
		t.Errorf("% x", []byte(p))
	}
	// The checksum over a header with its own checksum in it is 0 (RFC 1071).
	if got := checksum(0, p[:ipHeader]); got != 0 {
		t.Errorf("the header's checksum is off by %#x", got)
	}
	sum := binary.BigEndian.Uint16(p[ipHeader+16:])
	binary.BigEndian.PutUint16(p[ipHeader+16:], 0)
	if got := tcpChecksum(p); got != sum {
		t.Errorf("the TCP checksum is %#x, expected %#x", sum, got)
	}
}

// Whatever comes over a link, and whatever bits of it are flipped on the way, nothing panics.
func TestAnyBytesAreAPacketOrNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shaped := rapid.Bool().Draw(t, "shaped")
		least := 0
		if shaped {
			least = ipHeader + tcpHeader
		}
		p := packet(rapid.SliceOfN(rapid.Byte(), least, 80).Draw(t, "bytes"))
		if shaped { // or none of them would be looked into
			p[0], p[6], p[7], p[9] = 4<<4|5, 0, 0, protoTCP
			binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
			p[ipHeader+12] = tcpHeader / 4 << 4
		}
		if !p.whole() {
			return
		}
		for range 20 {
			p.bytes()
			p.source()
			if s := p.tcp(); s != nil {
				s.from()
				s.ack()
				s.has(flagSYN)
			}
			if rest := len(p) - p.header(); rest > 0 {
				p[p.header()+rapid.IntRange(0, rest-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
		}
	})
}
