package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"io"
)

// The columns in which operations are packed, in the order of their completion; operations that never ended come last. Each is a stream of varints,
// deflated. Differences are against the operation before in the column's own terms, so that most numbers are small and much alike.
const (
	colEnd       = iota // time of the end, µs, difference
	colTook             // µs from invocation to end
	colEndSeq           // number of the completing event, difference; 0 for an operation that never ended
	colOpSeq            // how many events before the end it was invoked; for one that never ended the number itself
	colProcess          // index of the process
	colKind             // kind × 4 + outcome
	colPartition        // number of the partition
	colOffset           // zigzag, difference to the highest offset of the partition so far; see offsetColumn
	colCount            // records that it wrote or returned
	colNode             // node that was asked or answered
	colRemark           // index of a remark (error code or note), 0 for none
	columnCount
)

// columnNames are the ids by which the script finds the columns.
var columnNames = [columnCount]string{"end", "took", "endSeq", "opSeq", "process", "kind", "partition", "offset", "count", "node", "remark"}

// column is one of them while it is written.
type column struct {
	buf bytes.Buffer
	z   *flate.Writer
	tmp [binary.MaxVarintLen64]byte
}

// columns packs operations.
type columns struct {
	n      int
	all    [columnCount]column
	end    int64
	endSeq uint64
	high   map[int32]int64 // highest offset of each partition
}

func newColumns() *columns {
	c := &columns{high: make(map[int32]int64)}
	for i := range c.all {
		// Differences are noise for the most part: looking for more repetitions takes six times as long and saves a twentieth. The level is one that flate knows.
		c.all[i].z, _ = flate.NewWriter(&c.all[i].buf, flate.BestSpeed)
	}
	return c
}

func (c *columns) put(col int, v uint64) {
	k := &c.all[col]
	n := binary.PutUvarint(k.tmp[:], v)
	k.z.Write(k.tmp[:n]) // into memory: it cannot fail
}

// row is one operation as it is packed.
type row struct {
	end, took int64 // µs
	op        uint64
	endSeq    uint64 // 0: it never ended
	process   int
	kind      uint64
	partition int32
	offset    int64 // −1: none
	count     int64
	node      int32
	remark    int
}

func (c *columns) add(r row) {
	c.n++
	c.put(colEnd, uint64(max(0, r.end-c.end)))
	c.end = max(c.end, r.end)
	c.put(colTook, uint64(max(0, r.took)))
	if r.endSeq == 0 {
		c.put(colEndSeq, 0)
		c.put(colOpSeq, r.op)
	} else {
		c.put(colEndSeq, r.endSeq-c.endSeq)
		c.put(colOpSeq, r.endSeq-r.op)
		c.endSeq = r.endSeq
	}
	c.put(colProcess, uint64(r.process))
	c.put(colKind, r.kind)
	c.put(colPartition, uint64(uint32(r.partition)))
	c.put(colOffset, c.offset(r))
	c.put(colCount, uint64(r.count))
	c.put(colNode, uint64(uint32(r.node)))
	c.put(colRemark, uint64(r.remark))
}

// offset is 0 for none, else one more than the zigzag of the difference to the highest offset of the partition.
func (c *columns) offset(r row) uint64 {
	if r.offset < 0 {
		return 0
	}
	d := r.offset - c.high[r.partition]
	c.high[r.partition] = max(c.high[r.partition], r.offset+r.count)
	return uint64(d<<1^d>>63) + 1
}

// close ends the streams and returns their size in bytes.
func (c *columns) close() (size int) {
	for i := range c.all {
		c.all[i].z.Close()
		size += c.all[i].buf.Len()
	}
	return size
}

// write puts the columns into the page, one data element each. Base64 needs no escaping.
func (c *columns) write(w io.Writer) error {
	for i := range c.all {
		if _, err := io.WriteString(w, `<script type="application/octet-stream" id="col-`+columnNames[i]+`">`); err != nil {
			return err
		}
		if err := writeBase64(w, c.all[i].buf.Bytes()); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "</script>\n"); err != nil {
			return err
		}
	}
	return nil
}

func writeBase64(w io.Writer, b []byte) error {
	enc := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := enc.Write(b); err != nil {
		return err
	}
	return enc.Close()
}
