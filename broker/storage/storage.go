// Package storage says what a partition replica needs of a disk: the Log interface, the checkpoint that moves with a log,
// and the readable run of batches that a fetch sends. Implementations: `wal` (tidwall/wal behind a strict wrapper),
// `segment` (Kafka's own layout, over the small file interface of `files`) and `memlog` (memory, for tests and simulation); `storagetest` is the
// conformance suite that all pass.
//
// It knows batches and offsets, nothing of leaders, replicas or topics. Start reading at Log.
package storage

import (
	"errors"
	"io"

	"ackproof/broker/record"
)

// Errors of a Log; test with errors.Is.
var (
	// ErrDead: an earlier write or flush failed, so the handle refuses everything (S3). Close it, repair, open again.
	ErrDead = errors.New("log handle is dead after a failed write or flush")
	// ErrDamaged: damage below the recovery point, that is bit rot and not a torn tail. Nothing was cut; the replica is to
	// be rebuilt from the others (R23).
	ErrDamaged = errors.New("log is damaged below its recovery point")
	// ErrLocked: another process has the folder open.
	ErrLocked = errors.New("log folder is locked by another process")
	// ErrOutOfRange: an offset outside of [start, end).
	ErrOutOfRange = errors.New("offset out of range")
	// ErrOutOfOrder: an appended batch does not begin at the log's end (R13). The log is unchanged and alive.
	ErrOutOfOrder = errors.New("batch does not begin at the log end")
)

// EpochStart is one line of the leader epoch history: the first offset of an epoch (KIP-101).
type EpochStart struct {
	Epoch int32 `json:"epoch"`
	Start int64 `json:"start"`
}

// Checkpoint is the state that is not in the batches but moves with them (S6). It is replaced as a whole, atomically and
// durably, by the calls of Log that take one.
type Checkpoint struct {
	LogStart      int64        `json:"log_start"`      // first offset that may be read (DeleteRecords may put it inside a batch)
	HighWatermark int64        `json:"high_watermark"` // last known; a lower bound after a crash
	Epochs        []EpochStart `json:"epochs"`         // ascending in epoch and start
	Producers     []byte       `json:"producers"`      // opaque snapshot of producer state ...
	ProducersAt   int64        `json:"producers_at"`   // ... that covers every batch below this offset
}

// Within gives the checkpoint that is true for a log with these bounds, after a crash that took unflushed batches away (R22): log start ≤ high
// watermark ≤ end, no epoch that starts behind the end, and no producer state of batches that are gone. An implementation applies it when it opens a log.
func (c Checkpoint) Within(b Bounds) Checkpoint {
	c.LogStart = min(max(c.LogStart, b.Start), b.End)
	c.HighWatermark = min(max(c.HighWatermark, c.LogStart), b.End)
	for len(c.Epochs) > 0 && c.Epochs[len(c.Epochs)-1].Start > b.End {
		c.Epochs = c.Epochs[:len(c.Epochs)-1]
	}
	if c.ProducersAt > b.End {
		c.Producers, c.ProducersAt = nil, b.Start
	}
	return c
}

// Bounds are the three offsets of a log: Start ≤ Durable ≤ End.
type Bounds struct {
	Start   int64 // first offset kept (≤ Checkpoint.LogStart, since only whole segments go)
	Durable int64 // everything below has been flushed
	End     int64 // offset that the next batch gets
}

// Log is one partition's batches in offset order.
//
// Append, Flush, Truncate, Trim, Reset, Save and Close are called by one goroutine at a time; Read, Headers, OffsetAt and
// Bounds may be called at any time, also during those (S7). After any failed write or flush every later call but Close fails with
// ErrDead (S3).
type Log interface {
	// Bounds tells the three offsets.
	Bounds() Bounds
	// Checkpoint is the last one saved, as found by open or given since.
	Checkpoint() Checkpoint
	// Append adds batches; the first must begin at Bounds().End and each at the end of the one before (ErrOutOfOrder
	// otherwise, nothing is then appended). keep tells that the bytes stay as they are for as long as the batch is retained, so that the log may serve recent reads
	// from them. Not durable until Flush.
	Append(batches []record.Batch, keep bool) error
	// Flush makes everything appended durable.
	Flush() error
	// Read gives whole batches, from the one that holds `from` up to the last one that ends at or below `to`, about max bytes of them but at
	// least one batch if there is one (KIP-74). An empty run if from = to or nothing fits below `to`; ErrOutOfRange if from is outside of [Start, End].
	// The caller must Release what it got.
	Read(from, to int64, max int) (Records, error)
	// Headers calls visit for each batch from the one that holds `from` to the end, in order, until visit fails. ErrOutOfRange if from is outside of
	// [Start, End], or if a truncation overtakes it.
	Headers(from int64, visit func(record.Header) error) error
	// OffsetAt finds the first batch that ends above the checkpoint's LogStart and whose largest timestamp is ≥ ts (ms); ok is false if there is none.
	OffsetAt(ts int64) (h record.Header, ok bool, err error)
	// Truncate removes every batch that ends above `to` (its last offset ≥ to) and saves cp, both or neither, also across a crash (S6). Durable on return.
	// If `to` lies inside a batch, the log then ends where that batch began. A `to` below Bounds().Start is ErrOutOfRange: see Reset.
	Truncate(to int64, cp Checkpoint) error
	// Trim saves cp, whose LogStart has risen, and removes segments that lie wholly below it. Durable on return. ErrOutOfRange if LogStart is outside of [Start, End].
	Trim(cp Checkpoint) error
	// Reset removes everything; the next batch begins at start (≥ 0). cp is saved with it. Durable on return.
	Reset(start int64, cp Checkpoint) error
	// Save replaces the checkpoint durably.
	Save(cp Checkpoint) error
	// Close releases everything. clean writes the marker that lets the next open skip the walk of checksums (R23);
	// it flushes first and fails if that fails.
	Close(clean bool) error
}

// Records is a run of whole batches, in memory or in files. The zero value is an empty run.
type Records struct {
	chunks  []Chunk
	bytes   int
	release func()
}

// Chunk is a part of a run: bytes in memory, or Length bytes of File from Offset.
type Chunk struct {
	Memory []byte
	File   io.ReaderAt // an *os.File where sendfile shall work; nil for memory
	Offset int64
	Length int
}

// NewRecords makes a run; release (may be nil) is called once the run has been used.
func NewRecords(chunks []Chunk, release func()) Records {
	n := 0
	for _, c := range chunks {
		if c.File != nil {
			n += c.Length
		} else {
			n += len(c.Memory)
		}
	}
	return Records{chunks: chunks, bytes: n, release: release}
}

// Len is the size of the run in bytes.
func (r Records) Len() int { return r.bytes }

// Chunks are the parts in order, for a writer that uses writev or sendfile.
func (r Records) Chunks() []Chunk { return r.chunks }

// Release gives the run's resources back. The run must not be used after it.
func (r Records) Release() {
	if r.release != nil {
		r.release()
	}
}

// Bytes copies the run into memory.
func (r Records) Bytes() ([]byte, error) {
	out := make([]byte, 0, r.bytes)
	for _, c := range r.chunks {
		if c.File == nil {
			out = append(out, c.Memory...)
			continue
		}
		at := len(out)
		out = out[:at+c.Length]
		if _, err := c.File.ReadAt(out[at:], c.Offset); err != nil {
			return nil, err
		}
	}
	return out, nil
}
