// Package histories holds what a test saw: events, the recorder that stamps them, and the formats in which they are kept.
// It knows nothing of checkers, contracts or systems. Start reading at Event.
package histories

import (
	"strconv"
	"time"
)

// Type is the part of an operation that an event records.
type Type uint8

// The types of an event. Every operation has one Invoke and, unless its client died, one of the other three.
const (
	Invoke Type = iota
	OK          // it took effect, and the result is in the event
	Fail        // it provably did not take effect
	Info        // it may or may not have taken effect
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operations on a log, and the two kinds of events that are not operations.
const (
	// Append sends records. Invoke carries Runs without offsets; OK carries Offset, the base offset of the first record,
	// or −1 where the system acknowledges without a position.
	Append Kind = iota
	// Fetch reads from Offset. OK carries Runs (none: the read was empty) and HighWatermark, −1 if unknown.
	// Session tells reads of one assignment apart: position and monotonicity are promised within one session only; a seek begins a new one.
	// Records below Offset, which a broker sends along with a batch, are dropped by the client. An Invoke with a Node asks for that node's copy (KIP-392).
	Fetch
	// EndOffset asks for the visible end; OK carries it in Offset and the leader's epoch in LeaderEpoch (−1 unknown).
	EndOffset
	// StartOffset asks for the first readable offset; OK as with EndOffset.
	StartOffset
	// CopyRead is a read of the drain that was served by one named copy (Node) of the partition; otherwise as Fetch.
	// It reads below the visible end, after healing.
	CopyRead
	// CopyEnd is the end of one copy as the drain found it: Offset is the copy's log end, HighWatermark its visible end.
	CopyEnd
	// Object is an operation on objects other than a partitioned log, or a transaction over several: its Steps say what. Of the other fields only
	// Process, Node, Code, Pipelined and Note have a meaning.
	Object
	// Fault is a step of the nemesis; Note says which fault and what was seen. Offset is the fault's index in the schedule.
	Fault
	// Phase marks the run's phases; Note is the name: "load", "heal", "drain", "end".
	Phase
)

// Run is a stretch of records with consecutive offsets whose values are consecutive sequence numbers of one producer.
// In Append events the offset is unknown and 0. A negative Producer is nobody in particular: its sequence numbers name values and say nothing
// of the order of sending (KeyProducer).
type Run struct {
	Offset   int64
	Producer int32
	Sequence int64
	Count    int32
	Defect   Defect
}

// Defect says what is wrong with a value that was read.
type Defect uint8

// The defects.
const (
	Sound   Defect = iota
	Corrupt        // the checksum inside the value is wrong, or the value is not of our making
	Foreign        // sound, but of another run, topic or partition: Producer and Sequence are what the value says
)

// Event is one line of a history. Fields that a kind does not use are zero.
type Event struct {
	Seq     uint64        // position in the journal, from 1; the real-time order of the run
	Time    time.Duration // monotonic, since the start of the run; for people, never for order
	Type    Type
	Kind    Kind
	Op      uint64 // Seq of the operation's Invoke; in the Invoke itself equal to Seq
	Process int32  // logical client; a client that left an operation open goes on under a new number
	// Session is the assignment that a Fetch belongs to, unique over the run.
	Session       int32
	Partition     int32
	Node          int32 // broker that was asked, 0 if unknown
	Offset        int64
	HighWatermark int64
	LeaderEpoch   int32
	Code          int16 // Kafka's error code of a Fail or Info, 0 for none; NoAnswer for a lost connection or a time-out
	// Pipelined, in an Invoke: the process may have other operations open at the same time. Without it one process has at most one.
	Pipelined bool
	Runs      []Run
	Steps     []Step // of an Object
	Note      string
}

// NoAnswer is the Code of an operation that ended without an answer from the broker.
const NoAnswer int16 = -1000

// IsOperation tells operations of clients, which have an invocation and at most one completion, from marks, which stand alone.
func (k Kind) IsOperation() bool { return k < Fault }

// IsRead tells whether the operation returns records.
func (k Kind) IsRead() bool { return k == Fetch || k == CopyRead }

var kindNames = [...]string{"append", "fetch", "end-offset", "start-offset", "copy-read", "copy-end", "object", "fault", "phase"}

// String gives the name that certificates and exports use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind-" + strconv.Itoa(int(k))
}

var typeNames = [...]string{"invoke", "ok", "fail", "info"}

// String gives Jepsen's name of the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type-" + strconv.Itoa(int(t))
}

var defectNames = [...]string{"sound", "corrupt", "foreign"}

// String names the defect.
func (d Defect) String() string {
	if int(d) < len(defectNames) {
		return defectNames[d]
	}
	return "defect-" + strconv.Itoa(int(d))
}
