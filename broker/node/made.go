package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"ackproof/broker/internal/durable"
)

// madeFile is a line for each partition whose folder this broker has made, and is never without one that has held a record.
const madeFile = "partitions"

// made remembers which partitions have a folder here, beside the folders themselves. A folder that is missing has been lost if it was made, and this copy must not
// lead then; it has merely not been made yet if the broker died between hearing of the partition and making it, and then the copy may lead (R17, S2). A line is
// durable before the replica does anything.
type made struct {
	path    string
	unknown bool // there is no file: either nothing was ever made, or the whole disk was lost
	keys    map[partitionKey]bool
	size    int64 // of the file
}

// readMade reads the list. A last line that was torn is none: its replica had not begun.
func readMade(path string) (*made, error) {
	m := &made{path: path, keys: map[partitionKey]bool{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		m.unknown = true
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the list of partitions: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines[:len(lines)-1] {
		id, index, _ := strings.Cut(line, " ")
		var key partitionKey
		raw, err := hex.DecodeString(id)
		n, err2 := strconv.ParseInt(index, 10, 32)
		if err != nil || err2 != nil || len(raw) != len(key.topic) || n < 0 {
			return nil, fmt.Errorf("%s, line %d: expected a topic id of 32 hex digits and a partition, found %q; without this file, the broker takes every missing folder for a lost one", path, i+1, line)
		}
		copy(key.topic[:], raw)
		key.partition = int32(n)
		m.keys[key] = true
		m.size += int64(len(line)) + 1
	}
	return m, nil
}

// has tells whether the partition's folder was made, as far as is known.
func (m *made) has(key partitionKey) bool { return m.unknown || m.keys[key] }

// replace makes the list be these partitions.
func (m *made) replace(keys []partitionKey) error {
	next := map[partitionKey]bool{}
	for _, k := range keys {
		next[k] = true
	}
	if !m.unknown && maps.Equal(next, m.keys) {
		return nil
	}
	lines := madeLines(keys)
	if err := durable.Replace(m.path, lines); err != nil {
		return fmt.Errorf("the list of partitions: %w", err)
	}
	m.keys, m.unknown, m.size = next, false, int64(len(lines))
	return nil
}

// add puts partitions on the list. After an error they may be on it or not.
func (m *made) add(keys []partitionKey) error {
	if m.unknown {
		return m.replace(keys)
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k partitionKey) bool { return m.keys[k] })
	if len(keys) == 0 {
		return nil
	}
	f, err := os.OpenFile(m.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("the list of partitions: %w", err)
	}
	lines := madeLines(keys)
	err = f.Truncate(m.size) // a part of what could not be written before may be there
	if err == nil {
		_, err = f.WriteAt(lines, m.size)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the list of partitions: %w", err)
	}
	m.size += int64(len(lines))
	for _, k := range keys {
		m.keys[k] = true
	}
	return nil
}

func madeLines(keys []partitionKey) []byte {
	var out bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&out, "%x %d\n", k.topic, k.partition)
	}
	return out.Bytes()
}
