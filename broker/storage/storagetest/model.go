package storagetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
)

// model is a log as a slice of batches. It does not say where Start goes in a Trim, for that depends on a store's segments, only what is allowed.
type model struct {
	log        storage.Log
	store      Store
	start, end int64
	durable    int64
	batches    []record.Batch
	checkpoint storage.Checkpoint
	epoch      int32
}

// testModel compares a store with the model over random sequences of calls.
func testModel(t *testing.T, fresh func(testing.TB) Store) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{store: fresh(t)}
		log, err := m.store()
		must(t, err)
		m.log = log
		defer func() { _ = m.log.Close(false) }()
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"append":   m.append,
			"flush":    m.flush,
			"read":     m.read,
			"save":     m.save,
			"truncate": m.truncate,
			"trim":     m.trim,
			"reset":    m.reset,
			"reopen":   m.reopen,
		})
	})
}

func ok(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

func (m *model) check(rt *rapid.T) {
	if got, want := m.log.Bounds(), (storage.Bounds{Start: m.start, Durable: m.durable, End: m.end}); got != want {
		rt.Fatalf("bounds %+v, expected %+v", got, want)
	}
	if diff := cmp.Diff(m.checkpoint, m.log.Checkpoint()); diff != "" {
		rt.Fatalf("checkpoint (-want +got):\n%s", diff)
	}
}

// anyCheckpoint draws one that fits a log of [start, end].
func (m *model) anyCheckpoint(rt *rapid.T, start, end int64) storage.Checkpoint {
	cp := storage.Checkpoint{LogStart: start, HighWatermark: rapid.Int64Range(start, end).Draw(rt, "hw"), ProducersAt: start}
	if rapid.Bool().Draw(rt, "with state") {
		cp.Epochs = []storage.EpochStart{{Epoch: m.epoch, Start: start}}
		cp.Producers = []byte{1, 2, 3}
	}
	return cp
}

func (m *model) append(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "new epoch") == 0 {
		m.epoch++
	}
	var batches []record.Batch
	next := m.end
	for range rapid.IntRange(1, 6).Draw(rt, "batches") {
		b := sample.Batch(next, rapid.IntRange(1, 3).Draw(rt, "records"), m.epoch, rapid.SampledFrom([]int{1, 50, 130, 700}).Draw(rt, "size"))
		batches = append(batches, b)
		next = b.NextOffset()
	}
	ok(rt, m.log.Append(batches, rapid.Bool().Draw(rt, "keep")))
	m.batches = append(m.batches, batches...)
	m.end = next
}

func (m *model) flush(rt *rapid.T) {
	ok(rt, m.log.Flush())
	m.durable = m.end
}

func (m *model) read(rt *rapid.T) {
	from := rapid.Int64Range(m.start, m.end).Draw(rt, "from")
	to := rapid.Int64Range(m.start, m.end+3).Draw(rt, "to")
	limit := rapid.IntRange(0, 5000).Draw(rt, "limit")
	run, err := m.log.Read(from, to, limit)
	ok(rt, err)
	defer run.Release()
	raw, err := run.Bytes()
	ok(rt, err)
	got, err := record.ParseAll(raw)
	ok(rt, err)
	var want []record.Batch
	bytes := 0
	for _, b := range m.batches {
		if b.NextOffset() <= from || from >= to {
			continue
		}
		if b.NextOffset() > to || (bytes > 0 && bytes+len(b.Bytes()) > limit) {
			break
		}
		bytes += len(b.Bytes())
		want = append(want, b)
	}
	ok(rt, sample.Same(got, want[:min(len(got), len(want))]))
	if (len(got) == 0) != (len(want) == 0) {
		rt.Fatalf("read [%d, %d) up to %d bytes: %d batches, expected %d", from, to, limit, len(got), len(want))
	}

	var headersGot []record.Header
	ok(rt, m.log.Headers(from, func(h record.Header) error { headersGot = append(headersGot, h); return nil }))
	first := slices.IndexFunc(m.batches, func(b record.Batch) bool { return b.NextOffset() > from })
	if first < 0 {
		first = len(m.batches)
	}
	if !slices.Equal(headersGot, headers(m.batches[first:])) {
		rt.Fatalf("headers from %d: %d, expected %d", from, len(headersGot), len(m.batches)-first)
	}
}

func (m *model) save(rt *rapid.T) {
	cp := m.anyCheckpoint(rt, rapid.Int64Range(m.start, m.end).Draw(rt, "log start"), m.end)
	ok(rt, m.log.Save(cp))
	m.checkpoint = cp
}

func (m *model) truncate(rt *rapid.T) {
	to := rapid.Int64Range(m.start, m.end+2).Draw(rt, "to")
	end, keep := m.end, len(m.batches)
	if i := slices.IndexFunc(m.batches, func(b record.Batch) bool { return b.NextOffset() > to }); i >= 0 {
		end, keep = m.batches[i].BaseOffset, i
	}
	cp := m.anyCheckpoint(rt, m.start, end)
	ok(rt, m.log.Truncate(to, cp))
	if end < m.end {
		m.durable = end
	}
	m.end, m.batches, m.checkpoint = end, m.batches[:keep:keep], cp
}

func (m *model) trim(rt *rapid.T) {
	cp := m.anyCheckpoint(rt, rapid.Int64Range(m.start, m.end).Draw(rt, "log start"), m.end)
	ok(rt, m.log.Trim(cp))
	m.checkpoint = cp
	b := m.log.Bounds()
	if b.Start < m.start || b.Start > cp.LogStart || (cp.LogStart == m.end && b.Start != m.end) {
		rt.Fatalf("trimmed [%d, %d) to %d: bounds %+v", m.start, m.end, cp.LogStart, b)
	}
	first := slices.IndexFunc(m.batches, func(batch record.Batch) bool { return batch.BaseOffset >= b.Start })
	if first < 0 {
		first = len(m.batches)
	}
	m.batches, m.start = m.batches[first:], b.Start
	if b.Durable != m.durable && b.Durable != m.end {
		rt.Fatalf("trimmed: durable %d, expected %d or the end %d", b.Durable, m.durable, m.end)
	}
	m.durable = b.Durable
	if (len(m.batches) > 0 && m.batches[0].BaseOffset != m.start) || (len(m.batches) == 0 && m.start != m.end) {
		rt.Fatalf("trimmed to %d, which is inside a batch", m.start)
	}
}

func (m *model) reset(rt *rapid.T) {
	start := rapid.Int64Range(0, 1000).Draw(rt, "start")
	cp := m.anyCheckpoint(rt, start, start)
	ok(rt, m.log.Reset(start, cp))
	m.start, m.end, m.durable, m.batches, m.checkpoint = start, start, start, nil, cp
}

// reopen: without a crash of the machine nothing is lost, clean or not.
func (m *model) reopen(rt *rapid.T) {
	ok(rt, m.log.Close(rapid.Bool().Draw(rt, "clean")))
	log, err := m.store()
	ok(rt, err)
	m.log, m.durable = log, m.end
	got, err := sample.Contents(log)
	ok(rt, err)
	if err := sample.Same(got, m.batches); err != nil && !errors.Is(err, storage.ErrOutOfRange) {
		rt.Fatal(err)
	}
}
