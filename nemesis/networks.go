package nemesis

import "time"

// Networks are the presets of networks that carry packets, and of machines that vanish from them.
func Networks() []Preset {
	return []Preset{DeathOfLeader, LateLeader, LossyLeader, ClogOfLeader, RepeatingLeader, DisorderlyLeader, GarbledLeader, SlowLinksOfLeader, DeathThenFailover, LateThenKill}
}

// DeathOfLeader takes the machine of the leader off the net.
var DeathOfLeader = Preset{
	Name: "death-of-leader", Nodes: 2,
	Why:   "The leader's machine vanishes: no connection ends, nothing refuses, so that time-outs alone can tell.",
	Steps: []PresetStep{{Kind: MachineDeath, Role: RoleLeader, For: sessions(0.6, 1.5)}},
}

// DeathThenFailover kills the next leader soon after a machine is back.
var DeathThenFailover = Preset{
	Name: "death-then-failover", Nodes: 3,
	Why: "A machine vanishes and comes back, and soon its successor dies: connections of its former life must not be taken for those of the new one.",
	Steps: []PresetStep{
		{Kind: MachineDeath, Role: RoleLeader, For: sessions(0.6, 1.2)},
		{Kind: Kill, Role: RoleLeader, Healed: true, After: fetches(0.5, 6), For: sessions(0.3, 1.1)},
	},
}

// LateLeader delays all that the leader sends and hears.
var LateLeader = Preset{
	Name: "late-leader", Nodes: 2,
	Why: "Everything to and from the leader is late: time-outs must leave room for a slow network, and answers that come after them must do no harm.",
	Steps: []PresetStep{{Kind: PacketDelay, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(0.6, 1.2),
		Amount: plain(5*time.Millisecond, 60*time.Millisecond)}},
}

// LateThenKill kills a leader whose followers hear it late.
var LateThenKill = Preset{
	Name: "late-then-kill", Nodes: 3,
	Why: "What the leader sends is late, and it dies with much of it under way: nothing of that may have been acknowledged for others.",
	Steps: []PresetStep{
		{Kind: PacketDelay, Role: RoleLeader, Shape: OneWayOut, For: sessions(0.8, 1.2), Amount: plain(20*time.Millisecond, 150*time.Millisecond), Until: 1},
		{Kind: Kill, Role: RoleSame, After: sessions(0.3, 0.5), For: sessions(0.3, 0.9)},
	},
}

// LossyLeader loses packets of the leader.
var LossyLeader = Preset{
	Name: "lossy-leader", Nodes: 2,
	Why:   "Packets of the leader are lost and sent again late: streams stall for moments, the one more than the other.",
	Steps: []PresetStep{{Kind: PacketLoss, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(0.6, 1.2), Percent: 5}},
}

// RepeatingLeader sends packets of the leader twice.
var RepeatingLeader = Preset{
	Name: "repeating-leader", Nodes: 2,
	Why:   "Packets of the leader come twice.",
	Steps: []PresetStep{{Kind: PacketDuplicate, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(0.4, 0.8), Percent: 20}},
}

// DisorderlyLeader lets packets of the leader overtake each other.
var DisorderlyLeader = Preset{
	Name: "disorderly-leader", Nodes: 2,
	Why:   "Packets of the leader overtake each other.",
	Steps: []PresetStep{{Kind: PacketReorder, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(0.4, 0.8), Percent: 20}},
}

// GarbledLeader flips bits in packets of the leader.
var GarbledLeader = Preset{
	Name: "garbled-leader", Nodes: 2,
	Why:   "Bits flip in packets of the leader: checksums must keep them from everybody.",
	Steps: []PresetStep{{Kind: PacketCorrupt, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(0.4, 0.8), Percent: 5}},
}

// SlowLinksOfLeader narrows the links of the leader.
var SlowLinksOfLeader = Preset{
	Name: "slow-links-of-leader", Nodes: 2,
	Why:   "The links of the leader carry less than it is asked to: followers lag, buffers fill, requests time out.",
	Steps: []PresetStep{{Kind: LinkRate, Role: RoleLeader, Shape: Isolate, For: sessions(0.6, 1.2), Rate: 1 << 20}},
}

// ClogOfLeader lets packets of the leader wait and come all at once, in any order.
var ClogOfLeader = Preset{
	Name: "clog-of-leader", Nodes: 2,
	Why:   "Nothing of what the leader sends or hears arrives for a while, and then all of it at once and in any order: words of yesterday must be known as such.",
	Steps: []PresetStep{{Kind: LinkClog, Role: RoleLeader, Shape: Isolate, For: sessions(0.7, 1.3), Shuffle: true}},
}
