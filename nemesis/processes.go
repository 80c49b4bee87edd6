package nemesis

import "time"

// Processes are the presets of real systems only: what one process can be made to suffer that the simulator has no counterpart for.
func Processes() []Preset {
	return []Preset{DriftOfAll, StrobeOfLeader}
}

// DriftOfAll makes all clocks run fast or slow, each by the same.
var DriftOfAll = Preset{
	Name: "drift-of-all", Nodes: 2,
	Why: "The clocks of all nodes drift from the truth, and a leader dies: sessions and time-outs must be measured on a clock that nobody sets.",
	Steps: []PresetStep{
		{Kind: ClockDrift, Role: RoleAll, For: sessions(1, 2), Amount: plain(50*time.Millisecond, 200*time.Millisecond)},
		{Kind: Kill, Role: RoleLeader, After: sessions(0.2, 0.6), For: sessions(0.3, 0.8)},
	},
}

// StrobeOfLeader makes the clock of the leader jump to and fro.
var StrobeOfLeader = Preset{
	Name:  "strobe-of-leader",
	Why:   "The leader's clock jumps to and fro all the time: nothing may be taken for older or newer by what time it was.",
	Steps: []PresetStep{{Kind: ClockStrobe, Role: RoleLeader, For: sessions(0.5, 1.2), Amount: sessions(0.3, 4)}},
}
