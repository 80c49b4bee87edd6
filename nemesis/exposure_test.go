package nemesis

import (
	"testing"

	"ackproof/systems"
)

// Node 3 leads alone when it is killed, after node 2 has lost its power: node 3 has everything, so nothing may be lost. Anything that is lost later takes that back.
func TestTheLastOneInSyncSparesWhatItHas(t *testing.T) {
	roles := func(leader int, isr ...int) systems.Roles {
		return systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{{Leader: leader, Replicas: []int{1, 2, 3}, ISR: isr}}}
	}
	begin := func() *Exposure {
		e := &Exposure{}
		e.Look(roles(3, 1, 2, 3))
		e.Look(roles(3, 2, 3)) // node 1 is out
		e.Strike(PowerLoss, []int{2})
		e.Look(roles(3, 3))
		return e
	}
	e := begin()
	e.Strike(Kill, []int{3})
	e.Look(roles(2, 2))
	if e.Exposed() {
		t.Error("loss is permitted although the last one in sync was only killed")
	}
	e.Strike(PowerLoss, []int{1})
	if !e.Exposed() {
		t.Error("loss is not permitted although power was lost once more")
	}
	e = begin()
	e.Strike(PowerLoss, []int{3})
	if !e.Exposed() {
		t.Error("loss is not permitted although the last one in sync lost power")
	}
	e = &Exposure{}
	e.Look(roles(3, 1, 2, 3))
	e.Strike(DiskFull, []int{1})
	e.Strike(PowerLoss, []int{2})
	away := roles(3, 3)
	away.Partitions[0].Offline = []int{2}
	e.Look(away)
	e.Strike(Kill, []int{3})
	if !e.Exposed() {
		t.Error("loss is not permitted although a broker that lost power, and did not say so yet, may be eligible")
	}
	e = &Exposure{}
	e.Look(roles(3, 1, 2, 3))
	e.Strike(PowerLoss, []int{2})
	e.Look(roles(3, 1, 3))
	e.Strike(Kill, []int{1, 3})
	if !e.Exposed() {
		t.Error("loss is not permitted although nobody was the last one in sync")
	}
}

// With a flush before the ack a loss of power loses nothing, unless the disk has lied.
func TestADiskThatLiedLosesWhatWasFlushed(t *testing.T) {
	for _, lied := range [][]int{nil, {1}} {
		e := &Exposure{Flushed: true}
		e.Look(systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1, 2}}}})
		e.Strike(FlushLie, lied)
		if e.Exposed() {
			t.Error("loss is permitted although a lie takes nothing by itself")
		}
		e.Strike(PowerLoss, []int{1, 2})
		if e.Exposed() != (lied != nil) {
			t.Errorf("disks of %v have lied, all lost power: loss is permitted: %t", lied, e.Exposed())
		}
	}
	if MayExpose([]Kind{PowerLoss}, true) || !MayExpose([]Kind{PowerLoss, FlushLie}, true) || !MayExpose([]Kind{Truncate}, true) {
		t.Error("what may come to permit a loss is not told apart")
	}
}

// What was sent after every copy was whole again is no longer excused, until the next loss, unless a disk may hold damage that nobody has seen yet.
func TestAnExposureEndsWhenAllAreWholeAgain(t *testing.T) {
	whole := systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1, 2}}}}
	behind := systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2}, ISR: []int{1}}}}
	now := uint64(0)
	e := &Exposure{Moment: func() uint64 { return now }}
	for _, step := range []struct {
		do   func()
		want uint64
	}{
		{func() { e.Look(whole) }, 0},
		{func() { e.Strike(PowerLoss, []int{1, 2}) }, 0},
		{func() { e.Look(behind) }, 0},
		{func() { e.Look(whole) }, 40},
		{func() { e.Look(behind) }, 40},
		{func() { e.Look(whole) }, 40},
		{func() { e.Strike(PowerLoss, []int{1}) }, 40},
		{func() { e.Strike(Kill, []int{2}) }, 0},
		{func() { e.Look(whole) }, 90},
		{func() { e.Strike(BitFlip, []int{2}) }, 0},
		{func() { e.Look(whole) }, 0},
	} {
		now += 10
		step.do()
		if got := e.Until(); got != step.want {
			t.Fatalf("after step %d: %d, expected %d", now/10, got, step.want)
		}
	}
}
