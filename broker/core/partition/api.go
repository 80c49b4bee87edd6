package partition

import (
	"time"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// Input is something that happened to the replica. Exactly one Step is made per input, and the effects of a step are carried
// out in the order given before the next input that they may cause is fed back.
type Input interface{ input() }

// Token is the shell's own name for a waiting request. The core only hands it back.
type Token any

// State is what the controller decided about the partition, as the metadata log says it (R26).
type State struct {
	Leader         int32 // −1: none
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas       []int32
	ISR            []int32
	// BrokerEpochs has the registration epoch of each unfenced broker among Replicas; a replica that is missing here may not enter the ISR (R16, R19).
	BrokerEpochs map[int32]int64
	MinISR       int
	MaxBytes     int32 // largest accepted batch (max.message.bytes)
}

type (
	// Assign brings news from the metadata log. Older epochs than those known are ignored (R26).
	Assign struct{ State State }

	// Produce asks the leader to append one batch. Acks is 0, 1 or −1 (all). The reply comes as ProduceReply. The core owns the batch from here on.
	Produce struct {
		Token    Token
		Batch    record.Batch
		Acks     int16
		Deadline time.Time // when an unfinished acks=all request is answered REQUEST_TIMED_OUT
	}

	// Fetch asks for the bounds of a read (R1, R10, R11). The reply comes as FetchReply, at once. If Wait is set and there is nothing to read, the
	// token is also registered, in the same step (R6), and a Wake follows when a new Fetch may find more.
	Fetch struct {
		Token            Token
		Replica          int32 // broker id of a follower, −1 for a consumer
		ReplicaEpoch     int64 // the follower's broker epoch, −1 unknown (KIP-903)
		LeaderEpoch      int32 // what the asker takes for the current epoch, −1 for none (KIP-320)
		LastFetchedEpoch int32 // epoch of the last batch the asker has, −1 for none
		Offset           int64
		KnownHW          int64 // follower: the high watermark it was last told, −1 unknown: a newer one is a reason to answer
		LogStart         int64 // follower: its own log start (R25), −1 unknown
		LeaderOnly       bool  // consumer of a version before KIP-392: followers refuse
		Wait             bool
		// Patient, with Wait: a newer high watermark alone is no reason to answer a follower at once. It is registered all the same, and News tells of it.
		Patient bool
	}
	// CancelFetch forgets a registered token.
	CancelFetch struct{ Token Token }

	// ListOffsets asks for a bound: Earliest, Latest (the visible end for a consumer), or LatestLocal (this copy's log end).
	// By time is the shell's work: it asks the log, then checks the answer against the bounds. The reply comes at once.
	ListOffsets struct {
		Token       Token
		Replica     int32 // −1 consumer, −2 debugging consumer: the copy's own log end, leader or not
		LeaderEpoch int32 // −1 for none
		Timestamp   int64 // Kafka's special values: −1 latest, −2 earliest, −4 earliest local, −3 max timestamp (as latest)
	}
	// EpochEnd is OffsetForLeaderEpoch (R9).
	EpochEnd struct {
		Token       Token
		LeaderEpoch int32 // −1 for none
		Epoch       int32
	}
	// DeleteRecords raises the log start (R25); Offset −1 means the high watermark. It is answered once every in-sync replica has followed.
	DeleteRecords struct {
		Token    Token
		Offset   int64
		Deadline time.Time // when an unfinished request is answered REQUEST_TIMED_OUT
	}

	// Fetched is the leader's answer to this follower's fetch, for this partition. The offsets and epoch asked with must be
	// given back, so that a late answer is recognised.
	Fetched struct {
		LeaderEpoch   int32 // the epoch that was in the request
		Offset        int64 // the offset that was in the request
		Code          int16 // Kafka error code
		HighWatermark int64
		LogStart      int64
		Diverging     *storage.EpochStart // (epoch, end offset) of a diverging answer (R11); Start holds the end offset
		Batches       []record.Batch
	}

	// Appended, Flushed, Truncated and Reset say that an effect has been carried out.
	Appended struct{ End int64 }
	// Flushed: everything below End is durable.
	Flushed struct{ End int64 }
	// Cut: a Truncate, Trim or Reset effect has been carried out.
	Cut struct {
		Bounds storage.Bounds
		// Replayed holds the headers that the effect asked for with Replay.
		Replayed []record.Header
	}
	// StorageFailed: an effect failed; the replica goes offline (S3, S4).
	StorageFailed struct{ Err error }

	// ISRAnswer is the controller's answer to an AlterISR effect. Code 0 brings the new state.
	ISRAnswer struct {
		Code           int16
		LeaderEpoch    int32
		PartitionEpoch int32
		ISR            []int32
	}

	// ISRUnanswered says that no answer came to an AlterISR effect of that epoch, and none will: whether it took effect is unknown. The replica asks again.
	ISRUnanswered struct{ LeaderEpoch int32 }

	// Tick lets time pass: lagging followers, deadlines, checkpoints. A few times per replica.lag.time.max.ms.
	Tick struct{}
)

func (Assign) input()        {}
func (Produce) input()       {}
func (Fetch) input()         {}
func (CancelFetch) input()   {}
func (ListOffsets) input()   {}
func (EpochEnd) input()      {}
func (DeleteRecords) input() {}
func (Fetched) input()       {}
func (Appended) input()      {}
func (Flushed) input()       {}
func (Cut) input()           {}
func (StorageFailed) input() {}
func (ISRAnswer) input()     {}
func (ISRUnanswered) input() {}
func (Tick) input()          {}

// Effect is something that the shell is to do. Storage effects (Append, Flush, Truncate, Trim, Reset, Checkpoint) of one replica are carried out in the
// order in which they were given, one at a time, and each but Checkpoint is reported back by its input.
type Effect interface{ effect() }

type (
	// Append: add the batches to the log, then feed Appended. Keep as in storage.Log.
	Append struct {
		Batches []record.Batch
		Keep    bool
	}
	// Flush the log, then feed Flushed.
	Flush struct{}
	// Truncate the log to To and save Checkpoint, then feed Cut; with Replay, Cut brings the headers from the log start on (R29).
	Truncate struct {
		To         int64
		Checkpoint storage.Checkpoint
		Replay     bool
	}
	// Trim raises the log start, then feed Cut.
	Trim struct{ Checkpoint storage.Checkpoint }
	// Reset empties the log; it begins again at Start. Then feed Cut.
	Reset struct {
		Start      int64
		Checkpoint storage.Checkpoint
	}
	// Checkpoint: save it. No input follows, but a failure is reported by StorageFailed.
	Checkpoint struct{ Checkpoint storage.Checkpoint }

	// ProduceReply ends a Produce. For acks=0 there is one too; the shell drops it (or closes the connection on an error).
	ProduceReply struct {
		Token      Token
		Code       int16
		BaseOffset int64 // −1 on an error
		LogStart   int64
		// Leader and LeaderEpoch are hints for NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951), −1 if unknown (R27).
		Leader, LeaderEpoch int32
	}
	// FetchReply: read [Offset, UpTo) and answer with these bounds. Registered tells that a Wake will follow.
	FetchReply struct {
		Token               Token
		Code                int16
		Offset              int64
		UpTo                int64
		HighWatermark       int64
		LogStart            int64
		Diverging           *storage.EpochStart // R11
		Registered          bool                // a Wake will follow. Wait without Registered: there is something to tell, answer now
		Leader, LeaderEpoch int32               // hints, as in ProduceReply
	}
	// Wake: a registered fetch may find more now. The token is no longer registered.
	Wake struct{ Token Token }
	// News: there is a newer high watermark for a follower that is patient. Its token stays registered, and gets no more News. The shell answers a moment later, if no Wake comes first:
	// a leader with a steady stream of records tells of the last one's commit with the next record, and not in an answer of its own.
	News struct{ Token Token }
	// OffsetReply ends a ListOffsets.
	OffsetReply struct {
		Token       Token
		Code        int16
		Offset      int64
		LeaderEpoch int32
	}
	// EpochEndReply ends an EpochEnd.
	EpochEndReply struct {
		Token     Token
		Code      int16
		Epoch     int32
		EndOffset int64
	}
	// DeleteReply ends a DeleteRecords.
	DeleteReply struct {
		Token        Token
		Code         int16
		LowWatermark int64
	}
	// AlterISR: ask the controller for this in-sync set (AlterPartition, R16). The answer comes as ISRAnswer; without an answer Tick gives the effect again.
	AlterISR struct {
		LeaderEpoch    int32
		PartitionEpoch int32
		ISR            []Member
	}
	// RoleChanged: the replica leads, follows or does neither from now on; the shell starts or stops fetching (see Replica.FollowState).
	RoleChanged struct{ Role Role }
	// Offline: the replica failed (S4) and answers KAFKA_STORAGE_ERROR from now on.
	Offline struct{ Err error }
)

func (Append) effect()        {}
func (Flush) effect()         {}
func (Truncate) effect()      {}
func (Trim) effect()          {}
func (Reset) effect()         {}
func (Checkpoint) effect()    {}
func (ProduceReply) effect()  {}
func (FetchReply) effect()    {}
func (Wake) effect()          {}
func (News) effect()          {}
func (OffsetReply) effect()   {}
func (EpochEndReply) effect() {}
func (DeleteReply) effect()   {}
func (AlterISR) effect()      {}
func (RoleChanged) effect()   {}
func (Offline) effect()       {}

// Member is a replica with the broker epoch that the leader saw it fetch with (KIP-903).
type Member struct {
	Broker int32
	Epoch  int64 // −1 unknown
}

// Role is what this replica is at the moment.
type Role uint8

// The roles.
const (
	Idle Role = iota // no leader is known, or the partition is not ours
	Follower
	Leader
	Failed
)

// Config is what a replica needs to know for its whole life.
type Config struct {
	Self           int32         // this broker
	LagTime        time.Duration // replica.lag.time.max.ms (R15)
	FlushEach      bool          // flush before a batch counts (log.flush.interval.messages=1, S1)
	ProducerExpiry time.Duration // producer.id.expiration.ms; 0 = never
	CheckpointEach time.Duration // replica.high.watermark.checkpoint.interval.ms
}

// FollowState is what the shell needs for this follower's next fetch.
type FollowState struct {
	Leader           int32
	LeaderEpoch      int32
	Offset           int64 // where to fetch from
	LastFetchedEpoch int32
	LogStart         int64
	HighWatermark    int64
}

// Status is a snapshot for metrics, metadata and tests.
type Status struct {
	Role           Role
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
	LogStart       int64
	HighWatermark  int64
	LogEnd         int64
	Producers      int
}
