package controller

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"
)

// Config of the control plane on one broker. Every broker is a voter.
type Config struct {
	Self    int32
	Voters  []int32 // all brokers, Self included, ascending
	Cluster string  // cluster id, from which topic ids are derived

	TickEvery      time.Duration // how often the shell feeds Tick (raft's tick; 50 ms)
	ElectionTicks  int           // raft election time-out in ticks (10)
	SessionTimeout time.Duration // broker.session.timeout.ms: a broker without heartbeats is fenced
	ImbalanceEach  time.Duration // leader.imbalance.check.interval.seconds; 0 = no preferred election by itself
	SnapshotAfter  int           // entries applied between snapshots of the raft log

	Defaults        map[string]string // topic defaults by topic key (ConfigKeys): min.insync.replicas, unclean.leader.election.enable, max.message.bytes, …
	DefaultRF       int16             // default.replication.factor, at least 1
	DefaultParts    int32             // num.partitions, at least 1
	AllowSingleCopy bool              // accept topics with one replica
}

// Stored is what the shell found on disk: everything that Persist effects ever said, in order.
type Stored struct {
	HardState *raftpb.HardState
	Snapshot  *raftpb.Snapshot // nil if none
	Entries   []*raftpb.Entry  // after the snapshot, contiguous
}

// Input is something that happened to the control plane.
type Input interface{ input() }

// Token is the shell's name for a waiting request; the core hands it back. It must be comparable.
type Token any

type (
	// Tick: Config.TickEvery has passed.
	Tick struct{}
	// Campaign: stand for election now instead of after raft's time-out, as when the cluster starts. While there is a leader it changes nothing (PreVote).
	Campaign struct{}
	// Message of another voter's raft.
	Message struct{ Message *raftpb.Message }
	// Unreachable: sending to that voter failed.
	Unreachable struct{ Node int32 }
	// Request is a request to the controller: CreateTopics, DeleteTopics, CreatePartitions, IncrementalAlterConfigs, ElectLeaders, BrokerRegistration,
	// BrokerHeartbeat, AlterPartition, AllocateProducerIDs. It is answered by Reply; NOT_CONTROLLER if this voter does not lead, or when it loses the lead before
	// the answer is known (R26): in the second case the request may or may not have taken effect. For any other request the Reply's Response is nil.
	// The core owns the request from here on.
	Request struct {
		Token   Token
		Request kmsg.Request
	}
	// CancelRequest: nobody waits for that token any more.
	CancelRequest struct{ Token Token }
)

func (Tick) input()          {}
func (Campaign) input()      {}
func (Message) input()       {}
func (Unreachable) input()   {}
func (Request) input()       {}
func (CancelRequest) input() {}

// Effect is something that the shell is to do, in the order given. A Persist must be durable before any effect behind it is carried out.
type Effect interface{ effect() }

type (
	// Persist the parts that are not nil, and flush, in this order: CutFrom, Snapshot, HardState with Entries. A crash between two of them is fine.
	// A snapshot replaces all entries up to its index, which may be dropped; those behind it stay.
	Persist struct {
		// CutFrom, if not 0: first drop all stored entries from this index on. It comes with a snapshot that the leader sent because our log had left
		// the leader's: what we hold behind it belongs to the log that lost.
		CutFrom   uint64
		HardState *raftpb.HardState
		Snapshot  *raftpb.Snapshot
		Entries   []*raftpb.Entry // replace everything from the first one's index on
	}
	// Send a raft message to another voter; loss is allowed.
	Send struct {
		To      int32
		Message *raftpb.Message
	}
	// Reply ends a Request.
	Reply struct {
		Token    Token
		Response kmsg.Response
	}
	// Publish: entries were applied. The image is immutable; images come in the order of Image.Index. Topics and partitions
	// that did not change are the same pointers as in the image before, unless that came from a snapshot. A broker serves by an image only once the image has the registration of its own incarnation (R19): what an older one says about
	// its leaderships was said to the process before it.
	Publish struct{ Image *Image }
	// LeaderChanged: who leads the control plane, −1 unknown. This broker names itself only once it may answer (R26).
	LeaderChanged struct{ Leader int32 }
	// Failed: this voter cannot go on, because what it had persisted is gone or does not fit together. It answers NOT_CONTROLLER from now on and takes no
	// more part in raft: voting without its memory could undo what it agreed to.
	Failed struct{ Err error }
)

func (Persist) effect()       {}
func (Send) effect()          {}
func (Reply) effect()         {}
func (Publish) effect()       {}
func (LeaderChanged) effect() {}
func (Failed) effect()        {}

// Image is the cluster's metadata after the raft entry Index. It and all that it holds are immutable once published.
type Image struct {
	Index          uint64
	Brokers        map[int32]*Broker
	Topics         map[string]*Topic
	NextProducerID int64             // first id of the next block (R30)
	Defaults       map[string]string // cluster-wide topic defaults, as the controller in office was configured; see Image.Config
}

// Broker is one registration.
type Broker struct {
	ID           int32
	Epoch        int64 // raft index of the registration: every restart has a new one (R19)
	Incarnation  [16]byte
	Host         string
	Port         int32
	Rack         string
	Fenced       bool
	ShuttingDown bool // in controlled shutdown
}

// Topic is one topic.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions []*Partition
	Configs    map[string]string // what differs from the broker's defaults
}

// Partition is one partition's registration; see replication rules R16-R18.
type Partition struct {
	Leader          int32 // −1: none
	LeaderEpoch     int32
	PartitionEpoch  int32
	Replicas        []int32
	ISR             []int32
	ELR             []int32 // KIP-966: eligible when the ISR is empty
	LastKnownLeader int32   // KIP-966: who led when the ISR became empty; elected again if the ELR is empty too. −1: none
	Lost            []int32 `json:",omitempty"` // have said that their logs are gone and are not in sync again; elected only if it need not be clean, and there is nobody else (R17)
}
