package model

import (
	"encoding/binary"
	"fmt"

	"github.com/anishathalye/porcupine"
	"github.com/zeebo/xxh3"
)

// StreamVerb is what a call does to a stream.
type StreamVerb uint8

// The verbs of a stream.
const (
	StreamAppend StreamVerb = iota // adds a batch of records
	StreamRead                     // reads everything from 0 to the tail
	StreamTail                     // asks for the tail
)

// StreamCall is an operation on a stream as S2 offers it: an append-only sequence of records with conditional appends.
type StreamCall struct {
	Verb StreamVerb
	// Tail: the sequence number behind the last record, as the answer gave it; it counts the records of the append itself.
	Tail int64
	// Hash is the StreamHash of the whole stream that a read returned.
	Hash uint64
	// Records are the hashes of the records that an append adds.
	Records []uint64
	// Token, if not nil, has to be the stream's fencing token, or the append is refused. A stream has none at first.
	Token *string
	// SetToken, if not nil, becomes the stream's fencing token with this append. The command is a record like others.
	SetToken *string
	// Match, if not nil, has to be the tail before the append, or it is refused (match_seq_num).
	Match *int64
	// Unknown: the append may or may not have taken effect.
	Unknown bool
}

// StreamHash folds the hash of one more record into that of a stream; an empty stream has 0. It is xxh3-64 of the record's hash as eight little-endian
// bytes, seeded with the hash so far.
func StreamHash(stream, record uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], record)
	return xxh3.HashSeed(b[:], stream)
}

type stream struct {
	tail   int64
	hash   uint64
	fenced bool
	token  string
}

// Stream is the sequential specification of a stream with fencing token and match_seq_num. Appends that were certainly refused are no
// operations: a refusal may have had reasons that the model does not know. One of unknown outcome leads to two states where its conditions hold.
func Stream() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{stream{}} },
		Step: func(state, input, _ any) []any {
			s, call := state.(stream), input.(StreamCall)
			next, ok := call.apply(s)
			switch {
			case call.Unknown && ok:
				return []any{state, next}
			case call.Unknown:
				return []any{state}
			case ok:
				return []any{next}
			}
			return nil
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string { return input.(StreamCall).String() },
		DescribeState: func(state any) string {
			s := state.(stream)
			text := fmt.Sprintf("tail %d", s.tail)
			if s.fenced {
				text += fmt.Sprintf(", token %q", s.token)
			}
			return text
		},
	}
	return m.ToModel()
}

// apply gives the stream after the call; false if it cannot happen, or cannot have had the answer it had.
func (c StreamCall) apply(s stream) (stream, bool) {
	switch c.Verb {
	case StreamRead:
		return s, c.Tail == s.tail && c.Hash == s.hash
	case StreamTail:
		return s, c.Tail == s.tail
	}
	if c.Token != nil && (!s.fenced || s.token != *c.Token) || c.Match != nil && *c.Match != s.tail {
		return s, false
	}
	s.tail += int64(len(c.Records))
	if !c.Unknown && c.Tail != s.tail { // before the records are hashed: most wrong guesses end here
		return s, false
	}
	for _, r := range c.Records {
		s.hash = StreamHash(s.hash, r)
	}
	if c.SetToken != nil {
		s.fenced, s.token = true, *c.SetToken
	}
	return s, true
}

// String prints the call for people.
func (c StreamCall) String() string {
	switch c.Verb {
	case StreamRead:
		return fmt.Sprintf("read up to tail %d with hash %016x", c.Tail, c.Hash)
	case StreamTail:
		return fmt.Sprintf("check-tail that found %d", c.Tail)
	}
	text := fmt.Sprintf("append of %d records", len(c.Records))
	if len(c.Records) == 1 {
		text = "append of one record"
	}
	if c.Token != nil {
		text += fmt.Sprintf(" under token %q", *c.Token)
	}
	if c.SetToken != nil {
		text += fmt.Sprintf(" setting token %q", *c.SetToken)
	}
	if c.Match != nil {
		text += fmt.Sprintf(" at %d", *c.Match)
	}
	if c.Unknown {
		return text + " (unknown outcome)"
	}
	return text + fmt.Sprintf(" that made the tail %d", c.Tail)
}
