// Package storagetest is the conformance suite of storage.Log: what every store must do, whatever it is made of. Each store's tests call Run.
// What depends on files (torn tails, damage, crashes between two steps) is tested beside the store that has them.
package storagetest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
)

// Store opens one log again and again; each call follows a Close.
type Store func() (storage.Log, error)

// Run runs the suite; fresh makes a store with an empty log, small segments if it has any.
func Run(t *testing.T, fresh func(t testing.TB) Store) {
	tests := []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"empty log", testEmpty},
		{"append and flush", testAppend},
		{"append out of order", testOutOfOrder},
		{"read borders", testReadBorders},
		{"read limits", testReadLimits},
		{"headers", testHeaders},
		{"offset by time", testOffsetAt},
		{"truncate", testTruncate},
		{"trim", testTrim},
		{"reset", testReset},
		{"checkpoint", testCheckpoint},
		{"checkpoint after loss", testWithin},
		{"reopen", testReopen},
		{"locked while open", testLocked},
		{"closed", testClosed},
		{"readers and a writer", testConcurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, fresh(t)) })
	}
	t.Run("model", func(t *testing.T) { testModel(t, fresh) })
}

// open opens the log and closes it with the test.
func open(t testing.TB, store Store) storage.Log {
	t.Helper()
	log, err := store()
	must(t, err)
	t.Cleanup(func() { _ = log.Close(false) })
	return log
}

func testEmpty(t *testing.T, store Store) {
	log := open(t, store)
	wantBounds(t, log, storage.Bounds{})
	if diff := cmp.Diff(storage.Checkpoint{}, log.Checkpoint()); diff != "" {
		t.Fatalf("checkpoint of a new log (-want +got):\n%s", diff)
	}
	run, err := log.Read(0, 10, 100)
	must(t, err)
	if run.Len() != 0 {
		t.Fatalf("%d bytes in an empty log", run.Len())
	}
	run.Release()
	_, ok, err := log.OffsetAt(0)
	must(t, err)
	if ok {
		t.Fatal("an empty log has a batch at a time")
	}
	must(t, log.Append(nil, false))
	must(t, log.Flush())
	wantBounds(t, log, storage.Bounds{})
}

func testAppend(t *testing.T, store Store) {
	log := open(t, store)
	all := sample.Batches(0, 40, 3, 1, 100)
	must(t, log.Append(all[:1], false))
	wantBounds(t, log, storage.Bounds{End: 3})
	must(t, log.Append(all[1:20], true))
	must(t, log.Flush())
	wantBounds(t, log, storage.Bounds{Durable: 60, End: 60})
	must(t, log.Append(all[20:], true))
	wantBounds(t, log, storage.Bounds{Durable: 60, End: 120})
	wantContents(t, log, all)
	// The caller may use bytes again that it did not give away.
	scratch := sample.Batch(120, 1, 1, 50)
	want := scratch.Clone()
	must(t, log.Append([]record.Batch{scratch}, false))
	clear(scratch.Bytes())
	wantContents(t, log, append(all, want))
}

func testOutOfOrder(t *testing.T, store Store) {
	log := open(t, store)
	all := sample.Batches(0, 5, 2, 1, 20)
	must(t, log.Append(all[:2], false))
	for _, bad := range [][]record.Batch{all[:1], all[3:4], {all[2], all[4]}, {all[2], all[2]}, {{}}} {
		wantError(t, "append", log.Append(bad, false), storage.ErrOutOfOrder)
	}
	wantBounds(t, log, storage.Bounds{End: 4})
	must(t, log.Append(all[2:], false)) // alive and unchanged
	wantContents(t, log, all)
}

// read gives the batches of one Read.
func read(t testing.TB, log storage.Log, from, to int64, limit int) []record.Batch {
	t.Helper()
	run, err := log.Read(from, to, limit)
	must(t, err)
	defer run.Release()
	raw, err := run.Bytes()
	must(t, err)
	if len(raw) != run.Len() {
		t.Fatalf("Len %d, but %d bytes", run.Len(), len(raw))
	}
	batches, err := record.ParseAll(raw)
	must(t, err)
	return batches
}

func testReadBorders(t *testing.T, store Store) {
	for _, keep := range []bool{false, true} {
		log := open(t, store)
		const n, each = 30, 3
		must(t, log.Reset(100, storage.Checkpoint{}))
		all := sample.Batches(100, n, each, 1, 80)
		must(t, log.Append(all, keep))
		end := int64(100 + n*each)
		for from := int64(100); from <= end; from++ {
			for to := from - 2; to <= end+2; to++ {
				var want []record.Batch
				for _, b := range all {
					if from < to && b.NextOffset() > from && b.NextOffset() <= to {
						want = append(want, b)
					}
				}
				got := read(t, log, from, to, 1<<30)
				if err := sample.Same(got, want[:min(len(want), len(got))]); err != nil || (len(got) == 0) != (len(want) == 0) {
					t.Fatalf("read [%d, %d): %d batches, expected a beginning of %d: %v", from, to, len(got), len(want), err)
				}
			}
		}
		for _, from := range []int64{-1, 0, 99, end + 1} {
			_, err := log.Read(from, end, 100)
			wantError(t, "read outside", err, storage.ErrOutOfRange)
		}
		must(t, log.Close(false))
	}
}

func testReadLimits(t *testing.T, store Store) {
	log := open(t, store)
	all := sample.Batches(0, 20, 1, 1, 300)
	must(t, log.Append(all, false))
	size := len(all[0].Bytes())
	for _, limit := range []int{-1, 0, 1, size - 1, size, size + 1, 2*size - 1, 2 * size, 5*size + 1} {
		got := read(t, log, 4, 20, limit)
		want := max(1, limit/size)
		// A store may give less than asked for, but never more, and something in any case (KIP-74).
		if len(got) == 0 || len(got) > want {
			t.Fatalf("limit %d: %d batches of %d bytes, expected 1 to %d", limit, len(got), size, want)
		}
		must(t, sample.Same(got, all[4:4+len(got)]))
	}
	// A batch that is larger than a segment and than the limit.
	large := sample.Batch(20, 2, 1, 100<<10)
	must(t, log.Append([]record.Batch{large, sample.Batch(22, 1, 1, 10)}, false))
	must(t, sample.Same(read(t, log, 21, 23, 10), []record.Batch{large}))
}

func headers(batches []record.Batch) (out []record.Header) {
	for _, b := range batches {
		out = append(out, b.Header)
	}
	return out
}

func testHeaders(t *testing.T, store Store) {
	log := open(t, store)
	all := append(sample.Batches(0, 30, 3, 1, 120), sample.Batches(90, 10, 1, 4, 60)...)
	must(t, log.Append(all, false))
	for from := int64(0); from <= 100; from++ {
		var got, want []record.Header
		must(t, log.Headers(from, func(h record.Header) error { got = append(got, h); return nil }))
		for _, h := range headers(all) {
			if h.NextOffset() > from {
				want = append(want, h)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("headers from %d: %d, expected %d", from, len(got), len(want))
		}
	}
	stop := errors.New("enough")
	seen := 0
	wantError(t, "headers", log.Headers(0, func(record.Header) error { seen++; return stop }), stop)
	if seen != 1 {
		t.Fatalf("visited %d times, expected to stop at the first", seen)
	}
	wantError(t, "headers", log.Headers(101, func(record.Header) error { return nil }), storage.ErrOutOfRange)
}

func testOffsetAt(t *testing.T, store Store) {
	log := open(t, store)
	// Timestamps of clients go up and down.
	var all []record.Batch
	for i, ts := range []int64{50, 40, 90, 10, 90, 95, 20, 300, 299, 310} {
		b := record.Build(record.Spec{BaseOffset: int64(i), LeaderEpoch: 1, ProducerID: record.NoProducer, Timestamp: ts, Values: [][]byte{make([]byte, 200)}})
		all = append(all, b)
	}
	must(t, log.Append(all, false))
	for _, start := range []int64{0, 1, 3, 8, 10} {
		must(t, log.Save(storage.Checkpoint{LogStart: start}))
		for ts := int64(-1); ts <= 311; ts++ {
			want, found := record.Header{}, false
			for _, h := range headers(all[start:]) {
				if h.MaxTimestamp >= ts {
					want, found = h, true
					break
				}
			}
			got, ok, err := log.OffsetAt(ts)
			must(t, err)
			if ok != found || (ok && got != want) {
				t.Fatalf("log start %d, time %d: offset %d (%t), expected %d (%t)", start, ts, got.BaseOffset, ok, want.BaseOffset, found)
			}
		}
	}
}

func testTruncate(t *testing.T, store Store) {
	const n, each = 24, 3
	all := sample.Batches(0, n, each, 1, 100)
	for to := int64(0); to <= n*each+1; to++ {
		log := open(t, store)
		must(t, log.Reset(0, storage.Checkpoint{}))
		must(t, log.Append(all, to%2 == 0))
		cp := storage.Checkpoint{HighWatermark: to / 2, Epochs: []storage.EpochStart{{Epoch: 1, Start: 0}}, Producers: []byte{byte(to)}, ProducersAt: to / each * each}
		must(t, log.Truncate(to, cp))
		kept := all[:min(n, to/each)]
		end := int64(len(kept) * each)
		if b := log.Bounds(); b.Start != 0 || b.End != end || (end < n*each && b.Durable != end) {
			t.Fatalf("truncated to %d: bounds %+v, expected the end %d", to, b, end)
		}
		wantContents(t, log, kept)
		if diff := cmp.Diff(cp, log.Checkpoint()); diff != "" {
			t.Fatalf("truncated to %d: checkpoint (-want +got):\n%s", to, diff)
		}
		// Another history follows.
		other := sample.Batches(end, 3, 2, 7, 90)
		must(t, log.Append(other, to%3 == 0))
		wantContents(t, log, append(slices.Clone(kept), other...))
		must(t, log.Close(to%2 == 0))
		log = open(t, store)
		wantContents(t, log, append(slices.Clone(kept), other...))
		must(t, log.Close(false))
	}
	log := open(t, store)
	must(t, log.Reset(50, storage.Checkpoint{}))
	wantError(t, "truncate below the start", log.Truncate(49, storage.Checkpoint{}), storage.ErrOutOfRange)
	must(t, log.Append(sample.Batches(50, 1, 1, 1, 1), false))
}

func testTrim(t *testing.T, store Store) {
	log := open(t, store)
	const n, each = 60, 3
	all := sample.Batches(0, n, each, 1, 100)
	must(t, log.Append(all, true))
	last := storage.Bounds{End: n * each}
	for start := int64(0); start <= n*each; start += 7 {
		cp := storage.Checkpoint{LogStart: start, HighWatermark: n * each}
		must(t, log.Trim(cp))
		b := log.Bounds()
		if b.Start < last.Start || b.Start > start || b.End != n*each {
			t.Fatalf("trimmed to %d: bounds %+v after %+v", start, b, last)
		}
		last = b
		var kept []record.Batch
		for _, batch := range all {
			if batch.BaseOffset >= b.Start {
				kept = append(kept, batch)
			}
		}
		wantContents(t, log, kept)
	}
	if last.Start == 0 {
		t.Fatal("nothing was ever removed")
	}
	must(t, log.Append(sample.Batches(n*each, 1, 1, 1, 10), false))
	wantError(t, "trim above the end", log.Trim(storage.Checkpoint{LogStart: n*each + 2}), storage.ErrOutOfRange)
	end := storage.Checkpoint{LogStart: n*each + 1, HighWatermark: n*each + 1}
	must(t, log.Trim(end))
	wantBounds(t, log, storage.Bounds{Start: n*each + 1, Durable: n*each + 1, End: n*each + 1})
	must(t, log.Close(false))
	log = open(t, store)
	wantBounds(t, log, storage.Bounds{Start: n*each + 1, Durable: n*each + 1, End: n*each + 1})
	if diff := cmp.Diff(end, log.Checkpoint()); diff != "" {
		t.Fatalf("checkpoint (-want +got):\n%s", diff)
	}
}

func testReset(t *testing.T, store Store) {
	log := open(t, store)
	must(t, log.Append(sample.Batches(0, 20, 3, 1, 100), true))
	cp := storage.Checkpoint{LogStart: 1000, HighWatermark: 1000}
	must(t, log.Reset(1000, cp))
	wantBounds(t, log, storage.Bounds{Start: 1000, Durable: 1000, End: 1000})
	wantError(t, "append at the old end", log.Append(sample.Batches(60, 1, 1, 1, 1), false), storage.ErrOutOfOrder)
	again := sample.Batches(1000, 5, 2, 3, 40)
	must(t, log.Append(again, false))
	must(t, log.Close(false))
	log = open(t, store)
	wantContents(t, log, again)
	wantBounds(t, log, storage.Bounds{Start: 1000, Durable: 1010, End: 1010})
	if diff := cmp.Diff(cp, log.Checkpoint()); diff != "" {
		t.Fatalf("checkpoint (-want +got):\n%s", diff)
	}
	wantError(t, "reset", log.Reset(-1, cp), storage.ErrOutOfRange)
}

func testCheckpoint(t *testing.T, store Store) {
	log := open(t, store)
	must(t, log.Append(sample.Batches(0, 10, 3, 1, 100), true))
	want := storage.Checkpoint{
		LogStart: 3, HighWatermark: 20,
		Epochs:    []storage.EpochStart{{Epoch: 1, Start: 0}, {Epoch: 5, Start: 30}},
		Producers: []byte{0, 1, 255, '\n'}, ProducersAt: 30,
	}
	must(t, log.Save(want))
	for _, clean := range []bool{true, false, true} {
		if diff := cmp.Diff(want, log.Checkpoint()); diff != "" {
			t.Fatalf("checkpoint (-want +got):\n%s", diff)
		}
		must(t, log.Close(clean))
		log = open(t, store)
	}
}

// testWithin: a checkpoint that knows of more than the log has is corrected at open (R22).
func testWithin(t *testing.T, store Store) {
	log := open(t, store)
	must(t, log.Append(sample.Batches(0, 4, 1, 1, 10), false))
	must(t, log.Save(storage.Checkpoint{
		HighWatermark: 9, Epochs: []storage.EpochStart{{Epoch: 1, Start: 0}, {Epoch: 2, Start: 4}, {Epoch: 3, Start: 5}}, Producers: []byte("x"), ProducersAt: 7,
	}))
	must(t, log.Close(true))
	log = open(t, store)
	want := storage.Checkpoint{HighWatermark: 4, Epochs: []storage.EpochStart{{Epoch: 1, Start: 0}, {Epoch: 2, Start: 4}}}
	if diff := cmp.Diff(want, log.Checkpoint()); diff != "" {
		t.Fatalf("checkpoint (-want +got):\n%s", diff)
	}
	// A log start above the end: what it kept is lost, what is left was deleted.
	must(t, log.Save(storage.Checkpoint{LogStart: 8, HighWatermark: 9}))
	must(t, log.Close(true))
	log = open(t, store)
	wantBounds(t, log, storage.Bounds{Start: 8, Durable: 8, End: 8})
}

func testReopen(t *testing.T, store Store) {
	log := open(t, store)
	var all []record.Batch
	for i := range 12 {
		must(t, log.Close(i%3 != 0))
		log = open(t, store)
		end := int64(len(all) * 2)
		wantBounds(t, log, storage.Bounds{Durable: end, End: end})
		switch i % 4 { // reads first, appends first
		case 0:
			wantContents(t, log, all)
		case 1:
			_, ok, err := log.OffsetAt(1000)
			must(t, err)
			if !ok {
				t.Fatal("no batch found by time")
			}
		}
		more := sample.Batches(end, 7, 2, int32(i/2), 100)
		must(t, log.Append(more, i%2 == 0))
		all = append(all, more...)
		wantContents(t, log, all)
	}
}

func testLocked(t *testing.T, store Store) {
	log := open(t, store)
	_, err := store()
	wantError(t, "second open", err, storage.ErrLocked)
	must(t, log.Close(true))
	open(t, store)
}

func testClosed(t *testing.T, store Store) {
	log := open(t, store)
	must(t, log.Append(sample.Batches(0, 5, 1, 1, 10), true))
	run, err := log.Read(0, 5, 1<<20)
	must(t, err)
	must(t, log.Close(true))
	_, readErr := log.Read(0, 5, 10)
	for doing, err := range map[string]error{
		"append": log.Append(nil, false), "flush": log.Flush(), "read": readErr, "save": log.Save(storage.Checkpoint{}),
		"truncate": log.Truncate(0, storage.Checkpoint{}), "close": log.Close(true),
	} {
		if err == nil {
			t.Errorf("%s on a closed log worked", doing)
		}
	}
	raw, err := run.Bytes() // handed out before
	must(t, err)
	got, err := record.ParseAll(raw)
	must(t, err)
	must(t, sample.Same(got, sample.Batches(0, 5, 1, 1, 10)))
	run.Release()
}

// testConcurrent: readers see whole batches of one history while the writer appends, flushes, truncates and trims (S7).
func testConcurrent(t *testing.T, store Store) {
	log := open(t, store)
	must(t, log.Append(sample.Batches(0, 200, 2, 0, 100), false))
	must(t, log.Close(true)) // so that readers are the first to look at the files
	log = open(t, store)
	done := make(chan struct{})
	var readers sync.WaitGroup
	fail := make(chan error, 8)
	for i := range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := readOnce(log, i); err != nil {
					fail <- err
					return
				}
			}
		})
	}
	epoch := int32(0)
	for round := range 30 {
		for range 6 {
			must(t, log.Append(sample.Batches(log.Bounds().End, 5, 2, epoch, 100), round%2 == 0))
		}
		b := log.Bounds()
		switch round % 3 {
		case 0:
			must(t, log.Flush())
		case 1:
			epoch++
			must(t, log.Truncate(b.End-17-int64(90*(round%2)), log.Checkpoint()))
		case 2:
			cp := log.Checkpoint()
			cp.LogStart = max(cp.LogStart, b.End-150)
			must(t, log.Trim(cp))
		}
	}
	close(done)
	readers.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
}

// readOnce reads in the way of reader i. Being overtaken by a truncation or trim is all right.
func readOnce(log storage.Log, i int) error {
	b := log.Bounds()
	var err error
	switch i {
	case 0, 1:
		var run storage.Records
		if run, err = log.Read(b.Start+int64(i)*(b.End-b.Start)/2, b.End, 4<<10); err != nil {
			break
		}
		defer run.Release()
		raw, readErr := run.Bytes()
		if readErr != nil {
			return readErr
		}
		batches, parseErr := record.ParseAll(raw)
		if parseErr != nil {
			return parseErr
		}
		for _, b := range batches {
			if err := sample.Same([]record.Batch{b}, []record.Batch{sample.Batch(b.BaseOffset, 2, b.LeaderEpoch, 100)}); err != nil {
				return err
			}
		}
	case 2:
		next := int64(-1)
		err = log.Headers(b.Start, func(h record.Header) error {
			if next >= 0 && h.BaseOffset != next {
				return errors.New("headers with a gap")
			}
			next = h.NextOffset()
			return nil
		})
		if err == nil {
			_, _, err = log.OffsetAt(1000 + 10*(b.Start+b.End)/2)
		}
	}
	if errors.Is(err, storage.ErrOutOfRange) {
		return nil
	}
	return err
}
