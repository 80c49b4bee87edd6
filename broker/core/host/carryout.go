package host

import (
	"fmt"

	"ackproof/broker/core/partition"
	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// CarryOut does storage effects in their order and tells what the core is to be told: it appends to inputs. A run of appends and flushes becomes one append and one flush:
// a later flush covers the earlier ones.
func CarryOut(log storage.Log, work []partition.Effect, inputs []partition.Input) []partition.Input {
	for len(work) > 0 {
		n, in, err := carryOutNext(log, work)
		inputs = append(inputs, in...)
		if err != nil {
			// The handle is dead: whatever follows would fail as well (S3).
			return append(inputs, partition.StorageFailed{Err: err})
		}
		work = work[n:]
	}
	return inputs
}

// carryOutNext does the next run of effects and says how many they were.
func carryOutNext(log storage.Log, work []partition.Effect) (n int, in []partition.Input, err error) {
	switch e := work[0].(type) {
	case partition.Append, partition.Flush:
		return appendRun(log, work)
	case partition.Truncate:
		if err := log.Truncate(e.To, e.Checkpoint); err != nil {
			return 1, nil, fmt.Errorf("truncate to offset %d: %w", e.To, err)
		}
		cut := partition.Cut{Bounds: log.Bounds()}
		if e.Replay {
			cut.Replayed = []record.Header{}
			err := log.Headers(cut.Bounds.Start, func(h record.Header) error {
				cut.Replayed = append(cut.Replayed, h)
				return nil
			})
			if err != nil {
				return 1, nil, fmt.Errorf("read the log again after truncation to offset %d: %w", e.To, err)
			}
		}
		return 1, []partition.Input{cut}, nil
	case partition.Trim:
		if err := log.Trim(e.Checkpoint); err != nil {
			return 1, nil, fmt.Errorf("raise the log start to %d: %w", e.Checkpoint.LogStart, err)
		}
		return 1, []partition.Input{partition.Cut{Bounds: log.Bounds()}}, nil
	case partition.Reset:
		if err := log.Reset(e.Start, e.Checkpoint); err != nil {
			return 1, nil, fmt.Errorf("begin the log anew at offset %d: %w", e.Start, err)
		}
		return 1, []partition.Input{partition.Cut{Bounds: log.Bounds()}}, nil
	case partition.Checkpoint:
		if err := log.Save(e.Checkpoint); err != nil {
			return 1, nil, fmt.Errorf("save the checkpoint: %w", err)
		}
		return 1, nil, nil
	}
	return 1, nil, fmt.Errorf("unknown storage effect %T", work[0])
}

// appendRun takes the appends and flushes at the head of the queue together.
func appendRun(log storage.Log, work []partition.Effect) (n int, in []partition.Input, err error) {
	var batches []record.Batch
	keep, flush, appends := false, false, 0
run:
	for _, e := range work {
		switch e := e.(type) {
		case partition.Append:
			if appends > 0 && e.Keep != keep {
				break run
			}
			if appends == 0 {
				batches, keep = e.Batches, e.Keep
			} else {
				batches = append(batches[:len(batches):len(batches)], e.Batches...)
			}
			appends++
		case partition.Flush:
			flush = true
		default:
			break run
		}
		n++
	}
	if appends > 0 {
		if err := log.Append(batches, keep); err != nil && !fault.On(fault.SwallowWriteError) {
			return n, nil, fmt.Errorf("append %d batches at offset %d: %w", len(batches), batches[0].BaseOffset, err)
		}
		in = append(in, partition.Appended{End: batches[len(batches)-1].NextOffset()})
	}
	if flush {
		end := log.Bounds().End
		if fault.On(fault.AckBeforeFsync) {
			return n, append(in, partition.Flushed{End: end}), nil // whatever flushes next may see to it
		}
		if err := log.Flush(); err != nil && !fault.On(fault.FlushErrorForgotten) {
			return n, in, fmt.Errorf("flush up to offset %d: %w", end, err)
		}
		in = append(in, partition.Flushed{End: end})
	}
	return n, in, nil
}
