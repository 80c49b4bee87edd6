package storagetest

import (
	"errors"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
)

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, expected %v", doing, err, want)
	}
}

func wantBounds(t testing.TB, log storage.Log, want storage.Bounds) {
	t.Helper()
	if got := log.Bounds(); got != want {
		t.Fatalf("bounds %+v, expected %+v", got, want)
	}
}

func wantContents(t testing.TB, log storage.Log, want []record.Batch) {
	t.Helper()
	got, err := sample.Contents(log)
	must(t, err)
	must(t, sample.Same(got, want))
}
