package sandbox

import (
	"encoding/binary"
	"net/netip"
)

// packet is one IPv4 packet as it comes from a link. Its methods may be called after whole has said yes.
type packet []byte

const (
	ipHeader  = 20
	tcpHeader = 20
	protoTCP  = 6

	flagFIN = 1
	flagSYN = 2
	flagRST = 4
	flagACK = 16
)

// whole tells whether it is an IPv4 packet, complete, and with a whole TCP header if it is TCP.
func (p packet) whole() bool {
	if len(p) < ipHeader || p[0]>>4 != 4 || p.header() < ipHeader || p.header() > len(p) || int(binary.BigEndian.Uint16(p[2:])) != len(p) {
		return false
	}
	if p.fragment() || p[9] != protoTCP {
		return true
	}
	t := p[p.header():]
	return len(t) >= tcpHeader && int(t[12]>>4)*4 >= tcpHeader && int(t[12]>>4)*4 <= len(t)
}

func (p packet) header() int { return int(p[0]&15) * 4 }

// fragment: all but the first piece of a packet that was cut.
func (p packet) fragment() bool { return binary.BigEndian.Uint16(p[6:])&0x1fff != 0 }

func (p packet) source() netip.Addr      { return netip.AddrFrom4([4]byte(p[12:16])) }
func (p packet) destination() netip.Addr { return netip.AddrFrom4([4]byte(p[16:20])) }

// tcp is the TCP segment in the packet, nil if there is none.
func (p packet) tcp() segment {
	if p[9] != protoTCP || p.fragment() {
		return nil
	}
	return segment(p[p.header():])
}

// bytes that count: what a TCP segment carries beside its header, of other packets all.
func (p packet) bytes() int64 {
	if t := p.tcp(); t != nil {
		return int64(len(t.payload()))
	}
	return int64(len(p))
}

// segment is one TCP segment.
type segment []byte

func (t segment) from() uint16    { return binary.BigEndian.Uint16(t) }
func (t segment) to() uint16      { return binary.BigEndian.Uint16(t[2:]) }
func (t segment) ack() uint32     { return binary.BigEndian.Uint32(t[8:]) }
func (t segment) has(f byte) bool { return t[13]&f != 0 }

// payload is what is behind the header, nothing where the header says that it is longer than the segment: a bit of it may have been flipped on purpose.
func (t segment) payload() []byte { return t[min(int(t[12]>>4)*4, len(t)):] }

// resetPacket is the RST that one end of a connection would send to the other with that sequence number.
func resetPacket(from, to netip.AddrPort, seq uint32) packet {
	p := make(packet, ipHeader+tcpHeader)
	p[0], p[8], p[9] = 4<<4|ipHeader/4, 64, protoTCP
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	source, destination := from.Addr().As4(), to.Addr().As4()
	copy(p[12:], source[:])
	copy(p[16:], destination[:])
	binary.BigEndian.PutUint16(p[10:], checksum(0, p[:ipHeader]))
	t := p[ipHeader:]
	binary.BigEndian.PutUint16(t, from.Port())
	binary.BigEndian.PutUint16(t[2:], to.Port())
	binary.BigEndian.PutUint32(t[4:], seq)
	t[12], t[13] = tcpHeader/4<<4, flagRST
	binary.BigEndian.PutUint16(t[16:], tcpChecksum(p))
	return p
}

// tcpChecksum is what the checksum field of a packet with a zero there must be (RFC 9293, 3.1).
func tcpChecksum(p packet) uint16 {
	t := p[p.header():]
	pseudo := uint32(protoTCP) + uint32(len(t))
	for i := 12; i < 20; i += 2 {
		pseudo += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	return checksum(pseudo, t)
}

// checksum is that of the internet protocols (RFC 1071), begun with a sum.
func checksum(sum uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
