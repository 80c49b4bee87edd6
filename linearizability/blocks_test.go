package linearizability

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBlocks: what was put under a number stays there, numbers that were taken together lie together, and a lane has what it took.
func TestBlocks(t *testing.T) {
	var b blocks[int]
	var lanes [3]lane
	want := make(map[int32]int)
	var singles [3][]int32
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		i, n := r.IntN(3), int32(1)
		if i == 2 { // the other two take one by one
			n = r.Int32N(3 * blockSize)
		}
		if n == 0 {
			continue
		}
		first, ok := b.take(&lanes[i], n)
		if !ok {
			t.Fatal("no more numbers")
		}
		for j := range b.span(first, n) {
			number := first + int32(j)
			if _, twice := want[number]; twice {
				t.Fatalf("number %d was given twice", number)
			}
			want[number] = r.Int()
			b.span(first, n)[j] = want[number]
		}
		singles[i] = append(singles[i], first)
	}
	for number, v := range want {
		if *b.at(number) != v {
			t.Fatalf("number %d holds %d, want %d", number, *b.at(number), v)
		}
	}
	for i := range 2 {
		if lanes[i].size() != len(singles[i]) {
			t.Errorf("lane %d has %d, want %d", i, lanes[i].size(), len(singles[i]))
		}
		for _, from := range []int{0, 1, blockSize, len(singles[i])} {
			var got []int32
			for number, v := range b.of(&lanes[i], from) {
				if got = append(got, number); *v != want[number] {
					t.Errorf("number %d holds %d, want %d", number, *v, want[number])
				}
			}
			if !slices.Equal(got, singles[i][from:]) {
				t.Errorf("lane %d from %d on is %v, want %v", i, from, got, singles[i][from:])
			}
		}
	}
}

// TestMoments: every event keeps its sequence number and its time.
func TestMoments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var m moments
		var want []eventStamp
		now := eventStamp{}
		for range rapid.IntRange(0, 3*momentsInGroup).Draw(rt, "events") {
			now.seq += rapid.SampledFrom([]uint64{1, 1, 1, 2, 300, 1 << 40}).Draw(rt, "step")
			now.time += time.Duration(rapid.SampledFrom([]int64{0, 1, 900, 1 << 31, 1 << 50}).Draw(rt, "time"))
			want = append(want, now)
			if n := m.add(now.seq, now.time); int(n) != len(want) {
				rt.Fatalf("event %d has the number %d", len(want), n)
			}
		}
		m.close()
		if m.at(0) != (eventStamp{}) {
			rt.Fatalf("no event is at %v", m.at(0))
		}
		for i, w := range want {
			if got := m.at(instant(i + 1)); got != w {
				rt.Fatalf("event %d is at %v, want %v", i+1, got, w)
			}
		}
	})
}

// TestTable: numbers of any size and order find their values.
func TestTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var table table[int]
		want := make(map[int32]int)
		keys := rapid.OneOf(rapid.Int32Range(-3, 20), rapid.Int32Range(1000, 3000), rapid.Int32())
		for i := range rapid.IntRange(0, 300).Draw(rt, "values") {
			key := keys.Draw(rt, "key")
			if _, known := want[key]; !known {
				want[key] = i
				table.add(key, &i)
			}
		}
		for key, v := range want {
			if got := table.find(key); got == nil || *got != v {
				rt.Fatalf("%d finds %v, want %d", key, got, v)
			}
		}
		if key := keys.Draw(rt, "other"); want[key] == 0 && table.find(key) != nil && *table.find(key) != 0 {
			rt.Fatalf("%d finds %d, want nothing", key, *table.find(key))
		}
		if len(table.keys) != len(want) {
			rt.Fatalf("%d keys, want %d", len(table.keys), len(want))
		}
	})
}
