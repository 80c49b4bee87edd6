package histories

import (
	"errors"
	"fmt"
)

// ErrMalformed is the class of all errors about a history that cannot be judged: a damaged file, or events that contradict each other.
// It is never a verdict; the command line answers it with exit code 254.
var ErrMalformed = errors.New("malformed history")

// FormatError says where a file leaves the native format. It is an ErrMalformed.
type FormatError struct {
	Offset int64  // byte in the file at which the header or block begins
	What   string // what is there, and what was expected
}

// Error names byte and expectation.
func (e *FormatError) Error() string { return fmt.Sprintf("history: byte %d: %s", e.Offset, e.What) }

// Unwrap makes it an ErrMalformed.
func (e *FormatError) Unwrap() error { return ErrMalformed }

// EventError says which event contradicts the others. It is an ErrMalformed.
type EventError struct {
	Seq  uint64
	What string
}

// Error names event and expectation.
func (e *EventError) Error() string { return fmt.Sprintf("history: event %d: %s", e.Seq, e.What) }

// Unwrap makes it an ErrMalformed.
func (e *EventError) Unwrap() error { return ErrMalformed }
