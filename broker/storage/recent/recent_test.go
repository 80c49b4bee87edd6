package recent

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/sample"
)

// memory counts its holders.
type memory struct{ holders int }

func (m *memory) Retain()  { m.holders++ }
func (m *memory) Release() { m.holders-- }

// What the rings keep or a reader sends is held, once for each, and everything else is let go of.
func TestHolders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(rapid.IntRange(0, 5000).Draw(t, "budget"))
		rings := []*Ring{c.Ring(), c.Ring(), nil}
		ends := make([]int64, len(rings))
		all := map[*byte]*memory{} // by the batch's first byte
		var reading []storage.Records
		at := func(t *rapid.T) int { return rapid.IntRange(0, len(rings)-1).Draw(t, "ring") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := at(t)
				var more []record.Batch
				for range rapid.IntRange(1, 3).Draw(t, "batches") {
					b := sample.Batch(ends[i], 1, 1, rapid.IntRange(10, 2000).Draw(t, "size"))
					m := &memory{}
					b.Hold(m)
					all[&b.Bytes()[0]] = m
					more = append(more, b)
					ends[i] = b.NextOffset()
				}
				rings[i].Add(more)
			},
			"drop": func(t *rapid.T) { rings[at(t)].Drop() },
			"read": func(t *rapid.T) {
				i := at(t)
				from := rapid.Int64Range(0, ends[i]).Draw(t, "from")
				if run, ok := rings[i].Read(from, ends[i], 3000); ok {
					reading = append(reading, run)
				}
			},
			"sent": func(t *rapid.T) {
				if len(reading) == 0 {
					t.Skip("nobody reads")
				}
				i := rapid.IntRange(0, len(reading)-1).Draw(t, "which")
				reading[i].Release()
				reading = slices.Delete(reading, i, i+1)
			},
			"": func(t *rapid.T) {
				want := map[*byte]int{}
				used := 0
				for _, r := range rings[:2] {
					for _, b := range r.batches {
						want[&b.Bytes()[0]]++
						used += len(b.Bytes())
					}
				}
				for _, run := range reading {
					for _, chunk := range run.Chunks() {
						want[&chunk.Memory[0]]++
					}
				}
				for first, m := range all {
					if m.holders != want[first] {
						t.Fatalf("a batch has %d holders, expected %d", m.holders, want[first])
					}
				}
				lent := 0
				for _, run := range reading {
					lent += run.Len()
				}
				if c.lent != lent || lent > lendsMost*c.budget {
					t.Fatalf("readers have %d bytes, counted are %d, the budget is %d", lent, c.lent, c.budget)
				}
				if bytes, _ := c.Used(); bytes != used || bytes > c.budget {
					t.Fatalf("%d bytes are kept, counted are %d, the budget is %d", used, bytes, c.budget)
				}
			},
		})
	})
}
