package main

// Rule is a rule that the reference broker keeps. The ids are stable: code, tests and planted bugs cite them.
type Rule struct {
	ID   string
	Text string
}

// Rules are the rules of replication and of groups (R), followed by those of storage (S). HW is the high watermark, LEO the log end, m is min.insync.replicas.
var Rules = []Rule{
	{"R1", "HW is the least LEO of the in-sync set; only what is below it is shown to consumers or acknowledged with acks=all; it never falls within an epoch"},
	{"R2", "While a change of the ISR is under way, HW counts over the current and the proposed set (an expansion at once, a shrink after the answer)"},
	{"R3", "HW does not advance while the ISR is smaller than m (KIP-966)"},
	{"R4", "m is checked at the append and again before the ack"},
	{"R5", "A waiting ack belongs to its epoch: it fails when leadership is lost"},
	{"R6", "A delayed request is registered first and then checked again, so that no wake-up is lost"},
	{"R7", "Requests of one connection take effect and are answered in order"},
	{"R8", "A follower cuts its log where its epochs leave the leader's, never to its own HW (KIP-101)"},
	{"R9", "OffsetForLeaderEpoch answers with the largest epoch up to the one asked for, and its end (KIP-279)"},
	{"R10", "Every fetch carries the leader epoch and is fenced both ways; a follower of another epoch counts for nothing (KIP-320)"},
	{"R11", "Every fetch carries the last fetched epoch; where histories differ, the answer is the point of divergence and no data"},
	{"R12", "The epoch list moves with the log and is durable before it is used; a leader without writes records its epoch too"},
	{"R13", "A follower appends exactly: base offset, checksum and order of epochs are checked"},
	{"R14", "A replica enters the ISR when it has reached HW and the start of the leader's epoch, and has fetched in this epoch"},
	{"R15", "A replica leaves the ISR by time since it was caught up, not by distance"},
	{"R16", "A change of the ISR is a compare-and-set at the controller: leader, epochs, members and their broker epochs must match (KIP-903)"},
	{"R17", "A clean election picks from the ISR, or from the ELR when that is empty; otherwise the partition is offline"},
	{"R18", "Members that leave an ISR smaller than m become eligible (ELR, KIP-966); an unclean restart ends that"},
	{"R19", "Every restart is a new broker epoch, fenced out of leadership and ISR before it serves"},
	{"R20", "A leader without controller cannot change the ISR and stops acknowledging once followers leave"},
	{"R21", "Followers know HW late: a fetch between HW and LEO is empty, the latest offset is unknown until HW has reached the epoch's start (KIP-207)"},
	{"R22", "After a restart: log start ≤ HW ≤ LEO"},
	{"R23", "The mark of a clean shutdown is written last and removed before serving; without it the tail is walked and cut at the first bad batch; damage below the recovery point is never cut silently"},
	{"R24", "Logs, fetches and produce are tied to the topic's id, not its name (KIP-516)"},
	{"R25", "Deletion stays below HW; the log start is replicated and durable; a follower behind it starts anew there"},
	{"R26", "Metadata never goes back; a controller answers after the commit, a new one after a commit of its own term"},
	{"R27", "Leader hints carry an epoch at least as new as the client's (KIP-951)"},
	{"R28", "Sequences of an idempotent producer are dense; a repeat of one of the last five batches gets its first answer"},
	{"R29", "Producer state follows the log: on followers, through truncation and restart"},
	{"R30", "Producer ids are unique in the cluster; a lower producer epoch is fenced"},
	{"R38", "A join completes when all known members have joined or the rebalance timeout has passed; sync, heartbeat and commit are checked by member and generation"},
	{"R39", "The first join brings an id only (KIP-394); the same instance id replaces a static member and fences the former one (KIP-345)"},
	{"R40", "The coordinator hands out exactly the assignment that was synced; a leader that joins again, or changed ownership, begins a new round"},
	{"R41", "The coordinator's state is a replicated log: nothing is acknowledged before it is committed there, a new coordinator loads all of it before it answers, an old one answers NOT_COORDINATOR"},
	{"R42", "KIP-848: a partition goes to its new owner only after the old one has given it back or is out"},
	{"R43", "A blocked join or sync keeps its member alive; a heartbeat in a round is told to join"},
	{"S1", "No ack before the flush that it promises"},
	{"S2", "Torn tails are repaired, good data is never cut"},
	{"S3", "After a failed write or flush the handle is dead: close, repair, open again"},
	{"S4", "A failed flush takes the replica offline"},
	{"S5", "Creations and renames of files are flushed too"},
	{"S6", "Truncation is atomic with the epoch list and the producer state"},
	{"S7", "Reads and writes of one log never race"},
	{"S8", "The checksum is checked on every replicated batch"},
}
