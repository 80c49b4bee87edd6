package nemesis

// OfGroups are the presets that aim at the coordinators of consumer groups. What happens to members is the workload's.
func OfGroups() []Preset {
	return []Preset{CoordinatorKill, CommitThenKill, CoordinatorPause, CoordinatorCut, CoordinatorTwice}
}

// CoordinatorKill kills a coordinator. Groups are shared anew all the time, so it is often in the middle of a rebalance.
var CoordinatorKill = Preset{
	Name: "coordinator-kill", Nodes: 2,
	Why:   "The coordinator dies while members join, sync and commit: what it acknowledged is in the log, and what it did not is nobody's.",
	Steps: []PresetStep{{Kind: Kill, Role: RoleCoordinator, For: sessions(0.3, 1.2)}},
}

// CommitThenKill kills a coordinator whose log is not replicated.
var CommitThenKill = Preset{
	Name: "commit-then-kill", Nodes: 3,
	Why: "The followers of the coordinator's log stand still while members commit, and it dies: a commit that was acknowledged before it was replicated is lost.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleCoordinatorFollowers, For: sessions(0.5, 0.7), Until: 1},
		{Kind: Kill, Role: RoleCoordinator, After: sessions(0.15, 0.35), For: sessions(1, 1.3)},
	},
}

// CoordinatorPause lets a coordinator sleep until another one has taken over.
var CoordinatorPause = Preset{
	Name: "coordinator-pause", Nodes: 2,
	Why:   "The coordinator stands still with commits in flight until another one has taken over, and wakes up in the belief that it is the one.",
	Steps: []PresetStep{{Kind: Pause, Role: RoleCoordinator, For: sessions(1.1, 1.6)}},
}

// CoordinatorCut cuts a coordinator off together with half of the clients.
var CoordinatorCut = Preset{
	Name: "coordinator-cut", Nodes: 3,
	Why:   "The coordinator is cut off from the other nodes and keeps half of the clients: on both sides somebody coordinates, and only one side may acknowledge.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleCoordinator, Shape: Isolate, HalfClients: true, For: sessions(1.1, 1.6)}},
}

// CoordinatorTwice kills the coordinator, and then the one that has just taken over.
var CoordinatorTwice = Preset{
	Name: "coordinator-twice", Nodes: 3,
	Why: "The coordinator dies, and its successor while it loads or has hardly begun to serve: whoever comes third has to know everything.",
	Steps: []PresetStep{
		{Kind: Kill, Role: RoleCoordinator, For: sessions(1.5, 1.9), Until: 1},
		{Kind: Kill, Role: RoleCoordinator, After: sessions(1.05, 1.4), For: sessions(0.3, 1)},
	},
}
