// Package controller is the control plane of the cluster as a pure state machine: which brokers are alive, which topics exist, who leads each
// partition and who is in sync. Its state is a log replicated by etcd raft among all brokers; every broker applies the log to its own Image, so there is
// no fetching of metadata. The package knows nothing of sockets, files, clocks and goroutines: the shell feeds Step and carries out its effects.
//
// Start reading at api.go, then Step here. A request goes leader.go (admission) → entry.go (into the raft log) → apply.go and the files beside it, one per
// noun (back out of it, on every broker alike) → Reply. elections.go has the rules that keep acknowledged records.
package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// none stands for no broker.
const none int32 = -1

// Controller is one voter of the control plane. It is not safe for concurrent use.
type Controller struct {
	cfg  Config
	raft *raft.RawNode
	log  *raft.MemoryStorage
	hard *raftpb.HardState // newest

	image       *Image
	appliedTerm uint64 // term of the entry that image is the result of
	snapshot    uint64 // index of our newest snapshot
	published   uint64 // Index of the image published last

	sending  map[uint64]int // ticks since a snapshot was sent to that raft node
	lastTick time.Time
	office   *office // not nil while this voter leads and may answer (R26)
	leader   int32   // as told by LeaderChanged
	led      int32   // the other broker that raft last knew as its leader, none if there was none since our own office
	silence  int     // ticks since the last message of that one

	effects []Effect
	replies []Effect // held back until the image that they speak of is published
	failed  error
}

// New builds the voter from what it persisted, and returns the first effects: on the first start of all it persists the state that all voters start from,
// and it always publishes the image that is known to be committed.
func New(cfg Config, stored Stored, now time.Time) (*Controller, []Effect, error) {
	if err := cfg.check(); err != nil {
		return nil, nil, err
	}
	c := &Controller{cfg: cfg, sending: map[uint64]int{}, lastTick: now, leader: none, led: none}
	if err := c.restore(stored); err != nil {
		return nil, nil, fmt.Errorf("control plane of broker %d: %w", cfg.Self, err)
	}
	if len(cfg.Voters) == 1 {
		c.guard(func() error { return c.raft.Campaign() }) // nobody else to wait for
	}
	c.guard(func() error { return c.drain(now) })
	if c.failed != nil {
		return nil, nil, c.failed
	}
	if c.published == 0 {
		c.emit(Publish{c.image})
		c.published = c.image.Index
	}
	return c, c.take(), nil
}

func (cfg Config) check() error {
	bad := func(what string, got any, want string) error {
		return fmt.Errorf("configuration of the control plane: %s is %v, want %s", what, got, want)
	}
	for i, v := range cfg.Voters {
		if v < 0 || i > 0 && v <= cfg.Voters[i-1] {
			return bad("Voters", cfg.Voters, "ids from 0 up, ascending, without repetition")
		}
	}
	switch {
	case !slices.Contains(cfg.Voters, cfg.Self):
		return bad("Voters", cfg.Voters, fmt.Sprintf("this broker (%d) among them", cfg.Self))
	case cfg.TickEvery <= 0:
		return bad("TickEvery", cfg.TickEvery, "more than 0")
	case cfg.ElectionTicks < 2:
		return bad("ElectionTicks", cfg.ElectionTicks, "at least 2")
	case cfg.SessionTimeout <= 0:
		return bad("SessionTimeout", cfg.SessionTimeout, "more than 0")
	case cfg.ImbalanceEach < 0:
		return bad("ImbalanceEach", cfg.ImbalanceEach, "0 (off) or more")
	case cfg.SnapshotAfter < 1:
		return bad("SnapshotAfter", cfg.SnapshotAfter, "at least 1")
	case cfg.DefaultRF < 1:
		return bad("DefaultRF", cfg.DefaultRF, "at least 1")
	case cfg.DefaultParts < 1 || cfg.DefaultParts > MaxPartitionsPerTopic:
		return bad("DefaultParts", cfg.DefaultParts, fmt.Sprintf("1 to %d", MaxPartitionsPerTopic))
	}
	for _, name := range sortedKeys(cfg.Defaults) {
		if err := checkConfig(name, cfg.Defaults[name]); err != nil {
			return fmt.Errorf("configuration of the control plane: Defaults: %w", err)
		}
	}
	return nil
}

// Step feeds one input and returns what is to be done about it. Times must not go back.
func (c *Controller) Step(now time.Time, in Input) []Effect {
	if c.failed != nil {
		if r, ok := in.(Request); ok {
			return []Effect{Reply{r.Token, refusal(r.Request, kerr.NotController, "this voter has failed: "+c.failed.Error())}}
		}
		return nil
	}
	c.guard(func() error {
		c.input(now, in)
		return c.drain(now)
	})
	return c.take()
}

func (c *Controller) input(now time.Time, in Input) {
	switch in := in.(type) {
	case Tick:
		c.silence++
		c.raft.Tick()
		c.retrySnapshots()
		if c.office != nil {
			c.supervise(now)
		}
		c.lastTick = now
	case Campaign:
		if c.leader == none && c.raft.BasicStatus().Lead == raft.None {
			_ = c.raft.Campaign() // refused while entries that change the voters wait, of which there are none
		}
	case Message:
		if c.sound(in.Message) {
			// What Step refuses (a response that nobody waits for) is a message lost, which raft takes.
			_ = c.raft.Step(in.Message)
			c.alive(in.Message.GetFrom())
		}
	case Unreachable:
		id := raftID(in.Node)
		c.raft.ReportUnreachable(id)
		if _, ok := c.sending[id]; ok {
			c.raft.ReportSnapshot(id, raft.SnapshotFailure)
			delete(c.sending, id)
		}
	case Request:
		c.request(now, in)
	case CancelRequest:
		if c.office != nil {
			c.office.cancel(in.Token)
		}
	}
}

// alive notes a message of another voter.
func (c *Controller) alive(from uint64) {
	id := brokerID(from)
	if c.raft.BasicStatus().Lead == from {
		c.led = id
	}
	if id == c.led {
		c.silence = 0
	}
	if c.office != nil && id == c.office.before {
		c.office.before = none
	}
}

// Image is the newest metadata known to be committed here. It is immutable.
func (c *Controller) Image() *Image { return c.image }

// Leader is the broker that leads the control plane, −1 if unknown.
func (c *Controller) Leader() int32 { return c.leader }

// IsLeader tells whether this voter leads and answers requests (R26).
func (c *Controller) IsLeader() bool { return c.office != nil }

// Elected tells whether raft has elected this voter, and for which term. It is not in office yet (R26); whoever watches for two of one term need not wait for that.
func (c *Controller) Elected() (term uint64, ok bool) {
	st := c.raft.BasicStatus()
	return st.GetTerm(), st.RaftState == raft.StateLeader
}

// drain carries raft's news to where they belong until there are none.
//
// raft is told that a Ready is dealt with before the shell has made its Persist durable. That is sound because nothing leaves the Step but in the order of
// the effects: whatever depends on the durable write (a message, a reply, an image) stands behind it.
func (c *Controller) drain(now time.Time) error {
	for {
		for c.raft.HasReady() {
			ready := c.raft.Ready()
			if err := c.persist(ready); err != nil {
				return err
			}
			for _, m := range ready.Messages {
				c.send(m)
			}
			for _, e := range ready.CommittedEntries {
				c.commit(now, e)
			}
			c.raft.Advance(ready)
		}
		if !c.changeRole(now) {
			break
		}
	}
	if err := c.compact(); err != nil {
		return err
	}
	if c.image.Index != c.published {
		c.emit(Publish{c.image})
		c.published = c.image.Index
	}
	c.effects, c.replies = append(c.effects, c.replies...), nil
	if l := c.leaderNow(); l != c.leader {
		c.leader = l
		c.emit(LeaderChanged{l})
	}
	return nil
}

// changeRole takes or leaves office, as raft says. It tells whether raft may have news after that.
func (c *Controller) changeRole(now time.Time) bool {
	st := c.raft.BasicStatus()
	leads := st.RaftState == raft.StateLeader
	if c.office != nil && (!leads || st.GetTerm() != c.office.term) {
		c.resign()
	}
	// R26: not before an entry of our own term is committed and applied; then nothing older can be missing from the image.
	if c.office == nil && leads && c.appliedTerm == st.GetTerm() {
		c.enterOffice(now, st.GetTerm())
		return true
	}
	return false
}

func (c *Controller) leaderNow() int32 {
	lead := c.raft.BasicStatus().Lead
	if lead == raft.None || lead == raftID(c.cfg.Self) && c.office == nil {
		return none
	}
	return brokerID(lead)
}

func (c *Controller) emit(e Effect) { c.effects = append(c.effects, e) }

func (c *Controller) take() []Effect {
	out := c.effects
	c.effects = nil
	return out
}

// guard runs f. raft panics when it finds that its log and the cluster's do not fit together, as after the loss of a disk: that ends this voter with an
// explanation, not the process. Nothing of the step gets out.
func (c *Controller) guard(f func() error) {
	defer func() {
		if r := recover(); r != nil {
			p, ok := r.(raftPanic)
			if !ok {
				panic(r)
			}
			c.fail(errors.New(string(p)))
		}
	}()
	if err := f(); err != nil {
		c.fail(err)
	}
}

func (c *Controller) fail(err error) {
	c.effects, c.replies = nil, nil
	if c.office != nil {
		c.resign()
	}
	c.effects, c.replies = c.replies, nil
	c.failed = fmt.Errorf("control plane of broker %d: %w", c.cfg.Self, err)
	c.leader = none
	c.emit(LeaderChanged{none})
	c.emit(Failed{c.failed})
}
