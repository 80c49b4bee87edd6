package wal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/recent"
	"ackproof/broker/storage/sample"
)

// resetAt bounds the space that a benchmark takes.
const resetAt = 64 << 20

var benchSizes = []int{1 << 10, 100 << 10, 1 << 20}

// sideBySide times two calls in turns, so that whatever else the machine does hits both alike, and reports both rates and their ratio.
func sideBySide(b *testing.B, bytes int, log, plain func() error, between func() error) {
	b.SetBytes(int64(bytes))
	var took [2]time.Duration
	written := 0
	for b.Loop() {
		for i, call := range []func() error{log, plain} {
			begin := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(begin)
		}
		if written += bytes; written >= resetAt {
			written = 0
			b.StopTimer()
			if err := between(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	rate := func(d time.Duration) float64 { return float64(bytes) * float64(b.N) / d.Seconds() / 1e6 }
	b.ReportMetric(rate(took[0]), "wal-MB/s")
	b.ReportMetric(rate(took[1]), "plain-MB/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "wal/plain-time")
}

// BenchmarkAppend compares one append of one batch with a write of the same bytes to a plain file; neither is flushed by us.
func BenchmarkAppend(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			dir := b.TempDir()
			l := mustOpen(b, dir, Options{Cache: recent.New(4 << 20)})
			f, err := os.Create(filepath.Join(dir, "plain"))
			must(b, err)
			defer f.Close()
			batch := sample.Batch(0, 1, 1, size-80)
			sideBySide(b, len(batch.Bytes()), func() error {
				batch.Assign(l.Bounds().End, 1)
				return l.Append([]record.Batch{batch}, true)
			}, func() error {
				_, err := f.Write(batch.Bytes())
				return err
			}, func() error {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					return err
				}
				if err := f.Truncate(0); err != nil {
					return err
				}
				return l.Reset(0, storage.Checkpoint{})
			})
		})
	}
}

// BenchmarkRead compares a Read of 1 MiB from the files, bytes included, with a read of as much from a plain file.
func BenchmarkRead(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			dir := b.TempDir()
			l := mustOpen(b, dir, Options{})
			n := int64(16 << 20 / size)
			for offset := range n {
				must(b, l.Append([]record.Batch{sample.Batch(offset, 1, 1, size-80)}, false))
			}
			const chunk = 1<<20 + 256
			f, err := os.Create(filepath.Join(dir, "plain"))
			must(b, err)
			defer f.Close()
			_, err = f.Write(make([]byte, 16*chunk))
			must(b, err)
			next, turn := int64(0), 0
			sideBySide(b, chunk, func() error {
				run, err := l.Read(next, n, chunk)
				if err != nil {
					return err
				}
				defer run.Release()
				if next += n / 16; next >= n {
					next = 0
				}
				_, err = run.Bytes()
				return err
			}, func() error {
				turn = (turn + 1) % 16
				_, err := f.ReadAt(make([]byte, chunk), int64(turn)*chunk)
				return err
			}, func() error { return nil })
		})
	}
}
