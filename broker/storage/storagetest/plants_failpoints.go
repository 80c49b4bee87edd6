//go:build failpoints

package storagetest

import (
	"slices"
	"testing"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
)

// RunDamagePlants shows what the planted bugs of recovery change: without them, zeros at the end of a batch of the right length are cut off (B14), and damage
// below the recovery point is said and nothing is cut (B15).
func RunDamagePlants(t *testing.T, f Files) {
	all := TwoEpochs()
	m := f.Build(t, 1<<20, 3, all)
	name := f.Segments(m)[0]
	places := f.Batches(m[name])
	spoil := func(i int, change func(body []byte)) Image {
		raw := slices.Clone(m[name])
		change(raw[places[i].End-10 : places[i].End])
		return m.With(name, raw)
	}
	for _, tt := range []struct {
		bug           fault.Bug
		image         Image
		sound, broken int // batches that the log then has; −1: it is damaged
	}{
		{fault.TornTailAccepted, spoil(5, func(body []byte) { clear(body) }), 5, 6},
		{fault.DamageIsCut, spoil(1, func(body []byte) { body[0] ^= 1 }), -1, 1},
	} {
		for _, planted := range []bool{false, true} {
			want := tt.sound
			if planted {
				must(t, fault.Plant(tt.bug))
				want = tt.broken
			}
			log, err := f.Open(tt.image.Put(t), 1<<20)
			fault.Uproot(tt.bug)
			if want < 0 {
				wantError(t, tt.bug.ID, err, storage.ErrDamaged)
				continue
			}
			must(t, err)
			if end := log.Bounds().End; end != int64(2*want) {
				t.Errorf("%s planted %t: the log ends at %d, expected %d", tt.bug.ID, planted, end, 2*want)
			}
			must(t, log.Close(false))
		}
	}
}
