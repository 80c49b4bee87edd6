package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read a file that is not there: %v", err)
	}
	for _, content := range [][]byte{nil, []byte("one\n"), bytes.Repeat([]byte{0, 255}, 5000)} {
		if err := WriteFile(path, content); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path)
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("read %d bytes, %v; wrote %d", len(got), err, len(content))
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range min(len(raw), 100) {
			raw[at] ^= 0x20
			if err := os.WriteFile(path, raw, 0o640); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadFile(path); !errors.Is(err, ErrChecksum) {
				t.Fatalf("byte %d wrong: %v, expected %v", at, err, ErrChecksum)
			}
			raw[at] ^= 0x20
		}
	}
	for range 2 {
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 0 {
		t.Fatalf("left behind: %v, %v", names, err)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	f, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Fatalf("second lock: %v, expected %v", err, ErrLocked)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Lock(dir); err != nil {
		t.Fatalf("lock after it was given back: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}
