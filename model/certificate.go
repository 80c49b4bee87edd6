package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Certificate proves one anomaly by a few operations of a history. Package verify judges it by the history alone.
type Certificate struct {
	Version   int     `json:"version"`
	Claim     Claim   `json:"claim"`
	Anomaly   Anomaly `json:"anomaly"`
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`           // the offset that it is about, −1 if none
	Object    string  `json:"object,omitempty"` // the object that it is about, where that is no partition; several, separated by commas
	Value     string  `json:"value,omitempty"`  // the value that it is about, where that is no record of a partition
	// WithinNS is the length of time that the promise speaks of: of a deduplication window, or after healing. It is the contract's, not the history's.
	WithinNS int64 `json:"within_ns,omitempty"`
	// Sentence is one English sentence in which each operation plays its part.
	Sentence   string    `json:"sentence"`
	Operations []ProofOp `json:"operations"`
	// Relations say, of transactions, why one comes before another: those of a cycle in their order.
	Relations []Relation `json:"relations,omitempty"`
	// History is the history's file, relative to the folder of the certificate, and Run the id in its header in hexadecimal digits.
	History string `json:"history,omitempty"`
	Run     string `json:"run,omitempty"`
	// Seal is the SHA-256 of everything above. It keeps the prose as it was written; what the fields say is checked against the history.
	Seal string `json:"seal,omitempty"`
}

// ProofOp is one operation of a certificate, as it stands in the history.
type ProofOp struct {
	Role    string `json:"role"`    // its part in the sentence: "write", "reader", …
	Op      uint64 `json:"op"`      // sequence number of the invocation
	Invoked int64  `json:"invoked"` // ns since the start of the run
	Ended   int64  `json:"ended"`   // ns, −1 if never
	EndSeq  uint64 `json:"end_seq"` // sequence number of the completion, 0 if none
	Process int32  `json:"process"`
	What    string `json:"what"`            // "append", "fetch", "end-offset", …
	Text    string `json:"text"`            // one line for people
	Quote   *Quote `json:"quote,omitempty"` // of an operation on a log
	// Steps are those of an operation on objects that the sentence speaks of, as they were answered; as they were asked if there is no answer.
	Steps []QuotedStep `json:"steps,omitempty"`
}

// QuotedStep is one step of an operation on objects. Values are printed as histories.Datum prints them.
type QuotedStep struct {
	Does   string `json:"does"` // "write", "receive", "commit", …
	Object string `json:"object,omitempty"`
	Value  string `json:"value,omitempty"`
	Old    string `json:"old,omitempty"` // what a cas expected; the deduplication id of what was enqueued
	Offset int64  `json:"offset"`
	Number int64  `json:"number"`
}

// Relation says that one transaction comes before another, and why.
type Relation struct {
	From   string `json:"from"` // role
	To     string `json:"to"`   // role
	Kind   string `json:"kind"` // "ww", "wr", "rw", "process" or "realtime"
	Object string `json:"object,omitempty"`
	Value  int64  `json:"value,omitempty"` // ww: what To wrote behind what From had written; wr: what To read and From had written; rw: what From did not read and To wrote
}

// Quote is what the history says of one operation on a log.
type Quote struct {
	Outcome       string `json:"outcome"` // "ok", "fail", "info", or "invoke" if it never ended
	Partition     int32  `json:"partition"`
	Node          int32  `json:"node"`    // the broker that answered or was asked, 0 unknown
	Session       int32  `json:"session"` // of a fetch
	Code          int16  `json:"code"`
	Epoch         int32  `json:"epoch"`          // leader epoch of the answer, −1 unknown
	Offset        int64  `json:"offset"`         // append: of the first record, −1 unknown; read: asked from; else the answer
	HighWatermark int64  `json:"high_watermark"` // −1 unknown
	Next          int64  `json:"next"`           // read: the position after the reply; else −1
	// Records are those that it wrote or returned and that the sentence speaks of.
	Records []QuotedRecord `json:"records,omitempty"`
}

// QuotedRecord is one record that an operation wrote or returned.
type QuotedRecord struct {
	Offset   int64  `json:"offset"` // −1: written, and not told where
	Producer int32  `json:"producer"`
	Sequence int64  `json:"sequence"`
	Defect   string `json:"defect,omitempty"` // "corrupt" or "foreign"
}

// Bind says which history the certificate is about, and seals it.
func (c *Certificate) Bind(history string, run uint64) {
	c.History, c.Run = history, fmt.Sprintf("%016x", run)
	c.Seal = c.Sum()
}

// Sum is what Seal has to be.
func (c Certificate) Sum() string {
	c.Seal = ""
	raw, err := json.Marshal(c)
	if err != nil { // strings and integers always encode
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
