//go:build failpoints

package segment

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

// TestDamagePlants: B14 and B15 change what recovery makes of damage.
func TestDamagePlants(t *testing.T) { storagetest.RunDamagePlants(t, segmentFiles) }

// counting notes the order of the calls that make something durable.
type counting struct {
	files.OS
	calls *[]string
}

func (c counting) note(call, path string) {
	*c.calls = append(*c.calls, call+" "+path[strings.LastIndexByte(path, '/')+1:])
}

func (c counting) Create(path string) (files.Writer, error) {
	w, err := c.OS.Create(path)
	return noted{w, c, path}, err
}

func (c counting) Rename(from, to string) error {
	c.note("rename", to)
	return c.OS.Rename(from, to)
}

func (c counting) FlushDir(dir string) error {
	c.note("flush", "names")
	return c.OS.FlushDir(dir)
}

type noted struct {
	files.Writer
	counting counting
	path     string
}

func (n noted) Flush() error {
	n.counting.note("flush", n.path)
	return n.Writer.Flush()
}

// TestOrderPlants: B51 to B53 change what is durable when.
func TestOrderPlants(t *testing.T) {
	log := fileName(0, logSuffix)
	for _, tt := range []struct {
		bug  fault.Bug
		call func(*Log) error
		miss string // the call that only the sound store makes
		upTo string // before this one; "" for ever
	}{
		{fault.MarkerTooEarly, func(l *Log) error { return l.Close(true) }, "flush " + log, "rename " + markerFile},
		{fault.NamesNotFlushed, (*Log).Flush, "flush names", ""},
		{fault.CutInTwoSteps, func(l *Log) error { return l.Truncate(1, storage.Checkpoint{}) }, "rename " + stateFile, "rename " + log},
	} {
		for _, planted := range []bool{false, true} {
			var calls []string
			l := mustOpen(t, storagetest.TempDir(t), Options{FS: counting{calls: &calls}})
			must(t, l.Append(sample.Batches(0, 3, 1, 1, 10), false))
			calls = nil
			if planted {
				must(t, fault.Plant(tt.bug))
			}
			err := tt.call(l)
			fault.Uproot(tt.bug)
			must(t, err)
			made := calls
			if i := slices.Index(calls, tt.upTo); i >= 0 {
				made = calls[:i]
			} else if tt.upTo != "" {
				t.Fatalf("%s: no %q among %q", tt.bug.ID, tt.upTo, calls)
			}
			if slices.Contains(made, tt.miss) == planted {
				t.Errorf("%s planted %t: %q among %q is %t", tt.bug.ID, planted, tt.miss, made, planted)
			}
			if err := l.Close(false); err != nil && !errors.Is(err, errClosed) {
				t.Error(err)
			}
		}
	}
}
