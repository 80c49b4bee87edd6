package log

import "sync/atomic"

// Counters are what the run knows of its partitions while it goes on: for triggers of faults and the progress line. Safe for concurrent use.
type Counters struct {
	acked []atomic.Int64
}

// NewCounters counts for that many partitions.
func NewCounters(partitions int) *Counters {
	return &Counters{acked: make([]atomic.Int64, partitions)}
}

// Ack counts acknowledged records.
func (c *Counters) Ack(partition int32, records int) { c.acked[partition].Add(int64(records)) }

// Acked is the number of records of the partition that were acknowledged so far; 0 for a partition that there is not.
func (c *Counters) Acked(partition int32) int64 {
	if partition < 0 || int(partition) >= len(c.acked) {
		return 0
	}
	return c.acked[partition].Load()
}

// Total is the number of acknowledged records of all partitions.
func (c *Counters) Total() int64 {
	var n int64
	for i := range c.acked {
		n += c.acked[i].Load()
	}
	return n
}
