package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/segment"
	"ackproof/sim/disk"
)

// Run is what is done with a log, one call after the other.
type Run []step

// Of a store's options, so that a short run has many segments and index entries.
const (
	logDir       = "/data/topic-0"
	segmentBytes = 700
	indexBytes   = 200
)

// step is one call on the log. While it is under way the log is as before or as after. A cut is one or the other; anything else may also stop half-way.
type step struct {
	name string
	cut  bool
	do   func(*player) error
	next func(model, storage.Bounds) model // bounds: of the log after the step
}

// player is a run under way.
type player struct {
	disk *disk.Disk
	log  storage.Log
}

func (p *player) open() error {
	l, err := segment.Open(logDir, segment.Options{FS: p.disk.Mount(), SegmentBytes: segmentBytes, IndexBytes: indexBytes})
	if err != nil {
		return err
	}
	p.log = l
	return nil
}

func open() step {
	return step{name: "open", do: (*player).open, next: func(m model, _ storage.Bounds) model { m.durable = m.end(); return m }}
}

func closed(clean bool) step {
	return step{name: fmt.Sprintf("close, clean %t", clean), do: func(p *player) error { return p.log.Close(clean) }, next: func(m model, _ storage.Bounds) model {
		if clean {
			m.durable = m.end()
		}
		return m
	}}
}

func appended(n, each int, epoch int32, bytes int) step {
	batches := func(end int64) []record.Batch { return sample.Batches(end, n, each, epoch, bytes) }
	return step{
		name: fmt.Sprintf("append %d batches of epoch %d", n, epoch),
		do:   func(p *player) error { return p.log.Append(batches(p.log.Bounds().End), false) },
		next: func(m model, _ storage.Bounds) model {
			m.batches = slices.Concat(m.batches, batches(m.end()))
			return m
		},
	}
}

func flushed() step {
	return step{name: "flush", do: func(p *player) error { return p.log.Flush() }, next: func(m model, _ storage.Bounds) model { m.durable = m.end(); return m }}
}

// checkpoint makes one that tells which step it is of.
func checkpoint(id int, start, hw int64) storage.Checkpoint {
	return storage.Checkpoint{LogStart: start, HighWatermark: hw, Producers: []byte(strconv.Itoa(id)), ProducersAt: start}
}

func saved(id int) step {
	cp := func(b storage.Bounds) storage.Checkpoint { return checkpoint(id, b.Start, (b.Start+b.End)/2) }
	return step{
		name: "save",
		do:   func(p *player) error { return p.log.Save(cp(p.log.Bounds())) },
		next: func(m model, b storage.Bounds) model { m.checkpoint = cp(b); return m },
	}
}

// truncated cuts the last `back` offsets off.
func truncated(id int, back int64) step {
	to := func(b storage.Bounds) int64 { return max(b.Start, b.End-back) }
	cp := func(b storage.Bounds) storage.Checkpoint { return checkpoint(id, b.Start, b.Start) }
	return step{
		name: fmt.Sprintf("truncate %d offsets", back),
		cut:  true,
		do: func(p *player) error {
			b := p.log.Bounds()
			return p.log.Truncate(to(b), cp(b))
		},
		next: func(m model, b storage.Bounds) model {
			m.batches = slices.DeleteFunc(slices.Clone(m.batches), func(x record.Batch) bool { return x.NextOffset() > max(m.start, m.end()-back) })
			m.checkpoint, m.durable = cp(b), m.end()
			return m
		},
	}
}

func trimmed(id int, keep int64) step {
	cp := func(b storage.Bounds) storage.Checkpoint {
		at := max(b.Start, b.End-keep)
		return checkpoint(id, at, at)
	}
	var given storage.Checkpoint
	return step{
		name: fmt.Sprintf("trim to the last %d offsets", keep),
		cut:  true,
		do: func(p *player) error {
			given = cp(p.log.Bounds())
			return p.log.Trim(given)
		},
		next: func(m model, b storage.Bounds) model {
			m.batches = slices.DeleteFunc(slices.Clone(m.batches), func(x record.Batch) bool { return x.BaseOffset < b.Start })
			m.start, m.checkpoint = b.Start, given
			if b.Durable > m.durable {
				m.durable = b.Durable
			}
			return m
		},
	}
}

func reset(id int, start int64) step {
	cp := checkpoint(id, start, start)
	return step{
		name: fmt.Sprintf("reset to %d", start),
		cut:  true,
		do:   func(p *player) error { return p.log.Reset(start, cp) },
		next: func(model, storage.Bounds) model { return model{start: start, durable: start, checkpoint: cp} },
	}
}

// Written is a run that has one of everything, in the neighbourhoods that matter.
func Written() Run {
	return Run{
		open(), appended(2, 2, 1, 60), flushed(), appended(5, 2, 1, 80), saved(1), appended(2, 1, 2, 50), flushed(), appended(3, 2, 3, 120),
		truncated(2, 5), appended(2, 2, 4, 90), flushed(), truncated(3, 1000), appended(8, 2, 5, 100), saved(4), flushed(), appended(1, 1, 5, 900),
		trimmed(5, 9), appended(2, 3, 6, 40), closed(true), open(), appended(3, 1, 6, 70), closed(false), open(), truncated(6, 3), appended(2, 2, 7, 60),
		trimmed(7, 0), appended(4, 2, 7, 100), flushed(), reset(8, 500), appended(4, 2, 8, 100), flushed(), appended(2, 2, 9, 30), closed(true),
	}
}

// Random draws a run.
func Random(r *rand.Rand) Run {
	steps := Run{open()}
	epoch := int32(1)
	isOpen := true
	for id := range 6 + r.IntN(14) {
		if !isOpen {
			steps, isOpen = append(steps, open()), true
			continue
		}
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			epoch += int32(r.IntN(2))
			steps = append(steps, appended(1+r.IntN(6), 1+r.IntN(3), epoch, []int{10, 100, 250, 900}[r.IntN(4)]))
		case 4, 5:
			steps = append(steps, flushed())
		case 6:
			steps = append(steps, saved(id))
		case 7:
			steps = append(steps, truncated(id, int64(r.IntN(12))))
		case 8:
			if r.IntN(3) == 0 {
				steps = append(steps, reset(id, int64(r.IntN(100))))
			} else {
				steps = append(steps, trimmed(id, int64(r.IntN(12))))
			}
		case 9:
			steps, isOpen = append(steps, closed(r.IntN(2) == 0)), false
		}
	}
	return steps
}

// play runs the steps until one fails. It gives the model before and after the step that failed; both are the last one if none did.
func (p *player) play(steps Run, after []storage.Bounds) (before, next model, failed *step, err error) {
	for i := range steps {
		s := &steps[i]
		err := s.do(p)
		if err == nil && after != nil && !strings.HasPrefix(s.name, "close") && p.log.Bounds() != after[i] {
			return before, next, s, fmt.Errorf("bounds %+v after %s, expected %+v", p.log.Bounds(), s.name, after[i])
		}
		b := storage.Bounds{}
		if p.log != nil {
			b = p.log.Bounds()
		}
		if err != nil && after != nil {
			b = after[i]
		}
		next = s.next(before, b)
		if err != nil {
			return before, next, s, err
		}
		before = next
	}
	return before, before, nil, nil
}

// whole plays the run without a crash: the log's bounds after each step, and how many changes the disk has seen.
func (run Run) whole() (after []storage.Bounds, changes int, err error) {
	p := &player{disk: disk.New()}
	for i := range run {
		if _, _, s, err := p.play(run[i:i+1], nil); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", s.name, err)
		}
		after = append(after, p.log.Bounds())
	}
	return after, p.disk.Changes(), nil
}
