package host

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
)

// Asker is who fetches: a follower's broker id and the broker epoch that it says (−1: none), or −1 and −1 for a consumer.
func Asker(q *kmsg.FetchRequest) (replica int32, epoch int64) {
	replica, epoch = q.ReplicaID, -1
	if q.Version >= 15 {
		replica, epoch = q.ReplicaState.ID, q.ReplicaState.Epoch
	}
	return max(replica, -1), epoch
}

// NewsPause is how long a follower's fetch that has nothing to bring but a newer high watermark waits for records to come with it (partition.News). Under a steady load they come first, which
// spares each record one round trip of every follower; without load, followers, and whoever reads from them, know the high watermark this much later.
const NewsPause = 5 * time.Millisecond

// Question is what a Fetch request asks of one partition; Token and Wait are the host's own.
func Question(q *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) partition.Fetch {
	ask := partition.Fetch{
		LeaderEpoch: EpochOr(q.Version >= 9, p.CurrentLeaderEpoch), LastFetchedEpoch: EpochOr(q.Version >= 12, p.LastFetchedEpoch), Offset: p.FetchOffset,
		LogStart: p.LogStartOffset, KnownHW: p.HighWatermark, LeaderOnly: q.Version < 11,
	}
	ask.Replica, ask.ReplicaEpoch = Asker(q)
	if ask.KnownHW == 1<<63-1 {
		ask.KnownHW = -1 // kmsg's default, the largest number, stands for a follower that does not say
	}
	return ask
}

// EpochOr gives the field if the version has it, −1 otherwise.
func EpochOr(has bool, epoch int32) int32 {
	if !has {
		return -1
	}
	return epoch
}
