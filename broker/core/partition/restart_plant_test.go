//go:build failpoints

package partition

import (
	"testing"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
)

// TestR21R22PlantHWResetOnRestart: with B10 a restarted leader takes its log start for the high watermark and tells consumers so; without it, it keeps what it saved and
// answers nothing until the watermark has reached the start of its epoch.
func TestR21R22PlantHWResetOnRestart(t *testing.T) {
	restarted := func() (hw int64, answer OffsetReply) {
		b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 5, ProducersAt: 9}, storage.Bounds{Durable: 9, End: 9})
		b.in(Assign{threeOf(1, 5)})
		b.took()
		b.in(ListOffsets{Token: "end", Replica: -1, LeaderEpoch: -1, Timestamp: -1})
		return b.r.hw, only[OffsetReply](b)
	}
	hw, answer := restarted()
	equal(t, "without the bug", []any{hw, answer.Code}, []any{int64(5), codeOffsetNotAvailable})

	if err := fault.Plant(fault.HWResetOnRestart); err != nil {
		t.Fatal(err)
	}
	defer fault.Uproot(fault.HWResetOnRestart)
	hw, answer = restarted()
	equal(t, "with the bug", []any{hw, answer.Code, answer.Offset}, []any{int64(0), int16(0), int64(0)})
}
