package nemesis

import (
	"time"

	"ackproof/nemesis/seccomp"
)

// Processes are the presets of real systems only: what one process can be made to suffer that the simulator has no counterpart for.
func Processes() []Preset {
	return []Preset{DriftOfReplicas, StrobeOfLeader, StarvedLeader, StarvedController, NoDescriptors, NoMemory, CrashAtWrite, CrashAtFlush, CrashAtRename, ErrorAtWrite, ErrorAtFlush}
}

// DriftOfReplicas makes the clocks of a partition's replicas run fast or slow.
var DriftOfReplicas = Preset{
	Name: "drift-of-replicas", Nodes: 2,
	Why: "The clocks of the replicas drift from the truth, and a leader dies: sessions and time-outs must be measured on a clock that nobody sets.",
	Steps: []PresetStep{
		{Kind: ClockDrift, Role: RoleInSync, For: sessions(1, 2), Amount: plain(50*time.Millisecond, 200*time.Millisecond)},
		{Kind: Kill, Role: RoleLeader, After: sessions(0.2, 0.6), For: sessions(0.3, 0.8)},
	},
}

// StrobeOfLeader makes the clock of the leader jump to and fro.
var StrobeOfLeader = Preset{
	Name:  "strobe-of-leader",
	Why:   "The leader's clock jumps to and fro all the time: nothing may be taken for older or newer by what time it was.",
	Steps: []PresetStep{{Kind: ClockStrobe, Role: RoleLeader, For: sessions(0.5, 1.2), Amount: sessions(0.3, 4)}},
}

// StarvedLeader leaves the leader next to no processor.
var StarvedLeader = Preset{
	Name: "starved-leader", Nodes: 2,
	Why: "The leader hardly runs: it is late with everything and not silent for long, so that it may be taken for dead and for living by turns; then it dies.",
	Steps: []PresetStep{
		{Kind: CPUStarve, Role: RoleLeader, For: sessions(0.8, 1.5), Amount: plain(2*time.Millisecond, 20*time.Millisecond)},
		{Kind: Kill, Role: RoleSame, After: sessions(0.3, 0.7), For: sessions(0.3, 0.9)},
	},
}

// StarvedController leaves the controller next to no processor.
var StarvedController = Preset{
	Name: "starved-controller", Nodes: 3,
	Why:   "The controller hardly runs: elections and changes of the in-sync sets are late, and must still be one after the other.",
	Steps: []PresetStep{{Kind: CPUStarve, Role: RoleController, For: sessions(0.8, 1.5), Amount: plain(2*time.Millisecond, 20*time.Millisecond)}},
}

// NoDescriptors leaves the leader no descriptor.
var NoDescriptors = Preset{
	Name:  "no-descriptors",
	Why:   "The leader can open nothing more, neither file nor connection: what it holds open goes on, and nothing that it acknowledged may hang on what it could not open.",
	Steps: []PresetStep{{Kind: Descriptors, Role: RoleLeader, For: sessions(0.5, 1.2)}},
}

// NoMemory refuses the leader memory.
var NoMemory = Preset{
	Name: "no-memory", Nodes: 2,
	Why:   "The leader is refused memory and ends in the middle of whatever it was doing.",
	Steps: []PresetStep{{Kind: Memory, Role: RoleLeader, For: sessions(0.8, 1.5)}},
}

// CrashAtWrite ends the leader in the middle of its writes.
var CrashAtWrite = Preset{
	Name: "crash-at-write", Nodes: 2,
	Why:   "The leader ends at the very write that would have stored a batch: what it told anybody of that batch before was a promise too early.",
	Steps: []PresetStep{{Kind: CrashAtCall, Call: seccomp.Write, Nth: 200, Role: RoleLeader, For: sessions(0.4, 1.2)}},
}

// CrashAtFlush ends the leader at a flush.
var CrashAtFlush = Preset{
	Name: "crash-at-flush", Nodes: 2,
	Why:   "The leader ends at a flush: what was to be acknowledged after it must not have been acknowledged.",
	Steps: []PresetStep{{Kind: CrashAtCall, Call: seccomp.Flush, Nth: 20, Role: RoleLeader, For: sessions(0.4, 1.2)}},
}

// CrashAtRename ends the controller as it is about to put one file in the place of another.
var CrashAtRename = Preset{
	Name: "crash-at-rename", Nodes: 2,
	Why:   "The controller ends when a new file is complete and the old one still has its name: it must come back from either.",
	Steps: []PresetStep{{Kind: CrashAtCall, Call: seccomp.Rename, Nth: 1, Role: RoleController, For: sessions(2.5, 3.5)}},
}

// ErrorAtWrite refuses the leader one write.
var ErrorAtWrite = Preset{
	Name: "error-at-write", Nodes: 2,
	Why:   "One write of the leader is refused: the batch must not be acknowledged, and what comes after it must not be taken for its successor.",
	Steps: []PresetStep{{Kind: ErrorAtCall, Call: seccomp.Write, Nth: 200, Role: RoleLeader, For: sessions(0.4, 1.2)}},
}

// ErrorAtFlush refuses a follower one flush.
var ErrorAtFlush = Preset{
	Name: "error-at-flush", Nodes: 2,
	Why:   "One flush of a follower is refused: what it should have kept may be gone, whatever a later flush says.",
	Steps: []PresetStep{{Kind: ErrorAtCall, Call: seccomp.Flush, Nth: 10, Role: RoleFollower, For: sessions(0.4, 1.2)}},
}
