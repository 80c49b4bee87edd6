package nemesis

// OfDisks are the presets of real disks, beside those that the simulator has too (Machines).
func OfDisks() []Preset {
	return []Preset{SlowDisksThenPower, ErrorThenPower, ErrorThenKill, FlippedLeader, FlippedFollower, CutLeader, LieThenPower}
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

// CutLeader takes the end off a file of the leader's log.
var CutLeader = Preset{
	Name: "cut-leader", Nodes: 2,
	Why:   "The leader restarts without the end of a file that it had flushed: what it has is shorter than what it said, and must not be taken for all there was.",
	Steps: []PresetStep{{Kind: Truncate, Role: RoleLeader, For: fetches(0, 2)}},
}

// LieThenPower takes the power of a follower whose disk lied, and then the leader.
var LieThenPower = Preset{
	Name: "lie-then-power", Nodes: 3,
	Why: "A follower's disk says that it has flushed, and has not; its machine loses power, and soon the leader dies: whoever was gone is not counted on for what it said before.",
	Steps: []PresetStep{
		{Kind: FlushLie, Role: RoleFollower, For: sessions(0.6, 1.2), Until: 1},
		{Kind: PowerLoss, Role: RoleSame, After: sessions(0.3, 0.6), For: fetches(0.5, 3)},
		{Kind: Kill, Role: RoleLeader, Follows: 1, Healed: true, After: fetches(0.2, 6), For: sessions(0.3, 1.1)},
	},
}
