package log

import (
	"hash/fnv"
	"time"
)

// Breaths are short pauses in which a whole partition comes to rest: producers first, then, when readers have had time to reach the end,
// readers too. At such a moment nothing is open, so that a history can be cut there into windows small enough for a search (porcupine).
// They follow from the clock and the seed alone, hence clients agree on them without talking to each other.
type Breaths struct {
	Seed   int64
	Period time.Duration // one breath in each period, at a moment drawn from the seed; 0: none
	Length time.Duration
}

// rest is how long a worker of the partition should wait before its next operation, 0 if it may go on.
func (b Breaths) rest(partition int32, reader bool, now time.Duration) time.Duration {
	if b.Period <= 0 || now < 0 {
		return 0
	}
	round := now / b.Period
	h := fnv.New64a()
	for _, v := range []int64{b.Seed, int64(partition), int64(round)} {
		for s := 0; s < 64; s += 8 {
			h.Write([]byte{byte(v >> s)})
		}
	}
	begin := round*b.Period + time.Duration(h.Sum64()%uint64(b.Period-b.Length))
	end := begin + b.Length
	if reader {
		begin += b.Length / 2
	}
	if now < begin || now >= end {
		return 0
	}
	return end - now
}

// Resting tells whether producers of the partition are in a breath.
func (b Breaths) Resting(partition int32, now time.Duration) bool {
	return b.rest(partition, false, now) > 0
}
