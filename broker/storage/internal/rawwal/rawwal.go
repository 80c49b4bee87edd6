// Package rawwal reads and repairs the files of a tidwall/wal v1.2.1 log (binary format) while that library has them closed. The
// library has no repair of its own: it refuses a torn tail, and takes zeros and missing segments for good. The package knows
// segment files and their framing; whether an entry is right is decided by whoever wrote it.
//
// A segment file is named by the index of its first entry, 20 digits. It holds entries, each a uvarint length and that many bytes.
package rawwal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ackproof/broker/internal/durable"
)

const (
	nameDigits  = 20
	startSuffix = ".START"
	endSuffix   = ".END"
)

// ErrAmbiguous: the folder holds leftovers of two different operations, which the library never leaves.
var ErrAmbiguous = errors.New("leftovers contradict each other")

// Segment is one file of a log.
type Segment struct {
	Index uint64 // of its first entry
	Bytes int64
}

// Path is the file of the segment with that index.
func Path(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", nameDigits, index))
}

// Segments lists the segment files in the order of their indexes, after Tidy. Files with other names are not ours and are ignored.
func Segments(dir string) ([]Segment, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Segment
	for _, entry := range names {
		index, suffix, ok := parseName(entry.Name())
		if !ok || suffix != "" {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: a segment is a regular file, found %v", filepath.Join(dir, entry.Name()), info.Mode())
		}
		out = append(out, Segment{Index: index, Bytes: info.Size()})
	}
	slices.SortFunc(out, func(a, b Segment) int {
		if a.Index < b.Index {
			return -1
		}
		return 1
	})
	return out, nil
}

// parseName splits a name into index and suffix; ok is false for what is no file of the library.
func parseName(name string) (index uint64, suffix string, ok bool) {
	if len(name) < nameDigits {
		return 0, "", false
	}
	index, err := strconv.ParseUint(name[:nameDigits], 10, 64)
	return index, name[nameDigits:], err == nil && index > 0
}

// Tidy ends what a crash interrupted: it drops TEMP files, which may be half-written, and finishes the truncations that a START or END file
// stands for (those are complete, because they were flushed before they were given the name). It flushes the folder if it changed anything.
func Tidy(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var start, end uint64
	changed := false
	for _, entry := range names {
		name := entry.Name()
		if strings.HasSuffix(name, durable.TempSuffix) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
			changed = true
			continue
		}
		index, suffix, ok := parseName(name)
		if !ok {
			continue
		}
		if (suffix == startSuffix && start > 0) || (suffix == endSuffix && end > 0) {
			return fmt.Errorf("%s: %w: more than one *%s", dir, ErrAmbiguous, suffix)
		}
		switch suffix {
		case startSuffix:
			start = index
		case endSuffix:
			end = index
		}
	}
	if start > 0 && end > 0 {
		return fmt.Errorf("%s: %w: both *%s and *%s", dir, ErrAmbiguous, startSuffix, endSuffix)
	}
	if start > 0 {
		changed = true
		if err := finish(dir, start, startSuffix, func(index uint64) bool { return index < start }); err != nil {
			return err
		}
	}
	if end > 0 {
		changed = true
		if err := finish(dir, end, endSuffix, func(index uint64) bool { return index > end }); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return durable.SyncDir(dir)
}

// finish removes the doomed segments, then gives the truncated one its final name, over the file that it replaces.
// The change is not durable: Tidy flushes the folder.
func finish(dir string, index uint64, suffix string, doomed func(uint64) bool) error {
	segments, err := Segments(dir)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if doomed(s.Index) {
			if err := os.Remove(Path(dir, s.Index)); err != nil {
				return err
			}
		}
	}
	return os.Rename(Path(dir, index)+suffix, Path(dir, index))
}

// ErrBad: the bytes are no entry: the length makes no sense, is zero, or is more than there is.
var ErrBad = errors.New("no whole entry")

// Entry decodes the entry at the start of raw: head is the size of its length prefix, size that of its data. Only the prefix need be in
// raw; limit is the number of bytes from the start of raw to the end of the segment. A zero-length entry is bad, because zeros behind the tail
// look like that and nobody here writes one.
func Entry(raw []byte, limit int64) (head, size int, err error) {
	n, k := binary.Uvarint(raw)
	switch {
	case k <= 0:
		return 0, 0, fmt.Errorf("%w: length prefix unfinished", ErrBad)
	case n == 0:
		return 0, 0, fmt.Errorf("%w: length 0", ErrBad)
	case n > uint64(limit-int64(k)):
		return 0, 0, fmt.Errorf("%w: length %d, %d bytes left", ErrBad, n, limit-int64(k))
	}
	return k, int(n), nil
}

// EntryBytes is the space that an entry with so much data takes.
func EntryBytes(size int) int64 {
	n := int64(size) + 1
	for v := uint64(size); v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// Cut ends the log behind the first `bytes` bytes of the segment with that index: later segments go, and the segment is replaced by a shorter copy, so that whoever has
// the old file open still reads the old bytes. Durable on return; after a crash, doing it again ends it.
func Cut(dir string, index uint64, bytes int64) error {
	segments, err := Segments(dir)
	if err != nil {
		return err
	}
	for _, s := range slices.Backward(segments) { // from the end, so that no hole is left
		if s.Index > index {
			if err := os.Remove(Path(dir, s.Index)); err != nil {
				return err
			}
		}
		if s.Index != index || s.Bytes == bytes {
			continue
		}
		if s.Bytes < bytes {
			return fmt.Errorf("cut %s to %d bytes: it has only %d", Path(dir, index), bytes, s.Bytes)
		}
		kept, err := readPrefix(Path(dir, index), bytes)
		if err != nil {
			return err
		}
		if err := durable.Replace(Path(dir, index), kept); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}

// DropBelow removes the segments before the one with that index. Durable on return; after a crash, doing it again ends it.
func DropBelow(dir string, index uint64) error {
	segments, err := Segments(dir)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if s.Index < index {
			if err := os.Remove(Path(dir, s.Index)); err != nil {
				return err
			}
		}
	}
	return durable.SyncDir(dir)
}

func readPrefix(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, n)
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, fmt.Errorf("read the first %d bytes of %s: %w", n, path, err)
	}
	return raw, nil
}
