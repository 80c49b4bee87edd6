package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ackproof/broker/storage/files"
)

// More parts than one system call takes, empty ones among them, end up one behind the other, after what was there.
func TestAppendOfManyParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	w, err := files.OS{}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var want []byte
	for _, n := range []int{0, 1, 2, 1024, 1025, 5000} {
		var parts [][]byte
		for i := range n {
			part := fmt.Appendf(nil, "%d of %d,", i, n)
			if i%7 == 3 {
				part = nil
			}
			parts = append(parts, part)
			want = append(want, part...)
		}
		before := bytes.Join(parts, nil)
		if err := w.Append(parts...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Join(parts, nil), before) {
			t.Fatalf("the append of %d parts has changed them", n)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes that are not the %d bytes appended", len(got), len(want))
	}
}
