package raftlog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"ackproof/broker/core/controller"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/storagetest"
)

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

func entries(first uint64, n int, term uint64, bytes int) (out []*raftpb.Entry) {
	for i := range n {
		index := first + uint64(i)
		data := append(fmt.Appendf(nil, "%d/%d", index, term), make([]byte, bytes)...)
		out = append(out, &raftpb.Entry{Index: &index, Term: &term, Data: data})
	}
	return out
}

func snapshot(index, term uint64) *raftpb.Snapshot {
	return &raftpb.Snapshot{
		Data:     fmt.Appendf(nil, "image %d", index),
		Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, dir string) (*Log, controller.Stored) {
	t.Helper()
	l, stored, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, stored
}

// diff compares by a short text of each part, as entries are large here.
func diff(want, got controller.Stored) string { return cmp.Diff(describe(want), describe(got)) }

func describe(s controller.Stored) []string {
	out := []string{
		fmt.Sprintf("hard state %t, term %d, vote %d, commit %d", s.HardState != nil, s.HardState.GetTerm(), s.HardState.GetVote(), s.HardState.GetCommit()),
		fmt.Sprintf("snapshot %t, %v, %q", s.Snapshot != nil, s.Snapshot.GetMetadata(), s.Snapshot.GetData()),
	}
	for _, e := range s.Entries {
		out = append(out, fmt.Sprintf("entry %d, term %d, type %v, %d bytes, checksum %08x", e.GetIndex(), e.GetTerm(), e.GetType(), len(e.GetData()), crc32.Checksum(e.GetData(), castagnoli)))
	}
	return out
}

func TestSaves(t *testing.T) {
	first := []controller.Persist{{HardState: hard(1, 2, 0)}, {Entries: entries(1, 5, 1, 10)}}
	for _, tt := range []struct {
		name  string
		saves []controller.Persist
		want  controller.Stored
	}{
		{"nothing", nil, controller.Stored{}},
		{"votes and entries", first, controller.Stored{HardState: hard(1, 2, 0), Entries: entries(1, 5, 1, 10)}},
		{
			"entries replace what follows them", append(first, controller.Persist{HardState: hard(2, 1, 2), Entries: entries(4, 1, 2, 3)}),
			controller.Stored{HardState: hard(2, 1, 2), Entries: append(entries(1, 3, 1, 10), entries(4, 1, 2, 3)...)},
		},
		{
			"compaction", append(first, controller.Persist{Snapshot: snapshot(3, 1)}, controller.Persist{Entries: entries(6, 1, 1, 1)}),
			controller.Stored{HardState: hard(1, 2, 0), Snapshot: snapshot(3, 1), Entries: append(entries(4, 2, 1, 10), entries(6, 1, 1, 1)...)},
		},
		{
			"compaction twice", append(first, controller.Persist{Snapshot: snapshot(3, 1)}, controller.Persist{Snapshot: snapshot(3, 1)}, controller.Persist{Snapshot: snapshot(5, 1)}),
			controller.Stored{HardState: hard(1, 2, 0), Snapshot: snapshot(5, 1)},
		},
		{
			"snapshot of a leader, ahead", append(first, controller.Persist{HardState: hard(4, 0, 9), Snapshot: snapshot(9, 4), Entries: entries(10, 2, 4, 1)}),
			controller.Stored{HardState: hard(4, 0, 9), Snapshot: snapshot(9, 4), Entries: entries(10, 2, 4, 1)},
		},
		{
			"snapshot of a leader, of another history", append(first, controller.Persist{Snapshot: snapshot(3, 2)}),
			controller.Stored{HardState: hard(1, 2, 0), Snapshot: snapshot(3, 2)},
		},
		{
			"entries that the snapshot has", append(first, controller.Persist{Snapshot: snapshot(5, 1)}, controller.Persist{Entries: entries(4, 4, 1, 2)}),
			controller.Stored{HardState: hard(1, 2, 0), Snapshot: snapshot(5, 1), Entries: entries(6, 2, 1, 2)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l, _ := mustOpen(t, dir)
			for _, p := range tt.saves {
				must(t, l.Save(p))
			}
			must(t, l.Close())
			l, got := mustOpen(t, dir)
			if d := diff(tt.want, got); d != "" {
				t.Fatalf("stored (-want +got):\n%s", d)
			}
			must(t, l.Save(controller.Persist{HardState: hard(9, 1, 1)}))
		})
	}
}

func TestSaveThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir)
	must(t, l.Save(controller.Persist{Snapshot: snapshot(4, 1), Entries: entries(5, 2, 1, 1)}))
	for name, p := range map[string]controller.Persist{
		"gap":                    {Entries: entries(8, 1, 1, 1)},
		"entries not contiguous": {Entries: append(entries(7, 1, 1, 1), entries(9, 1, 1, 1)...)},
		"older snapshot":         {Snapshot: snapshot(3, 1)},
	} {
		if err := l.Save(p); err == nil || errors.Is(err, storage.ErrDead) {
			t.Errorf("%s: %v, expected an error of a log that stays alive", name, err)
		}
	}
	must(t, l.Save(controller.Persist{Entries: entries(7, 1, 1, 1)}))
	must(t, l.Close())
	_, got := mustOpen(t, dir)
	if d := diff(controller.Stored{Snapshot: snapshot(4, 1), Entries: entries(5, 3, 1, 1)}, got); d != "" {
		t.Fatalf("stored (-want +got):\n%s", d)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir)
	if _, _, err := Open(dir); !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("second open: %v, expected %v", err, storage.ErrLocked)
	}
}

// newest is the file that the last record is in.
func newest(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "log-*", "0*"))
	must(t, err)
	return found[len(found)-1]
}

// TestTornTail: a Save that did not return may be lost, at whatever byte it was cut; earlier ones may not.
func TestTornTail(t *testing.T) {
	dir := storagetest.TempDir(t)
	l, _ := mustOpen(t, dir)
	must(t, l.Save(controller.Persist{HardState: hard(3, 1, 1), Entries: entries(1, 3, 1, 5)}))
	info, err := os.Stat(newest(t, dir))
	must(t, err)
	kept := int(info.Size())
	must(t, l.Save(controller.Persist{HardState: hard(4, 2, 2), Entries: entries(4, 2, 4, 8)}))
	must(t, l.Close())
	path := newest(t, dir)
	whole, err := os.ReadFile(path)
	must(t, err)
	want := controller.Stored{HardState: hard(3, 1, 1), Entries: entries(1, 3, 1, 5)}

	check := func(name string, tail []byte) {
		t.Helper()
		must(t, os.WriteFile(path, append(append([]byte(nil), whole[:kept]...), tail...), 0o640))
		l, got, err := Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := diff(want, got); d != "" {
			t.Fatalf("%s: stored (-want +got):\n%s", name, d)
		}
		must(t, l.Save(controller.Persist{HardState: hard(7, 3, 1)}))
		must(t, l.Close())
		l, again, err := Open(dir)
		must(t, err)
		must(t, l.Close())
		if again.HardState.GetTerm() != 7 {
			t.Fatalf("%s: the Save after the repair is lost", name)
		}
	}
	for n := kept; n < len(whole); n++ {
		check(fmt.Sprintf("cut at byte %d", n), whole[kept:n])
	}
	for _, zeros := range []int{1, 20, 4096} {
		check(fmt.Sprintf("%d zeros", zeros), make([]byte, zeros))
	}
	for n := kept; n < len(whole); n++ { // full length, but not all of it arrived
		flipped := append([]byte(nil), whole[kept:]...)
		flipped[n-kept] ^= 0x10
		check(fmt.Sprintf("byte %d wrong", n), flipped)
	}
}

// TestDamage: a wrong byte in a record that has another behind it is no torn tail. Nothing may be given, nothing changed.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir)
	must(t, l.Save(controller.Persist{HardState: hard(3, 1, 1), Entries: entries(1, 2, 1, 5)}))
	info, err := os.Stat(newest(t, dir))
	must(t, err)
	must(t, l.Save(controller.Persist{HardState: hard(4, 1, 1)}))
	must(t, l.Close())
	path := newest(t, dir)
	whole, err := os.ReadFile(path)
	must(t, err)
	for at := range int(info.Size()) {
		for _, bit := range []byte{0x01, 0x80} {
			bad := append([]byte(nil), whole...)
			bad[at] ^= bit
			must(t, os.WriteFile(path, bad, 0o640))
			if _, _, err := Open(dir); !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("byte %d: %v, expected %v", at, err, storage.ErrDamaged)
			}
			after, err := os.ReadFile(path)
			must(t, err)
			if string(after) != string(bad) {
				t.Fatalf("byte %d: the damaged file was changed", at)
			}
		}
	}
	must(t, os.WriteFile(path, whole, 0o640))
	base := filepath.Join(dir, baseFile)
	raw, err := os.ReadFile(base)
	must(t, err)
	for at := range raw {
		bad := append([]byte(nil), raw...)
		bad[at] ^= 0x04
		must(t, os.WriteFile(base, bad, 0o640))
		if _, _, err := Open(dir); !errors.Is(err, storage.ErrDamaged) {
			t.Fatalf("base, byte %d: %v, expected %v", at, err, storage.ErrDamaged)
		}
	}
	must(t, os.Remove(base))
	if _, _, err := Open(dir); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("without base: %v, expected %v", err, storage.ErrDamaged)
	}
}

// TestSegments: records over several segments; a missing one is damage.
func TestSegments(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir)
	const n = 14
	for i := range n {
		must(t, l.Save(controller.Persist{Entries: entries(uint64(i+1), 1, 1, 200<<10)}))
	}
	must(t, l.Close())
	segments, err := rawwal.Segments(filepath.Dir(newest(t, dir)))
	must(t, err)
	if len(segments) < 3 {
		t.Fatalf("%d segments, expected at least 3", len(segments))
	}
	l, got := mustOpen(t, dir)
	if d := diff(controller.Stored{Entries: entries(1, n, 1, 200<<10)}, got); d != "" {
		t.Fatal("entries differ")
	}
	must(t, l.Close())
	must(t, os.Remove(rawwal.Path(filepath.Dir(newest(t, dir)), segments[1].Index)))
	if _, _, err := Open(dir); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("segment missing: %v, expected %v", err, storage.ErrDamaged)
	}
}

// TestCrashInSnapshot: wherever a Save with a snapshot stops, the next open finds all of it or nothing.
func TestCrashInSnapshot(t *testing.T) {
	stop := errors.New("stopped")
	for _, at := range []string{"base written", "old records gone"} {
		dir := t.TempDir()
		l, _, err := open(dir, func(name string) error {
			if name == at {
				return stop
			}
			return nil
		})
		must(t, err)
		must(t, l.Save(controller.Persist{HardState: hard(1, 1, 1), Entries: entries(1, 4, 1, 9)}))
		if err := l.Save(controller.Persist{HardState: hard(2, 1, 1), Snapshot: snapshot(2, 1)}); !errors.Is(err, stop) || !errors.Is(err, storage.ErrDead) {
			t.Fatalf("%s: %v", at, err)
		}
		if err := l.Save(controller.Persist{HardState: hard(3, 1, 1)}); !errors.Is(err, storage.ErrDead) {
			t.Fatalf("%s: save on a dead log: %v", at, err)
		}
		must(t, l.Close())
		_, got := mustOpen(t, dir)
		if d := diff(controller.Stored{HardState: hard(2, 1, 1), Snapshot: snapshot(2, 1), Entries: entries(3, 2, 1, 9)}, got); d != "" {
			t.Fatalf("%s: stored (-want +got):\n%s", at, d)
		}
	}
	// Before the rename there is only a file that does not count.
	dir := t.TempDir()
	l, _ := mustOpen(t, dir)
	must(t, l.Save(controller.Persist{Entries: entries(1, 1, 1, 1)}))
	must(t, l.Close())
	must(t, os.WriteFile(filepath.Join(dir, baseFile+".TEMP"), []byte("half a ba"), 0o640))
	_, got := mustOpen(t, dir)
	if d := diff(controller.Stored{Entries: entries(1, 1, 1, 1)}, got); d != "" {
		t.Fatalf("stored (-want +got):\n%s", d)
	}
}

func TestFailedWriteKillsTheLog(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir)
	must(t, l.Save(controller.Persist{HardState: hard(1, 1, 1)}))
	must(t, os.Mkdir(filepath.Join(dir, baseFile+".TEMP"), 0o750)) // stands in the way of the next base
	if err := l.Save(controller.Persist{Snapshot: snapshot(1, 1)}); !errors.Is(err, storage.ErrDead) {
		t.Fatalf("save: %v, expected %v", err, storage.ErrDead)
	}
	must(t, os.Remove(filepath.Join(dir, baseFile+".TEMP")))
	if err := l.Save(controller.Persist{HardState: hard(2, 2, 2)}); !errors.Is(err, storage.ErrDead) {
		t.Fatalf("save again: %v, expected %v", err, storage.ErrDead)
	}
	must(t, l.Close())
	_, got := mustOpen(t, dir)
	if d := diff(controller.Stored{HardState: hard(1, 1, 1)}, got); d != "" {
		t.Fatalf("stored (-want +got):\n%s", d)
	}
}

// TestModel compares with a plain fold of the saves, over random saves, reopens and torn tails.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := storagetest.TempDir(t)
		l, _, err := Open(dir)
		must(t, err)
		defer func() { _ = l.Close() }()
		var want controller.Stored
		first, term := uint64(1), uint64(1)
		reopen := func(rt *rapid.T) {
			must(t, l.Close())
			var got controller.Stored
			l, got, err = Open(dir)
			must(t, err)
			if d := diff(want, got); d != "" {
				rt.Fatalf("stored (-want +got):\n%s", d)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"entries": func(rt *rapid.T) {
				from := rapid.Uint64Range(first, first+uint64(len(want.Entries))).Draw(rt, "from")
				if from < first+uint64(len(want.Entries)) {
					term++
				}
				more := entries(from, rapid.IntRange(1, 4).Draw(rt, "n"), term, rapid.SampledFrom([]int{0, 100, 70000}).Draw(rt, "size"))
				p := controller.Persist{Entries: more}
				if rapid.Bool().Draw(rt, "with hard state") {
					p.HardState = hard(term, 1, from)
					want.HardState = p.HardState
				}
				must(t, l.Save(p))
				want.Entries = append(want.Entries[:from-first:from-first], more...)
			},
			"compact": func(rt *rapid.T) {
				n := rapid.IntRange(0, len(want.Entries)).Draw(rt, "n")
				if n == 0 {
					rt.Skip()
				}
				last := want.Entries[n-1]
				s := snapshot(last.GetIndex(), last.GetTerm())
				must(t, l.Save(controller.Persist{Snapshot: s}))
				want.Snapshot, want.Entries, first = s, want.Entries[n:], last.GetIndex()+1
			},
			"install": func(rt *rapid.T) {
				term++
				index := first + uint64(len(want.Entries)) + rapid.Uint64Range(0, 5).Draw(rt, "ahead")
				s := snapshot(index, term)
				must(t, l.Save(controller.Persist{Snapshot: s, HardState: hard(term, 0, index)}))
				want = controller.Stored{Snapshot: s, HardState: hard(term, 0, index)}
				first = index + 1
			},
			"reopen": reopen,
			"torn": func(rt *rapid.T) {
				path := newest(t, dir)
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				must(t, err)
				raw, err := encodeRecord(l.next, controller.Persist{Entries: entries(first+uint64(len(want.Entries)), 1, term, 40)})
				must(t, err)
				torn := append([]byte{byte(len(raw))}, raw...)
				_, err = f.Write(torn[:rapid.IntRange(0, len(torn)-1).Draw(rt, "bytes")])
				must(t, err)
				must(t, f.Close())
				reopen(rt)
			},
		})
		reopen(rt)
	})
}

// TestKill: a voter that is killed while it saves keeps everything that Save has returned for.
func TestKill(t *testing.T) {
	dir, child := storagetest.ChildDir()
	if child {
		l, stored, err := Open(dir)
		must(t, err)
		for term := stored.HardState.GetTerm() + 1; ; term++ {
			p := controller.Persist{HardState: hard(term, 1, 1), Entries: entries(term, 1, 1, int(term%50)*300)}
			if term%16 == 0 {
				p.Snapshot = snapshot(term-8, 1)
			}
			must(t, l.Save(p))
			storagetest.Acknowledge(int64(term))
		}
	}
	dir = t.TempDir()
	for round := range 6 {
		acked := uint64(storagetest.KillChild(t, "TestKill", dir, 5+round*13, func() {
			if _, _, err := Open(dir); !errors.Is(err, storage.ErrLocked) {
				t.Errorf("open while another process has it: %v, expected %v", err, storage.ErrLocked)
			}
		}))
		l, got := mustOpen(t, dir)
		if term := got.HardState.GetTerm(); term < acked || term > acked+1 {
			t.Fatalf("term %d, acknowledged %d", term, acked)
		}
		first := got.Snapshot.GetMetadata().GetIndex() + 1
		if got.Snapshot == nil {
			first = 1
		}
		for i, e := range got.Entries {
			want := entries(first+uint64(i), 1, 1, int((first+uint64(i))%50)*300)[0]
			if e.GetIndex() != want.GetIndex() || string(e.GetData()) != string(want.GetData()) {
				t.Fatalf("entry %d differs", first+uint64(i))
			}
		}
		if last := first + uint64(len(got.Entries)) - 1; last != got.HardState.GetTerm() {
			t.Fatalf("entries up to %d, expected %d", last, got.HardState.GetTerm())
		}
		must(t, l.Close())
	}
}
