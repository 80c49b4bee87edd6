package lossy

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
)

// Loss is a way to lose power.
type Loss string

// The ways.
const (
	LoseAll   Loss = "all"     // nothing lasts but what was flushed
	LoseNames Loss = "names"   // content lasts; of the changes of names that were not flushed the last ones are gone, at least one
	TornTail  Loss = "torn"    // everything lasts but a part of the last write of each file, which is cut between two sectors
	SomeLoss  Loss = "some"    // each sector that was not flushed lasts or does not, as do the first of the changes of names
	KeepAll   Loss = "nothing" // everything lasts: whoever sees a difference does not see a loss of power
)

// Losses are all ways.
func Losses() []Loss { return []Loss{LoseAll, LoseNames, TornTail, SomeLoss, KeepAll} }

// Lost is what a loss of power has taken, and what it could have taken.
type Lost struct {
	Loss           Loss
	Files, Pending int   // files that have lost something, of those that had something to lose
	Bytes          int64 // of them that are not what they were
	Names, Changes int   // changes of names that were taken back, of those that could be
}

// Add sums up.
func (l Lost) Add(m Lost) Lost {
	return Lost{m.Loss, l.Files + m.Files, l.Pending + m.Pending, l.Bytes + m.Bytes, l.Names + m.Names, l.Changes + m.Changes}
}

// Nothing tells whether nothing was lost.
func (l Lost) Nothing() bool { return l.Files == 0 && l.Names == 0 }

func (l Lost) String() string {
	if l.Pending == 0 && l.Changes == 0 {
		return "nothing was unflushed"
	}
	if l.Nothing() {
		return fmt.Sprintf("nothing was lost, of %d files and %d names that were not flushed", l.Pending, l.Changes)
	}
	return fmt.Sprintf("%d bytes of %d files lost, and %d of %d names (%s)", l.Bytes, l.Files, l.Names, l.Changes, l.Loss)
}

// PowerLoss takes what was not flushed, in the way that is asked for. The processes of the node should be gone; for those that are not, the disk is. What is left counts as flushed.
func (f *FS) PowerLoss(loss Loss, pick *rand.Rand) (Lost, error) {
	f.endMount()
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Lost{Loss: loss, Changes: len(f.journal)}
	for _, n := range slices.Sorted(maps.Keys(f.objects)) {
		o := f.objects[n]
		if o.mode&kindMask != fileMode {
			continue
		}
		if err := f.lose(o, loss, pick, &out); err != nil {
			return out, fmt.Errorf("lose what was not flushed of %s: %w", o.path(), err)
		}
	}
	from := len(f.journal)
	switch loss {
	case LoseAll:
		from = 0
	case LoseNames:
		from = pick.IntN(max(1, len(f.journal)))
	case SomeLoss:
		from = pick.IntN(len(f.journal) + 1)
	}
	out.Names = len(f.journal) - from
	f.undo(from)
	return out, nil
}

// outcome is what a loss of power leaves of a file: all as it was flushed, or some of what came after.
type outcome struct {
	none  bool                    // nothing of it lasts
	size  int64                   // of the file; with none, as it was flushed
	lasts func(sector int64) bool // what was written there lasts
}

// lose takes from one file what was not flushed.
func (f *FS) lose(o *object, loss Loss, pick *rand.Rand, sum *Lost) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.pending() {
		return nil
	}
	sum.Pending++
	lost, err := f.revert(o, f.choose(o, loss, pick))
	if err != nil {
		return err
	}
	if lost > 0 {
		sum.Files++
		sum.Bytes += lost
	}
	o.stuck = nil
	o.flush(f.sector())
	return nil
}

// choose what a loss leaves. The lock of the content is held.
func (f *FS) choose(o *object, loss Loss, pick *rand.Rand) outcome {
	all := outcome{size: o.size, lasts: func(int64) bool { return true }}
	switch loss {
	case LoseAll:
		return outcome{none: true, size: o.durable}
	case TornTail:
		if len(o.dirty) == 0 {
			return all
		}
		last := o.dirty[len(o.dirty)-1]
		first, end := last.from/f.sector(), (last.to-1)/f.sector()
		at := max(last.from, (first+pick.Int64N(end-first+1))*f.sector()) // where the write is cut
		if last.to == o.size {
			all.size = max(at, min(last.from, o.size), min(o.durable, o.size))
		}
		if last.from < o.durable {
			all.lasts = func(s int64) bool { return (s+1)*f.sector() <= at || s > end }
		}
		return all
	case SomeLoss:
		if o.cut != noCut && pick.IntN(2) == 0 { // the cut did not happen, nor what lies behind it
			return outcome{none: true, size: o.durable}
		}
		luck := map[int64]bool{}
		size := min(o.size, o.durable, o.cut)
		for _, s := range slices.Sorted(maps.Keys(o.written(f.sector()))) {
			if luck[s] = pick.IntN(2) == 0; luck[s] {
				size = max(size, min((s+1)*f.sector(), o.size))
			}
		}
		return outcome{size: size, lasts: func(s int64) bool { return luck[s] }}
	}
	return all
}

// revert makes the file what is left of it, and tells how many bytes of it are not what they were. The lock of the content is held.
func (f *FS) revert(o *object, left outcome) (lost int64, err error) {
	file, err := f.open(o)
	if err != nil {
		return 0, err
	}
	defer func() {
		if o.users == 0 {
			file.Close()
			o.file = nil
		}
	}()
	put := func(sector int64, b []byte) error {
		from := sector * f.sector()
		if from >= left.size {
			return nil
		}
		whole := make([]byte, min(f.sector(), left.size-from)) // what was never flushed reads as zeros
		copy(whole, b)
		_, err := file.WriteAt(whole, from)
		lost += min(int64(len(whole)), max(0, o.size-from))
		return err
	}
	if left.size != o.size {
		lost = max(left.size-o.size, o.size-left.size)
		if err := file.Truncate(left.size); err != nil {
			return 0, err
		}
	}
	if left.none {
		for s, b := range o.old {
			if err := put(s, b); err != nil {
				return 0, err
			}
		}
		o.size = left.size
		return lost, nil
	}
	gone := o.written(f.sector())
	maps.DeleteFunc(gone, func(s int64, _ bool) bool { return left.lasts(s) })
	maps.Copy(gone, o.stuck)
	for s := range gone {
		b, err := f.before(o, s)
		if err != nil {
			return 0, err
		}
		if o.cut != noCut { // which happened: behind it there is nothing of old
			b = b[:max(0, min(int64(len(b)), o.cut-s*f.sector()))]
		}
		if err := put(s, b); err != nil {
			return 0, err
		}
	}
	o.size = left.size
	return lost, nil
}

// before is what the sector held when it was flushed. The lock of the content is held.
func (f *FS) before(o *object, sector int64) ([]byte, error) {
	if b, ok := o.old[sector]; ok {
		return b, nil
	}
	// Nothing that was flushed has changed in it.
	b := make([]byte, max(0, min(f.sector(), o.durable-sector*f.sector())))
	file, err := f.open(o)
	if err != nil {
		return nil, err
	}
	n, err := file.ReadAt(b, sector*f.sector())
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}
