package crash

import (
	"fmt"
	"reflect"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
	"ackproof/sim/disk"
)

// model is what a log must hold: everything below durable for certain, and of what follows any beginning.
type model struct {
	start, durable int64
	batches        []record.Batch
	checkpoint     storage.Checkpoint
}

func (m model) end() int64 {
	if n := len(m.batches); n > 0 {
		return m.batches[n-1].NextOffset()
	}
	return m.start
}

// found is what a recovered log holds.
type found struct {
	bounds     storage.Bounds
	batches    []record.Batch
	checkpoint storage.Checkpoint
}

// look opens the log on the disk and reads it.
func look(d *disk.Disk) (found, storage.Log, error) {
	p := &player{disk: d}
	if err := p.open(); err != nil {
		return found{}, nil, fmt.Errorf("recovery failed: %w", err)
	}
	f := found{bounds: p.log.Bounds(), checkpoint: p.log.Checkpoint()}
	var err error
	if f.batches, err = sample.Contents(p.log); err != nil {
		return f, nil, fmt.Errorf("read after recovery: %w", err)
	}
	return f, p.log, nil
}

// is tells why the log is not what the model allows: at least everything below floor, nothing that was not written, and the checkpoint cp.
func (f found) is(m model, floor int64, cp storage.Checkpoint) error {
	bounds := f.bounds
	if bounds.Durable != bounds.End {
		return fmt.Errorf("bounds %+v: a recovered log is durable", bounds)
	}
	if cp.LogStart > bounds.End || bounds.Start == cp.LogStart && bounds.End == cp.LogStart && floor <= cp.LogStart {
		// Deletion went further than what is left: the log begins anew there.
		if bounds.Start != cp.LogStart || len(f.batches) != 0 {
			return fmt.Errorf("bounds %+v, expected an empty log at %d", bounds, cp.LogStart)
		}
	} else {
		if bounds.Start != m.start || bounds.End < floor {
			return fmt.Errorf("bounds %+v, expected [%d, ≥ %d)", bounds, m.start, floor)
		}
		if len(f.batches) > len(m.batches) {
			return fmt.Errorf("%d batches, only %d were written", len(f.batches), len(m.batches))
		}
		if err := sample.Same(f.batches, m.batches[:len(f.batches)]); err != nil {
			return fmt.Errorf("not what was written: %w", err)
		}
	}
	if want := cp.Within(bounds); !reflect.DeepEqual(f.checkpoint, want) {
		return fmt.Errorf("checkpoint %+v, expected %+v", f.checkpoint, want)
	}
	return nil
}

// allowed tells why a log is neither as before a step nor as after it nor, if the step is no cut, in between. With the content of memory kept, nothing that was
// written before the step is lost.
func (f found) allowed(before, next model, s *step, memoryKept bool) error {
	floor, nextFloor := before.durable, before.durable
	if memoryKept {
		floor, nextFloor = before.end(), before.end()
	}
	if s == nil || s.cut {
		nextFloor = next.durable
	}
	first := f.is(before, floor, before.checkpoint)
	if first == nil {
		return nil
	}
	if s != nil && !s.cut && f.is(next, floor, before.checkpoint) == nil {
		return nil
	}
	if err := f.is(next, nextFloor, next.checkpoint); err != nil {
		return fmt.Errorf("neither as before (%w) nor as after (%w)", first, err)
	}
	return nil
}
