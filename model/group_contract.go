package model

import "fmt"

// When members of a consumer group commit.
const (
	CommitAfter  = "after"  // they have processed: at least once
	CommitBefore = "before" // they process: at most once
)

// RebalanceStorm is what a storm of rebalances is called where faults are counted: it is what puts claims to the test in a run without other faults.
const RebalanceStorm = "rebalance-storm"

// What the order of committing and processing costs when a member ends between the two. Neither is the broker's doing, and no claim is broken by it.
const (
	Unprocessed Anomaly = "unprocessed" // an acknowledged record that the group was given and that nobody processed
	Reprocessed Anomaly = "reprocessed" // a record that was processed again
)

// GroupContract adds to the contract of a log what consumer groups that read it are promised. Whatever the order of committing and processing is, the broker's part is the same: committed
// offsets are kept, and nothing is passed over that the group did not give up itself.
func GroupContract(c Contract, commit string) Contract {
	c.Workload, c.Commit = "group", commit
	if c.GroupBoundMS > 0 {
		for i := range c.Promises {
			if p := &c.Promises[i]; p.Claim == Liveness {
				p.Text += fmt.Sprintf(" While no fault is injected no group goes without progress for more than %d ms, however often its members change.", c.GroupBoundMS)
			}
		}
	}
	delivery := Promise{
		Claim: GroupDelivery,
		Text: "A group is given every acknowledged record at least once, between what it commits, and a partition has one owner at a time. Members commit what they have processed: " +
			"at least once, and an idempotent sink makes it once.",
		Permits: map[Anomaly]string{Reprocessed: "members commit after they process (--commit after: at least once); an idempotent sink took each once"},
	}
	if commit == CommitBefore {
		delivery.Text = "A group is given every acknowledged record at least once, between what it commits, and a partition has one owner at a time. Members commit before they process: at most once."
		delivery.Permits = map[Anomaly]string{
			Unprocessed: "members commit before they process (--commit before: at most once)",
			Reprocessed: "members seek back on purpose",
		}
	}
	commits := Promise{Claim: CommitSafety, Text: "An acknowledged offset commit is not lost or undone, and a member of an older generation commits nothing."}
	if c.PowerLoss {
		// What a coordinator knows is in a log as well. With it go commits, and the generations by which it tells members apart; and where records go, a group's position may lie behind
		// others that took their offsets.
		commits.Permits = map[Anomaly]string{CommittedOffsetRegression: powerCause, ZombieCommit: powerCause}
		delivery.Permits[GroupSkip], delivery.Permits[DoubleOwner] = powerCause, powerCause
		if delivery.Permits[Unprocessed] == "" {
			delivery.Permits[Unprocessed] = powerCause
		}
	}
	c.Promises = append(c.Promises, commits, delivery)
	return c
}
