package nemesis

// Machines are the presets that hurt the machine under the process: its power, its disk, its clock.
func Machines() []Preset {
	return []Preset{
		PowerOfLeader, PowerOfAll, PowerThenFailover, LagThenPower, WipedFollower, WipedHeir, DiskErrorOfLeader, DiskErrorOfFollower, FullDisk, SlowDiskThenKill, ClockOfLeader,
		ClockOfController,
	}
}

// PowerOfLeader takes the power of the leader.
var PowerOfLeader = Preset{
	Name: "power-of-leader", Nodes: 2,
	Why:   "The leader's machine loses power, and with it what was not flushed: what was acknowledged lives on the others, and the tail that is gone must not come back.",
	Steps: []PresetStep{{Kind: PowerLoss, Role: RoleLeader, For: sessions(0.2, 1.2)}},
}

// PowerOfAll takes the power of all nodes at once.
var PowerOfAll = Preset{
	Name:  "power-of-all",
	Why:   "All machines lose power at once: only what was flushed is certain to be there.",
	Steps: []PresetStep{{Kind: PowerLoss, Role: RoleAll, For: fetches(0, 3)}},
}

// PowerThenFailover lets a copy that lost its tail lead soon.
var PowerThenFailover = Preset{
	Name: "power-then-failover", Nodes: 3,
	Why: "A follower comes back from a loss of power without its tail, and soon the leader dies: a copy that forgot must not be counted on for what it forgot.",
	Steps: []PresetStep{
		{Kind: PowerLoss, Role: RoleFollower, For: fetches(0.5, 3)},
		{Kind: Kill, Role: RoleLeader, Healed: true, After: fetches(0.2, 5), For: sessions(0.3, 1.1)},
	},
}

// LagThenPower takes the power of a leader that has run ahead.
var LagThenPower = Preset{
	Name: "lag-then-power", Nodes: 3,
	Why: "The followers stand still, the leader runs ahead, and its machine loses power.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollowers, For: sessions(0.6, 0.8), Until: 1},
		{Kind: PowerLoss, Role: RoleLeader, After: sessions(0.25, 0.5), For: sessions(0.4, 1.2)},
	},
}

// WipedFollower takes a follower's logs, and then the leader.
var WipedFollower = Preset{
	Name: "wiped-follower", Nodes: 3,
	Why: "A follower comes back with an empty disk, and then the leader dies: an empty copy must not be taken for a complete one.",
	Steps: []PresetStep{
		{Kind: DiskWipe, Role: RoleFollower, For: fetches(0.5, 4)},
		{Kind: Kill, Role: RoleLeader, Healed: true, After: fetches(0.2, 6), For: sessions(0.3, 1.1)},
	},
}

// WipedHeir takes the logs of the follower that would be elected next, and then the leader, before that one is back.
var WipedHeir = Preset{
	Name: "wiped-heir", Nodes: 3,
	Why: "The follower that would lead next dies with its disk, and before it is back with an empty one the leader dies too: it must not lead for what it was.",
	Steps: []PresetStep{
		{Kind: DiskWipe, Role: RoleHeir, For: fetches(0.5, 3)},
		{Kind: Kill, Role: RoleLeader, After: fetches(0.1, 1), For: sessions(0.9, 1.3)},
	},
}

// DiskErrorOfLeader fails one write of the leader.
var DiskErrorOfLeader = Preset{
	Name: "disk-error-of-leader", Nodes: 2,
	Why:   "A write or flush of the leader fails once: what it says afterwards of that log must not be trusted.",
	Steps: []PresetStep{{Kind: DiskError, Role: RoleLeader, For: fetches(1, 4)}},
}

// DiskErrorOfFollower fails one write of a follower, and kills the leader.
var DiskErrorOfFollower = Preset{
	Name: "disk-error-of-follower", Nodes: 3,
	Why: "A write of a follower fails, and the leader dies: a follower that did not store what it fetched must not have been counted.",
	Steps: []PresetStep{
		{Kind: DiskError, Role: RoleFollower, For: fetches(1, 4)},
		{Kind: Kill, Role: RoleLeader, After: fetches(0.2, 6), For: sessions(0.4, 1.1)},
	},
}

// FullDisk fills the disk of the leader.
var FullDisk = Preset{
	Name: "full-disk", Nodes: 2,
	Why:   "The leader's disk is full for a while: writes are refused, and nothing that is stored may suffer.",
	Steps: []PresetStep{{Kind: DiskFull, Role: RoleLeader, For: sessions(0.4, 1.2)}},
}

// SlowDiskThenKill slows the disk of the leader down, and then kills it.
var SlowDiskThenKill = Preset{
	Name: "slow-disk-then-kill", Nodes: 2,
	Why: "The leader's flushes take long, and it dies among them: an acknowledgement must not overtake its flush.",
	Steps: []PresetStep{
		{Kind: DiskSlow, Role: RoleLeader, For: sessions(0.8, 1.5), Amount: fetches(0.4, 6), Until: 1},
		{Kind: PowerLoss, Role: RoleSame, After: sessions(0.3, 0.7), For: sessions(0.3, 0.9)},
	},
}

// ClockOfLeader makes the clock of the leader jump.
var ClockOfLeader = Preset{
	Name: "clock-of-leader", Nodes: 2,
	Why: "The leader's clock jumps, and while it is wrong the leader dies: no promise may hang on what time it is.",
	Steps: []PresetStep{
		{Kind: ClockSkew, Role: RoleLeader, For: sessions(0.8, 2), Amount: sessions(0.3, 4)},
		{Kind: Kill, Role: RoleSame, After: sessions(0.2, 0.6), For: sessions(0.4, 1)},
	},
}

// ClockOfController makes the clock of the controller jump.
var ClockOfController = Preset{
	Name: "clock-of-controller", Nodes: 3,
	Why:   "The controller's clock jumps: it may fence brokers that live, or keep dead ones, but two may not lead.",
	Steps: []PresetStep{{Kind: ClockSkew, Role: RoleController, For: sessions(0.8, 2), Amount: sessions(0.3, 4)}},
}
