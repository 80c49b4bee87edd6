package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/internal/window"
)

// Endings of the names of a segment's files, which are its base offset in 20 digits (Kafka: LogFileUtils).
const (
	logSuffix   = ".log"
	indexSuffix = ".index"
	timeSuffix  = ".timeindex"
	nameDigits  = 20
)

func fileName(base int64, suffix string) string {
	return fmt.Sprintf("%0*d%s", nameDigits, base, suffix)
}

// baseOf reads the base offset from a name; ok is false if it is not the name of such a file.
func baseOf(name, suffix string) (base int64, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != nameDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err == nil
}

// summary is what is known about a segment without its files; the clean-shutdown marker holds it.
type summary struct {
	Base     int64  `json:"base"`     // first offset; names the files
	End      int64  `json:"end"`      // offset behind the last batch
	Bytes    int64  `json:"bytes"`    // of whole batches: readers look no further
	Largest  int64  `json:"largest"`  // largest timestamp ...
	Holder   int64  `json:"holder"`   // ... and the last offset of the first batch that has it
	IndexSum uint32 `json:"indexsum"` // index.sum of the files; of a closed segment only
}

// part is one segment. A cut makes a new one, so that its fields only grow.
type part struct {
	summary
	index *index  // nil while it is only on disk; of the segment that is appended to always there, once something was
	file  *handle // nil while it is not open for reading
}

func newPart(base int64) *part {
	return &part{summary: summary{Base: base, End: base, Largest: math.MinInt64, Holder: base}, index: new(index)}
}

// add takes in the next batch.
func (p *part) add(h record.Header, interval int64) {
	if h.MaxTimestamp > p.Largest {
		p.Largest, p.Holder = h.MaxTimestamp, h.LastOffset()
	}
	p.index.add(p.Base, h, p.Bytes, interval, p.Largest, p.Holder)
	p.Bytes += int64(h.Length)
	p.End = h.NextOffset()
}

// seal ends the index of a segment that gets no more batches: the last time entry says what the largest timestamp of all is, as in Kafka.
func (p *part) seal() {
	if p.Bytes > 0 {
		p.index.addTime(p.Base, p.Largest, p.Holder)
	}
	p.IndexSum = p.index.sum()
}

// epochs says which leader epoch each batch has: that of the last line that starts at or below it.
type epochs []storage.EpochStart

// last is the epoch of the newest batch; ok is false if there is no line.
func (e epochs) last() (epoch int32, ok bool) {
	if len(e) == 0 {
		return 0, false
	}
	return e[len(e)-1].Epoch, true
}

// within drops the lines that concern no batch of [start, end).
func (e epochs) within(start, end int64) epochs {
	for len(e) > 0 && e[len(e)-1].Start >= end {
		e = e[:len(e)-1]
	}
	for len(e) > 1 && e[1].Start <= start {
		e = e[1:]
	}
	return e
}

// errBad: a batch is not what must be there. Whether that is a torn tail or damage depends on where it is.
var errBad = errors.New("bad batch")

// walker checks batches one behind the other.
type walker struct {
	verify   bool   // checksums too
	epochs   epochs // nil: any
	interval int64  // of the index
}

// walk reads batches from the start of a segment file up to limit and gives the segment that they make. At the first bad one it stops: the segment then
// ends before it, and the error is errBad. Other errors come from the file. A batch's checksum covers neither its base offset nor its leader epoch; both must
// be what those before it, and the list of epochs, make them.
func (w walker) walk(file io.ReaderAt, base, limit int64) (*part, error) {
	p := newPart(base)
	c := cursor{window: window.Window{File: file, Limit: limit}, next: base}
	if w.verify {
		c.window.Widen()
	}
	lines := w.epochs
	for {
		pos := c.pos
		h, err := c.header()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if w.epochs != nil {
			for len(lines) > 1 && lines[1].Start <= h.BaseOffset {
				lines = lines[1:]
			}
			if len(lines) == 0 || h.LeaderEpoch != lines[0].Epoch {
				return p, fmt.Errorf("%w: leader epoch %d at offset %d, expected one of %v", errBad, h.LeaderEpoch, h.BaseOffset, w.epochs)
			}
		}
		if w.verify && !fault.On(fault.TornTailAccepted) {
			if err := c.check(pos, h); err != nil {
				return p, err
			}
		}
		p.add(h, w.interval)
	}
}

// handle is a file open for reading that is closed when nobody uses it any more: readers may still send from a file that has been cut or removed.
type handle struct {
	file files.Reader
	refs atomic.Int32
}

// retain is called while a reference is known to exist.
func (h *handle) retain() *handle {
	h.refs.Add(1)
	return h
}

func (h *handle) release() {
	if h.refs.Add(-1) == 0 {
		_ = h.file.Close() // read-only: nothing can be lost
	}
}

// path is a file of a segment.
func (l *Log) path(base int64, suffix string) string { return path.Join(l.dir, fileName(base, suffix)) }
