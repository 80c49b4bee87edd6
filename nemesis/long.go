package nemesis

// Long are sequences of three to five faults. Each leads into a state in which a broker has to know better than what it was told last; most tries miss its
// window, so they are for campaigns of many short runs.
func Long() []Preset {
	return []Preset{
		UnheardWatermark, UnheardWidening, DeafReturn, ThereAndBack, LastOneOut, ErrorThenPower, ErrorThenKill, PowerWhileLagging, KnowsLittle, HeirBehind, SlowDisksThenPower,
		TwoControllers, SlowWidening,
	}
}

// KnowsLittle makes a follower lead that has everything and knows of little that is committed.
var KnowsLittle = Preset{
	Name: "knows-little", Nodes: 3,
	Why: "While the heir stands still, the other follower gets records that are not committed. Then it stands still in turn, the heir catches up, all is committed, and the leader dies, and the heir as soon as it leads. Whoever is left has every acknowledged record and has heard of few: it must not cut its log by what it has heard (KIP-101).",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleHeir, Aside: true, Expect: sessions(0.4, 0.4), For: sessions(0.6, 0.6), Until: 1},
		{Kind: Pause, Role: RoleSpare, After: fetches(1, 4), For: sessions(1.2, 1.4), Until: 3},
		{Kind: Kill, Role: RoleLeader, Follows: 1, AckedMore: 1, After: fetches(0.2, 2), For: fetches(0, 0)},
		{Kind: Kill, Role: RoleLeader, Follows: 2, LeaderMoved: true, Expect: sessions(0.4, 0.4), For: sessions(0.4, 0.6)},
	},
}

// HeirBehind makes two epochs begin at different ends of the one before.
var HeirBehind = Preset{
	Name: "heir-behind", Nodes: 3,
	Why: "The heir stands still, and the other follower gets ahead of it. Then that one stands still, the leader dies and stands still when it is back, the heir leads and writes alone, and dies. The last one, which never heard of that epoch, leads: where the heir's log and its own part lies in the epoch before the last, and one look at the last is not enough (KIP-279).",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleHeir, Aside: true, Expect: sessions(0.4, 0.4), For: sessions(0.6, 0.6), Until: 2},
		{Kind: Pause, Role: RoleSpare, After: fetches(1, 4), For: sessions(1.2, 1.4), Until: 4},
		{Kind: Kill, Role: RoleLeader, Follows: 1, After: fetches(0, 0.2), For: fetches(0, 0)},
		{Kind: Pause, Role: RoleSame, Follows: 2, LeaderMoved: true, Expect: sessions(0.4, 0.4), For: sessions(0.5, 0.5), Until: 4},
		{Kind: Kill, Role: RoleLeader, Follows: 3, After: fetches(0.2, 3), For: fetches(0, 2)},
	},
}

// SlowDisksThenPower takes the power of all while flushes take long.
var SlowDisksThenPower = Preset{
	Name: "slow-disks-then-power",
	Why:  "Flushes take long everywhere, and all machines lose power: what was acknowledged must have been flushed, not only be about to be.",
	Steps: []PresetStep{
		{Kind: DiskSlow, Role: RoleAll, For: sessions(0.8, 1.2), Amount: fetches(0.4, 3), Until: 1},
		{Kind: PowerLoss, Role: RoleAll, After: sessions(0.2, 0.6), For: fetches(0, 3)},
	},
}

// TwoControllers lets voters forget between a vote and what follows from it.
var TwoControllers = Preset{
	Name: "two-controllers", Nodes: 3,
	Why: "Disks are slow, and the controller dies. While another one is elected, or just before or after, everybody dies, and all come back at once, the old one among them: whoever voted must know it, or two controllers share a term.",
	Steps: []PresetStep{
		{Kind: DiskSlow, Role: RoleAll, For: elections(5, 5), Amount: elections(0.25, 0.4), Until: 2},
		{Kind: Kill, Role: RoleController, After: fetches(0, 1), For: elections(4, 4), Until: 2},
		{Kind: Kill, Role: RoleAll, Follows: 1, After: elections(1.6, 2.7), For: fetches(0, 0)},
	},
}

// UnheardWatermark keeps from a follower how much is committed, and makes it lead.
var UnheardWatermark = Preset{
	Name: "unheard-watermark", Nodes: 4,
	Why: "One follower no longer hears the leader, and soon the other one does not either, although it has what it was sent. The first leaves the in-sync set, which commits what the other has; then the leader dies. The next leader knows of less that is committed than there is, and must not let anybody in by that.",
	Steps: []PresetStep{
		{Kind: Partition, Role: RoleSpare, Aside: true, Expect: sessions(0.4, 0.4), Shape: OneWayIn, Against: RoleLeader, For: sessions(3, 3)},
		{Kind: Partition, Role: RoleLeader, Shape: OneWayOut, Against: RoleFollowers, After: lags(0.2, 0.8), For: sessions(3, 3), Until: 2},
		{Kind: Kill, Role: RoleLeader, Follows: 1, ISRAtMost: 2, Expect: lags(0.6, 0.6), After: fetches(0, 0.5), For: sessions(1.5, 2.5)},
	},
}

// UnheardWidening keeps from a leader that its in-sync set has grown. The controller must be somebody else than the followers, which the leader has to hear.
var UnheardWidening = Preset{
	Name: "unheard-widening", Nodes: 4,
	Why: "A follower comes back, and the controller takes it into the in-sync set; the leader, which asked for it, never hears so. The newcomer stands still, and the others die once something was acknowledged: a member that the controller may elect must have it.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleSpare, Aside: true, Expect: sessions(0.4, 0.4), For: sessions(4, 4), Until: 1},
		{Kind: Partition, Role: RoleLeader, Shape: OneWayIn, Against: RoleController, ISRAtMost: 2, Expect: lags(1.2, 1.2), For: sessions(2, 2), Until: 3},
		{Kind: Pause, Role: RoleLastInISR, Follows: 1, ISRAtLeast: 3, Expect: sessions(0.3, 0.3), For: sessions(2, 2), Until: 3},
		{Kind: Kill, Role: RoleUnhurt, Follows: 2, AckedMore: 3, Expect: sessions(0.4, 0.4), For: fetches(0.5, 2)},
	},
}

// SlowWidening stops a follower while it is being taken into the in-sync set.
var SlowWidening = Preset{
	Name: "slow-widening", Nodes: 3,
	Why: "A follower comes back while the controllers' disks are slow, and stands still again while it is being taken into the in-sync set. Once it is in, and something was acknowledged in the meantime, the others die: a member that the controller may elect must have it, from the moment that the leader asks for it.",
	Steps: []PresetStep{
		{Kind: Partition, Role: RoleSpare, Aside: true, Expect: sessions(0.4, 0.4), Shape: OneWayIn, Against: RoleLeader, For: sessions(4, 4), Until: 1},
		{Kind: DiskSlow, Role: RoleAll, ISRAtMost: 2, Expect: lags(1.2, 1.2), For: elections(4, 4), Amount: elections(0.15, 0.4), Until: 3},
		{Kind: Pause, Role: RoleSame, Follows: 0, Healed: true, After: fetches(0.4, 2), For: sessions(2, 2), Until: 3},
		{Kind: Kill, Role: RoleUnhurt, Follows: 2, ISRAtLeast: 3, AckedMore: 3, Expect: elections(0.6, 0.6), For: fetches(0.5, 2)},
	},
}

// DeafReturn brings a leader back that does not hear what became of its log.
var DeafReturn = Preset{
	Name: "deaf-return", Nodes: 4,
	Why: "A leader that has run ahead dies. It comes back as a follower and asks the next leader, whose answers never come, while another follower still sleeps. Then that leader dies: a copy with another history must not have been counted.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollowers, For: sessions(0.7, 0.8), Until: 1, Stagger: sessions(2.5, 3)},
		{Kind: Kill, Role: RoleLeader, After: sessions(0.25, 0.5), For: sessions(4, 4), Until: 2},
		{Kind: Partition, Role: RoleSame, Follows: 1, LeaderMoved: true, Shape: OneWayIn, Against: RoleLeader, Expect: sessions(1, 1), For: sessions(2, 2.5), Until: 3},
		{Kind: Kill, Role: RoleLeader, Follows: 2, AckedMore: 1, Expect: sessions(0.8, 0.8), For: sessions(0.8, 1.2)},
	},
}

// ThereAndBack makes a node lead again that has just cut its log.
var ThereAndBack = Preset{
	Name: "there-and-back", Nodes: 3,
	Why: "A leader that has run ahead dies and is back at once, cut to the history of the next leader, which half of the clients cannot reach and which dies in turn: those clients come back with writes that the first one has seen and lost.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollowers, For: sessions(0.7, 0.8), Until: 1},
		{Kind: Kill, Role: RoleLeader, After: sessions(0.25, 0.5), For: fetches(0, 0.5)},
		{Kind: Partition, Role: RoleLeader, Follows: 1, LeaderMoved: true, Shape: ClientLink, Expect: sessions(0.3, 0.3), For: sessions(1, 1.4), Until: 3},
		{Kind: Kill, Role: RoleLeader, Follows: 2, ISRAtLeast: 3, After: fetches(0.2, 2), Expect: sessions(0.4, 0.4), For: sessions(0.8, 1.2)},
	},
}

// LastOneOut takes the in-sync set away one by one, one of them by a loss of power.
var LastOneOut = Preset{
	Name: "last-one-out", Nodes: 3,
	Why: "A follower hears nothing of the leader, so it leaves the in-sync set and goes on voting; the next loses power, comes back and hears nothing either; then the last one, the leader, dies. Who lost power may miss what was acknowledged, however lately it was in sync (KIP-966).",
	Steps: []PresetStep{
		{Kind: Partition, Role: RoleFollower, Aside: true, Expect: sessions(0.4, 0.4), Shape: OneWayIn, Against: RoleLeader, For: sessions(6, 6), Until: 3},
		{Kind: PowerLoss, Role: RoleFollower, ISRAtMost: 2, AckedMore: 5, Expect: lags(1.2, 1.2), For: fetches(0, 1)},
		{Kind: Partition, Role: RoleSame, Follows: 1, Shape: OneWayIn, Against: RoleLeader, For: sessions(5, 5), Until: 3},
		{Kind: Kill, Role: RoleLeader, Follows: 2, ISRAtMost: 1, Expect: sessions(0.3, 0.3), After: sessions(0.4, 0.7), For: sessions(1.6, 2)},
	},
}

// ErrorThenPower fails a flush everywhere, and then takes the power.
var ErrorThenPower = Preset{
	Name: "error-then-power",
	Why:  "A flush fails on every copy, and soon all machines lose power: what was acknowledged after the failure has to have been flushed by somebody.",
	Steps: []PresetStep{
		{Kind: FlushError, Role: RoleAll, For: fetches(0.5, 2)},
		{Kind: PowerLoss, Role: RoleAll, After: fetches(0.02, 0.6), For: fetches(0, 3)},
	},
}

// ErrorThenKill fails a write of the followers, and then kills the leader.
var ErrorThenKill = Preset{
	Name: "error-then-kill", Nodes: 3,
	Why: "A write fails on every follower, and soon the leader dies: what they did not store they must not have been counted for.",
	Steps: []PresetStep{
		{Kind: DiskError, Role: RoleFollowers, For: fetches(1, 4)},
		{Kind: Kill, Role: RoleLeader, After: fetches(0.2, 4), For: sessions(1, 2)},
	},
}

// PowerWhileLagging takes the power of everybody in sync while one follower sleeps.
var PowerWhileLagging = Preset{
	Name: "power-while-lagging", Nodes: 3,
	Why: "One follower stands still, so that acknowledgements rest on the others alone, and all machines lose power.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollower, For: sessions(3, 3), Until: 1},
		{Kind: PowerLoss, Role: RoleAll, ISRAtMost: 2, AckedMore: 10, Expect: lags(1.2, 1.2), For: fetches(0, 3)},
	},
}
