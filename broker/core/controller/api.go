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

	Defaults        map[string]string // broker-wide topic defaults: min.insync.replicas, unclean.leader.election.enable, max.message.bytes
	DefaultRF       int16
	DefaultParts    int32
	AllowSingleCopy bool // accept topics with one replica
}

// Stored is what the shell found on disk: everything that Persist effects ever said, in order.
type Stored struct {
	HardState *raftpb.HardState
	Snapshot  *raftpb.Snapshot // nil if none
	Entries   []*raftpb.Entry  // after the snapshot, contiguous
}

// Input is something that happened to the control plane.
type Input interface{ input() }

// Token is the shell's name for a waiting request; the core hands it back.
type Token any

type (
	// Tick: Config.TickEvery has passed.
	Tick struct{}
	// Message of another voter's raft.
	Message struct{ Message *raftpb.Message }
	// Unreachable: sending to that voter failed.
	Unreachable struct{ Node int32 }
	// Request is a request to the controller: CreateTopics, DeleteTopics, CreatePartitions, IncrementalAlterConfigs, ElectLeaders, BrokerRegistration,
	// BrokerHeartbeat, AlterPartition, AllocateProducerIDs. It is answered by Reply; NOT_CONTROLLER if this voter does not lead, or when it loses the lead before
	// the answer is known (R26).
	Request struct {
		Token   Token
		Request kmsg.Request
	}
	// CancelRequest: nobody waits for that token any more.
	CancelRequest struct{ Token Token }
)

func (Tick) input()          {}
func (Message) input()       {}
func (Unreachable) input()   {}
func (Request) input()       {}
func (CancelRequest) input() {}

// Effect is something that the shell is to do, in the order given. A Persist must be durable before any effect behind it is carried out.
type Effect interface{ effect() }

type (
	// Persist the parts that are not nil, and flush. A snapshot replaces all entries up to its index. Compact: entries up to Snapshot's index may be dropped.
	Persist struct {
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
	// Publish: the metadata changed. The image is immutable; images come in the order of Image.Index.
	Publish struct{ Image *Image }
	// LeaderChanged: who leads the control plane, −1 unknown.
	LeaderChanged struct{ Leader int32 }
)

func (Persist) effect()       {}
func (Send) effect()          {}
func (Reply) effect()         {}
func (Publish) effect()       {}
func (LeaderChanged) effect() {}

// Image is the cluster's metadata after the raft entry Index. It and all that it holds are immutable once published.
type Image struct {
	Index          uint64
	Brokers        map[int32]*Broker
	Topics         map[string]*Topic
	NextProducerID int64
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
	LastKnownLeader int32   // KIP-966: the last one, if ISR and ELR became empty; −1 otherwise
}
