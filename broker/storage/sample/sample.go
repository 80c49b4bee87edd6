// Package sample makes batches whose content follows from where they stand, and reads whole logs, for whoever compares a store with a model: tests, and
// campaigns in simulation.
package sample

import (
	"bytes"
	"fmt"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// Batch makes a batch of `count` records that begins at base. Its content follows from base, count, epoch and size, so that it can be made again
// for comparison; its timestamp is 1000 + 10·base.
func Batch(base int64, count int, epoch int32, valueBytes int) record.Batch {
	values := make([][]byte, count)
	for i := range values {
		v := fmt.Appendf(nil, "%d/%d/", base+int64(i), epoch)
		for len(v) < valueBytes {
			v = append(v, byte(base)+byte(len(v)))
		}
		values[i] = v
	}
	return record.Build(record.Spec{
		BaseOffset: base, LeaderEpoch: epoch, ProducerID: record.NoProducer, ProducerEpoch: -1, BaseSequence: -1,
		Timestamp: 1000 + 10*base, Values: values,
	})
}

// Batches makes n batches of `each` records, the first at base, without gaps.
func Batches(base int64, n, each int, epoch int32, valueBytes int) []record.Batch {
	out := make([]record.Batch, n)
	for i := range out {
		out[i] = Batch(base+int64(i*each), each, epoch, valueBytes)
	}
	return out
}

// Contents reads the whole log, a part at a time, and checks that the parts fit together. It works for a log that nobody changes meanwhile.
func Contents(log storage.Log) ([]record.Batch, error) {
	var out []record.Batch
	b := log.Bounds()
	for next := b.Start; next < b.End; {
		run, err := log.Read(next, b.End, 64<<10)
		if err != nil {
			return out, err
		}
		raw, err := run.Bytes()
		run.Release()
		if err != nil {
			return out, err
		}
		batches, err := record.ParseAll(raw)
		if err != nil {
			return out, fmt.Errorf("read at %d: %w", next, err)
		}
		if len(batches) == 0 {
			return out, fmt.Errorf("read at %d gave nothing, the log ends at %d", next, b.End)
		}
		for _, batch := range batches {
			if batch.BaseOffset != next {
				return out, fmt.Errorf("read gave a batch at %d, expected one at %d", batch.BaseOffset, next)
			}
			next = batch.NextOffset()
		}
		out = append(out, batches...)
	}
	return out, nil
}

// Same fails unless the two lists hold equal batches.
func Same(got, want []record.Batch) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d batches, expected %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i].Bytes(), want[i].Bytes()) {
			return fmt.Errorf("batch %d is %+v, expected %+v", i, got[i].Header, want[i].Header)
		}
	}
	return nil
}
