package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"
)

// maxWaiting bounds the requests that wait for their entry to commit.
const maxWaiting = 10_000

// office is what a voter keeps while it leads: soft state, lost with the office and rebuilt by the successor.
type office struct {
	term     uint64
	number   uint64 // of the last proposal
	waiting  map[uint64]Request
	since    time.Time          // when the sessions began that have had no heartbeat yet
	before   int32              // the broker that led before, if nothing has come from it since; else none
	silent   time.Time          // since when that one has been silent
	sessions map[int32]*session // by broker
	balance  time.Time          // when the preferred leaders are looked after next
}

// session is what the leader knows of a broker from its heartbeats.
type session struct {
	epoch  int64 // of the registration
	heard  time.Time
	offset int64  // metadata that the broker has applied
	left   uint64 // index by which its leaderships had moved away in a controlled shutdown, 0: not in one
}

func (c *Controller) enterOffice(now time.Time, term uint64) {
	c.office = &office{
		term:    term,
		waiting: map[uint64]Request{},
		since:   now, // R20: every broker has a full session from now ...
		// ... but for the one that led before: raft's messages are signs of life too, and its silence is why there was an election. Ticks count, and not time, since a voter that was
		// stopped itself has heard nobody.
		before:   c.led,
		silent:   now.Add(-time.Duration(c.silence) * c.cfg.TickEvery),
		sessions: map[int32]*session{},
		balance:  now.Add(c.cfg.ImbalanceEach),
	}
	c.led = none
	if r := c.defaultsRequest(); r != nil {
		c.propose(0, r)
	}
}

// resign answers whoever waits. Their requests may take effect all the same, under the next leader (R26).
func (c *Controller) resign() {
	o := c.office
	c.office = nil
	for _, n := range sortedKeys(o.waiting) {
		c.refuse(o.waiting[n], kerr.NotController, "this controller lost the lead; the request may have taken effect")
	}
}

func (o *office) cancel(t Token) {
	//order-free: a token waits once
	for n, r := range o.waiting {
		if r.Token == t {
			delete(o.waiting, n) // at most one
			return
		}
	}
}

func (c *Controller) reply(t Token, r kmsg.Response) { c.replies = append(c.replies, Reply{t, r}) }

func (c *Controller) refuse(r Request, e *kerr.Error, why string) {
	c.reply(r.Token, refusal(r.Request, e, why))
}

// request admits a request: it is refused, answered from the image, or proposed.
func (c *Controller) request(now time.Time, r Request) {
	if c.office == nil {
		c.refuse(r, kerr.NotController, "this broker does not lead the control plane")
		return
	}
	if e, why := c.admit(r.Request); e != nil {
		c.refuse(r, e, why)
		return
	}
	switch q := r.Request.(type) {
	case *kmsg.BrokerHeartbeatRequest:
		c.heard(now, q)
		// A heartbeat that changes nothing is answered at once, so that a quiet cluster writes nothing.
		if resp, changes := c.rehearse(q); !changes {
			c.reply(r.Token, resp)
			return
		}
	case *kmsg.CreateTopicsRequest:
		if q.ValidateOnly {
			c.answerRehearsed(r)
			return
		}
	case *kmsg.CreatePartitionsRequest:
		if q.ValidateOnly {
			c.answerRehearsed(r)
			return
		}
	case *kmsg.IncrementalAlterConfigsRequest:
		if q.ValidateOnly {
			c.answerRehearsed(r)
			return
		}
	}
	if size := len(r.Request.AppendTo(nil)); size > maxRequestBytes {
		c.refuse(r, kerr.InvalidRequest, fmt.Sprintf("a request of %d bytes, want at most %d", size, maxRequestBytes))
		return
	}
	c.office.number++
	if !c.propose(c.office.number, r.Request) {
		c.refuse(r, kerr.NotController, "too much metadata is waiting for its commit; try again")
		return
	}
	c.office.waiting[c.office.number] = r
}

// admit makes the checks that are the proposing controller's alone.
func (c *Controller) admit(r kmsg.Request) (*kerr.Error, string) {
	if !serves(r) {
		return kerr.InvalidRequest, "not a request to the controller"
	}
	if len(c.office.waiting) >= maxWaiting {
		return kerr.NotController, fmt.Sprintf("%d requests are waiting already; try again", maxWaiting)
	}
	switch r := r.(type) {
	case *kmsg.BrokerRegistrationRequest:
		if r.ClusterID != c.cfg.Cluster {
			return kerr.InconsistentClusterID, fmt.Sprintf("cluster id %q, want %q", r.ClusterID, c.cfg.Cluster)
		}
		if !slices.Contains(c.cfg.Voters, r.BrokerID) {
			return kerr.InvalidRegistration, fmt.Sprintf("broker %d is not one of the cluster's: %v", r.BrokerID, c.cfg.Voters)
		}
	case *kmsg.AlterPartitionRequest:
		if r.Version < 3 {
			return kerr.UnsupportedVersion, fmt.Sprintf("AlterPartition version %d; broker epochs need 3 (R16, KIP-903)", r.Version)
		}
	}
	return nil, ""
}

func (c *Controller) flags() flags {
	f := planted()
	if c.cfg.AllowSingleCopy {
		f |= singleCopy
	}
	return f
}

// propose puts a request into the raft log. It tells whether raft took it.
func (c *Controller) propose(number uint64, r kmsg.Request) bool {
	return c.raft.Propose(entry{number, c.flags(), r}.encode()) == nil
}

// rehearse applies a request to the current image and tells the answer, and whether the image would change.
func (c *Controller) rehearse(r kmsg.Request) (kmsg.Response, bool) {
	e := newEdit(c.image, c.image.Index+1, c.cfg.Cluster, c.flags())
	resp := e.apply(r, false)
	return resp, e.changed
}

func (c *Controller) answerRehearsed(r Request) {
	resp, _ := c.rehearse(r.Request)
	c.reply(r.Token, resp)
}

// commit applies a committed entry, and answers its request if it was proposed here in this term.
func (c *Controller) commit(now time.Time, raw *raftpb.Entry) {
	index := raw.GetIndex()
	c.appliedTerm = raw.GetTerm()
	if len(raw.GetData()) == 0 { // a new leader's first entry
		c.image = c.image.at(index)
		return
	}
	en, err := decodeEntry(raw.GetData())
	if err != nil {
		// Every voter sees the same bytes, so skipping them here would keep the images equal between brokers of one version; but a newer one may know
		// them, and then it would not.
		panic(raftPanic(fmt.Sprintf("index %d: %v", index, err)))
	}
	e := newEdit(c.image, index, c.cfg.Cluster, en.flags)
	resp := e.apply(en.request, en.number == 0)
	c.image = e.image

	o := c.office
	if o == nil || o.term != raw.GetTerm() {
		return
	}
	switch q := en.request.(type) {
	case *kmsg.BrokerRegistrationRequest:
		delete(o.sessions, q.BrokerID) // a new one begins with the first heartbeat
	case *kmsg.BrokerHeartbeatRequest:
		if s := o.sessions[q.BrokerID]; s != nil && s.left == 0 && q.WantShutdown {
			s.left = index
		}
	}
	if r, ok := o.waiting[en.number]; ok {
		delete(o.waiting, en.number)
		c.reply(r.Token, resp)
	}
}

// heard notes a heartbeat, and decides when a broker that wants to shut down may: once all others know that it leads nothing any more.
func (c *Controller) heard(now time.Time, q *kmsg.BrokerHeartbeatRequest) {
	b := c.image.Brokers[q.BrokerID]
	if b == nil || b.Epoch != q.BrokerEpoch {
		return
	}
	s := c.office.sessions[b.ID]
	if s == nil || s.epoch != b.Epoch {
		s = &session{epoch: b.Epoch}
		c.office.sessions[b.ID] = s
	}
	s.heard, s.offset = now, q.CurrentMetadataOffset
	if !q.WantShutdown || !b.ShuttingDown {
		return
	}
	if s.left == 0 {
		s.left = c.image.Index // begun under another leader
	}
	q.WantFence = true
	//order-free: a conjunction
	for id, other := range c.image.Brokers {
		if id == b.ID || other.Fenced {
			continue
		}
		if o := c.office.sessions[id]; o == nil || o.offset < int64(s.left) {
			q.WantFence = false
		}
	}
}

// supervise does what time asks of the leader: it fences brokers that are silent, and gives leaderships back to the preferred replicas.
func (c *Controller) supervise(now time.Time) {
	o := c.office
	if now.Sub(c.lastTick) > time.Duration(c.cfg.ElectionTicks)*c.cfg.TickEvery {
		// We were stopped ourselves and heard nobody: silence is no evidence.
		o.since, o.silent = now, now
	}
	for _, id := range sortedKeys(c.image.Brokers) {
		b := c.image.Brokers[id]
		last := o.since
		if id == o.before {
			last = o.silent
		}
		if s := o.sessions[id]; s != nil && s.epoch == b.Epoch && s.heard.After(last) {
			last = s.heard
		}
		if b.Fenced || now.Sub(last) < c.cfg.SessionTimeout {
			continue
		}
		q := kmsg.NewPtrBrokerHeartbeatRequest()
		q.Version = q.MaxVersion()
		q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset, q.WantFence = id, b.Epoch, -1, true
		c.propose(0, q)
		o.sessions[id] = &session{epoch: b.Epoch, heard: now, offset: -1} // the next try is one session later
	}
	if c.cfg.ImbalanceEach > 0 && !now.Before(o.balance) {
		o.balance = now.Add(c.cfg.ImbalanceEach)
		if q := c.image.preferredElections(); q != nil {
			c.propose(0, q)
		}
	}
}
