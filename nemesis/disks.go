package nemesis

// OfDisks are the presets of real disks, beside those that the simulator has too (Machines).
func OfDisks() []Preset {
	return []Preset{SlowDisksThenPower, ErrorThenPower, ErrorThenKill, FlippedLeader, FlippedFollower}
}

// FlippedLeader turns a bit over in the log of the leader.
var FlippedLeader = Preset{
	Name: "flipped-leader", Nodes: 2,
	Why:   "The leader restarts with a bit turned over in what it had flushed: it must not lead with what it can no longer vouch for, nor cut it off as if it had never been.",
	Steps: []PresetStep{{Kind: BitFlip, Role: RoleLeader, For: fetches(0, 2)}},
}

// FlippedFollower turns a bit over in the log of a follower, and kills the leader.
var FlippedFollower = Preset{
	Name: "flipped-follower", Nodes: 3,
	Why: "A follower restarts with a bit turned over in its log, and soon the leader dies: a copy that is damaged must not be taken for a whole one.",
	Steps: []PresetStep{
		{Kind: BitFlip, Role: RoleFollower, For: fetches(0.5, 3)},
		{Kind: Kill, Role: RoleLeader, Healed: true, After: fetches(0.2, 6), For: sessions(0.3, 1.1)},
	},
}
