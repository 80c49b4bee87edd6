package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
)

// replay takes the records of this generation into content, and repairs the tail. Save returns only when a record is durable, so at most the last one can
// be torn: a bad record that is followed by a right one is damage, and cutting it off would take back a vote or an entry that others count on.
func (l *Log) replay() error {
	dir := l.files()
	if err := rawwal.Tidy(dir); err != nil {
		return err
	}
	segments, err := rawwal.Segments(dir)
	if err != nil {
		return err
	}
	l.next, l.segment = 1, 0
	for i, s := range segments {
		last := i == len(segments)-1
		if s.Index != l.next {
			return fmt.Errorf("%w: %s: expected a segment that begins with record %d", storage.ErrDamaged, rawwal.Path(dir, s.Index), l.next)
		}
		raw, err := os.ReadFile(rawwal.Path(dir, s.Index))
		if err != nil {
			return err
		}
		good, err := l.replaySegment(raw)
		l.segment = int64(good)
		if err == nil {
			continue
		}
		torn := errors.Is(err, errBad) && last && !recordBehind(raw[good:], l.next)
		if !torn {
			return fmt.Errorf("%w: %s at byte %d, no torn tail: %w", storage.ErrDamaged, rawwal.Path(dir, s.Index), good, err)
		}
		if err := rawwal.Cut(dir, s.Index, int64(good)); err != nil {
			return fmt.Errorf("cut the torn tail: %w", err)
		}
	}
	// What was read may not have been flushed by the process that wrote it.
	if n := len(segments); n > 0 {
		if err := durable.SyncFile(rawwal.Path(dir, segments[n-1].Index)); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}

// replaySegment takes the records of one segment and tells how many bytes of it are good. errBad: there is no record behind them.
func (l *Log) replaySegment(raw []byte) (good int, err error) {
	for good < len(raw) {
		head, size, err := rawwal.Entry(raw[good:], int64(len(raw)-good))
		if err != nil {
			return good, fmt.Errorf("%w: %w", errBad, err)
		}
		entry := raw[good+head:][:size]
		if err := intact(entry, l.next); err != nil {
			return good, err
		}
		// From here on it is what Save wrote; if it makes no sense, that is not a torn write.
		p, err := decodeParts(entry[recordHead:])
		if err == nil {
			l.content, err = l.content.with(p)
		}
		if err != nil {
			return good, fmt.Errorf("record %d cannot be applied: %v", l.next, err)
		}
		l.next++
		good += head + size
	}
	return good, nil
}

// recordBehind looks for a right record in raw after the bad one with that index, also where the bad one has lost its length.
func recordBehind(raw []byte, index uint64) bool {
	for at := 1; at+recordHead < len(raw); at++ {
		head, size, err := rawwal.Entry(raw[at:], int64(len(raw)-at))
		if err != nil || size < recordHead {
			continue
		}
		entry := raw[at+head:][:size]
		// Most bytes are ruled out by the index, for a checksum at each of them would be slow: no more records follow than there are bytes.
		if got := binary.BigEndian.Uint64(entry[4:]); got > index && got-index < uint64(len(raw)) && intact(entry, got) == nil {
			return true
		}
	}
	return false
}
