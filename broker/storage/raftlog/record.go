package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"ackproof/broker/core/controller"
)

// A record is a CRC32C of the rest, its own index, and parts. A part is a kind, a uvarint length, and a message of raft's.
const recordHead = 4 + 8

const (
	partHardState byte = 'h'
	partEntry     byte = 'e'
	partSnapshot  byte = 's'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errBad: the bytes are no record.
var errBad = errors.New("bad record")

func encodeRecord(index uint64, p controller.Persist) ([]byte, error) {
	raw := binary.BigEndian.AppendUint64(make([]byte, 4, 256), index)
	raw, err := appendParts(raw, p)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return raw, nil
}

// intact tells whether raw is the record with that index.
func intact(raw []byte, index uint64) error {
	if len(raw) < recordHead {
		return fmt.Errorf("%w: %d bytes, at least %d expected", errBad, len(raw), recordHead)
	}
	be := binary.BigEndian
	if sum := crc32.Checksum(raw[4:], castagnoli); sum != be.Uint32(raw) {
		return fmt.Errorf("%w: checksum %08x, it says %08x", errBad, sum, be.Uint32(raw))
	}
	if got := be.Uint64(raw[4:]); got != index {
		return fmt.Errorf("%w: it says that it is record %d, expected %d", errBad, got, index)
	}
	return nil
}

func encodeBase(generation uint64, c content) ([]byte, error) {
	raw := binary.BigEndian.AppendUint64(nil, generation)
	return appendParts(raw, controller.Persist{HardState: c.HardState, Snapshot: c.Snapshot, Entries: c.Entries})
}

func decodeBase(raw []byte) (generation uint64, c content, err error) {
	if len(raw) < 8 {
		return 0, content{}, fmt.Errorf("%w: %d bytes, at least 8 expected", errBad, len(raw))
	}
	p, err := decodeParts(raw[8:])
	if err != nil {
		return 0, content{}, err
	}
	c, err = content{}.with(p)
	return binary.BigEndian.Uint64(raw), c, err
}

func appendParts(raw []byte, p controller.Persist) ([]byte, error) {
	var failed error
	add := func(kind byte, m proto.Message) {
		body, err := proto.Marshal(m)
		failed = errors.Join(failed, err)
		raw = append(raw, kind)
		raw = binary.AppendUvarint(raw, uint64(len(body)))
		raw = append(raw, body...)
	}
	if p.HardState != nil {
		add(partHardState, p.HardState)
	}
	if p.Snapshot != nil {
		add(partSnapshot, p.Snapshot)
	}
	for _, e := range p.Entries {
		add(partEntry, e)
	}
	return raw, failed
}

func decodeParts(raw []byte) (p controller.Persist, err error) {
	for len(raw) > 0 {
		kind := raw[0]
		n, k := binary.Uvarint(raw[1:])
		if k <= 0 || n > uint64(len(raw)-1-k) {
			return p, fmt.Errorf("%w: part %q with a senseless length", errBad, kind)
		}
		body := raw[1+k:][:n]
		raw = raw[1+k+int(n):]
		var m proto.Message
		switch kind {
		case partHardState:
			p.HardState = new(raftpb.HardState)
			m = p.HardState
		case partSnapshot:
			p.Snapshot = new(raftpb.Snapshot)
			m = p.Snapshot
		case partEntry:
			e := new(raftpb.Entry)
			p.Entries = append(p.Entries, e)
			m = e
		default:
			return p, fmt.Errorf("%w: part of the unknown kind %q", errBad, kind)
		}
		if err := proto.Unmarshal(body, m); err != nil {
			return p, fmt.Errorf("%w: part %q: %w", errBad, kind, err)
		}
	}
	return p, nil
}
