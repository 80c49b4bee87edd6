package memlog_test

import (
	"errors"
	"testing"

	"ackproof/broker/storage"
	"ackproof/broker/storage/memlog"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storagetest.Store {
		disk := memlog.NewDisk()
		return func() (storage.Log, error) { return disk.Open() }
	})
}

func TestCrashLosesWhatWasNotFlushed(t *testing.T) {
	all := sample.Batches(0, 6, 2, 1, 10)
	for survive := range 6 {
		disk := memlog.NewDisk()
		log, err := disk.Open()
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range all {
			if err := log.Append(all[i:i+1], false); err != nil {
				t.Fatal(err)
			}
			if b.BaseOffset == 4 {
				if err := log.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		disk.Crash(survive)
		if err := log.Append(nil, false); !errors.Is(err, storage.ErrDead) {
			t.Fatalf("append after a crash: %v, expected %v", err, storage.ErrDead)
		}
		again, err := disk.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := sample.Contents(again)
		if err != nil {
			t.Fatal(err)
		}
		if err := sample.Same(got, all[:min(6, 3+survive)]); err != nil {
			t.Fatalf("%d survived: %v", survive, err)
		}
	}
}

func TestFailedWriteKillsTheHandle(t *testing.T) {
	broken := errors.New("no space")
	cp := storage.Checkpoint{}
	for op, call := range map[memlog.Op]func(storage.Log) error{
		memlog.Append:   func(l storage.Log) error { return l.Append(sample.Batches(2, 1, 1, 1, 1), false) },
		memlog.Flush:    storage.Log.Flush,
		memlog.Truncate: func(l storage.Log) error { return l.Truncate(1, cp) },
		memlog.Trim:     func(l storage.Log) error { return l.Trim(cp) },
		memlog.Reset:    func(l storage.Log) error { return l.Reset(0, cp) },
		memlog.Save:     func(l storage.Log) error { return l.Save(cp) },
	} {
		disk := memlog.NewDisk()
		log, err := disk.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(sample.Batches(0, 2, 1, 1, 1), false); err != nil {
			t.Fatal(err)
		}
		disk.Fail = func(got memlog.Op) error {
			if got == op {
				return broken
			}
			return nil
		}
		if err := call(log); !errors.Is(err, storage.ErrDead) || !errors.Is(err, broken) {
			t.Errorf("%s: %v, expected %v because of %v", op, err, storage.ErrDead, broken)
		}
		disk.Fail = nil
		if err := call(log); !errors.Is(err, storage.ErrDead) { // S3: no second try on this handle
			t.Errorf("%s again: %v, expected %v", op, err, storage.ErrDead)
		}
		if b := log.Bounds(); b.End != 2 {
			t.Errorf("%s: the end moved to %d", op, b.End)
		}
	}
}
