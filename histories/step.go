package histories

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
	Enqueue // Value into a queue. Number: the sequence number that the queue gave, −1 none
	Dequeue // Value out of a queue, Nil: it was empty
	Add     // Value to a set; Read then gives a List
	Drain   // everything that is left of a queue, a List
	// Work queues with leases (visibility time-outs).
	Receive // Value was handed out; Number is the lease in ns. Nil: nothing was there
	Ack     // Value is done with: deleted
	Nack    // Value is given back
	Extend  // the lease of Value begins anew; Number is its length in ns
	// Consumer groups; Key names group and partition as "group/partition".
	Commit    // Offset is committed; Value is the metadata that makes it unique, Number the generation
	Committed // Offset was read back, −1 none; Value its metadata
	Assigned  // the member owns the partition from Offset on; Number is the generation
	Revoked   // and no longer
	Delivered // records [Offset, Offset+Number) were given to the member
	Processed // and dealt with
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

func (d *Datum) isZero() bool { return d.Form == Nil }
