package histories

import (
	"fmt"
	"strconv"
)

// Step is one step of an operation on objects: what is done to which object with which value. An operation of one step is a plain operation on
// a register, a queue, a set …; one of several steps is a transaction. Invoke carries what is asked (a read's Value is Nil), OK what was seen.
type Step struct {
	Do    Do
	Key   string // the object; "" where a history has only one
	Value Datum
	Old   Datum // what a CompareAndSet expects
	// Offset is the position in a log that the step's value got or was found at, where the object is a log; −1 unknown.
	Offset int64
	// Number is a further figure that some steps carry; see the constants of Do.
	Number int64
}

// Do is what a step does.
type Do uint8

// What steps do.
const (
	Read          Do = iota // of a register, a key, a list (Value is then a List)
	Write                   // of a register or a key
	CompareAndSet           // writes Value if Old is there; a failed one did not happen
	AppendTo                // puts Value at the end of a list (list-append), of a string (key-value), of a log (Offset)
	Acquire                 // of a mutex
	Release
	Enqueue // Value, unique, into a queue. OK has in Number the sequence number that the queue gave, from 1, else 0 or −1. Old is the deduplication id, Nil: none
	Dequeue // Value out of a queue, Nil: it was empty
	Add     // Value to a set; Read then gives a List
	Drain   // everything that is left of a queue, a List
	// Work queues with leases (visibility time-outs). Key names the queue, or the group of messages within it where order is kept per group. Sent with
	// Enqueue. Times of leases are those of Event.Time.
	//
	// A Receive asks with a Nil Value; its OK has one Receive for every message that was handed out, or one with a Nil Value if none was. The lease
	// runs from some moment between invocation and completion. Ack, Nack and Extend are about the lease that the same Process was given last.
	Receive // Value was handed out; Number is the lease in ns
	Ack     // Value is done with: deleted
	Nack    // Value is given back: the lease ends at once
	Extend  // the lease of Value begins anew, now; Number is its length in ns, in the OK as asked
	// Consumer groups; Key names group and partition as "group/partition". One operation may have steps on several partitions; its OK lists those
	// that went through.
	Commit    // Offset is committed (the next record to be read); Value is metadata that makes the commit unique, Nil: none; Number the generation, from 1, else 0 or −1
	Committed // OK: Offset was read back, −1 none, with Value its metadata
	Assigned  // OK: Process owns the partition and begins at Offset, −1 unknown; Number is the generation. The operation spans the look-up of the committed offset
	Revoked   // OK: Process owns it no longer, and has been given nothing of it since the invocation; Number is the generation
	Delivered // OK: records with offsets in [Offset, Offset+Number) were given to Process, without a gap; a poll over a gap has two steps
	Processed // OK: Process has dealt with [Offset, Offset+Number)
	// Conditional appends to one stream (S2). One operation is one step AppendTo or several: the conditions first, the AppendTo last. All
	// conditions hold and everything happens, or nothing does.
	//
	//   - append: AppendTo with Value the List of the records' hashes; OK has in Offset the tail after it (the next sequence number);
	//   - read of everything: Read; OK has in Value (an Int) the hash of the whole stream, in Offset the tail that it ends at;
	//   - tail: CheckTail; OK has the tail in Offset.
	//
	// Hashes are 64 bits without sign, kept as the int64 of the same bits.
	CheckTail
	ExpectTail  // the tail must be Number
	ExpectToken // the fencing token must be Value, a Text
	SetToken    // the append sets the fencing token to Value, a Text; it is checked against the token before
)

var doNames = [...]string{"read", "write", "cas", "append", "acquire", "release", "enqueue", "dequeue", "add", "drain",
	"receive", "ack", "nack", "extend", "commit", "committed", "assigned", "revoked", "delivered", "processed",
	"check-tail", "expect-tail", "expect-token", "set-token"}

// String gives the name that certificates and exports use.
func (d Do) String() string {
	if int(d) < len(doNames) {
		return doNames[d]
	}
	return "unknown"
}

// Datum is a value of an object. The zero Datum is nothing (Jepsen's nil).
type Datum struct {
	Form Form
	Int  int64
	Text string  // of a Text
	List []int64 // of a List
}

// Form is the form of a Datum.
type Form uint8

// The forms.
const (
	Nil Form = iota
	Int
	Text
	List
)

// IntDatum is the Datum of a number.
func IntDatum(n int64) Datum { return Datum{Form: Int, Int: n} }

// listShown is how many elements at each end of a long list are printed.
const listShown = 16

// String prints the value as certificates quote it: "" for nothing, a number, a quoted text, or a list. A list of more than 32 elements is cut in its middle.
func (d Datum) String() string {
	switch d.Form {
	case Int:
		return strconv.FormatInt(d.Int, 10)
	case Text:
		return strconv.Quote(d.Text)
	case List:
		if n := len(d.List); n > 2*listShown {
			return fmt.Sprintf("%v … %v of %d", d.List[:listShown], d.List[n-listShown:], n)
		}
		return fmt.Sprint(d.List)
	}
	return ""
}

func (d *Datum) isZero() bool { return d.Form == Nil }
