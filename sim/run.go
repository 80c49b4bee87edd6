package sim

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim/cluster"
	"ackproof/sim/world"
	"ackproof/workloads"
	"ackproof/workloads/log"
)

// Result is what a simulated run found.
type Result struct {
	Case    Case
	Events  uint64        // that happened
	Virtual time.Duration // that passed
	Hash    uint64        // of the event log
	History []byte        // in the native format
	Answer  *linearizability.Answer
	Facts   model.Facts
	Faults  []model.FaultResult
	// Broken are the invariants that did not hold, the first few. Unless Options.Blind, the first one has ended the run at once, and what the clients would have seen
	// later is not known: claims are undecided then, but for what was certain already.
	Broken   []string
	Sighting string // what the online checker saw when it ended the load
	// SightedMS is how long the load had lasted when that was certain, or when an invariant ended the run.
	SightedMS int64
	Turns     []Turn // what happened in the cluster, for people
}

// Turn is something that happened in a cluster and is worth telling.
type Turn struct {
	At        time.Duration // virtual
	Partition int32         // that it is about; −1: all
	What      string
}

// HistoryHash is the hash of the recorded history.
func (r *Result) HistoryHash() string {
	sum := sha256.Sum256(r.History)
	return hex.EncodeToString(sum[:8])
}

// Verdict is the worst of the claims; an invariant that does not hold is a violation too.
func (r *Result) Verdict() model.Verdict {
	if len(r.Broken) > 0 {
		return model.Violated
	}
	return r.Answer.Verdict()
}

// Anomalies are the kinds of anomalies that were found, permitted ones left out, in the order of the claims.
func (r *Result) Anomalies() []model.Anomaly {
	var out []model.Anomaly
	for _, c := range r.Answer.Claims {
		for _, a := range c.Anomalies {
			out = append(out, a.Kind)
		}
	}
	return out
}

// Options say how a case is run; they do not change what happens in it up to the end of the load.
type Options struct {
	Trace     io.Writer     // is given the event log; nil: nobody reads it
	KeepGoing bool          // do not end the load when a violation is certain
	Blind     bool          // an invariant that does not hold is noted and does not end the run: what do clients see of it?
	Floors    *model.Floors // nil: the defaults
	Claims    []model.Claim // nil: every claim of the contract
}

// one world at a time: etcd raft draws from crypto/rand.Reader, and planted bugs are switches of the whole process.
var one sync.Mutex

// Run lets a case happen. Errors: the case makes no sense, or the simulated cluster did not come up at all. Runs of one process happen one after the other,
// because etcd raft's randomness, which has to come from the seed, and the planted bugs belong to the whole process.
func Run(c Case, o Options) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	one.Lock()
	defer one.Unlock()
	w := world.New(c.Seed, o.Trace)
	reader := rand.Reader
	rand.Reader = stream{w.Rand(3)}
	defer func() { rand.Reader = reader }()
	uproot, err := plant(c.Plant)
	if err != nil {
		return nil, err
	}
	defer uproot()
	r := newRun(c, o, w)
	defer r.end()
	r.w.Go(r.self, r.main)
	r.w.Until(func() bool { return r.done || r.broke() })
	switch {
	case r.done:
	case r.broke():
		r.abandon()
	default:
		return nil, errors.New("simulated run: nothing is left to happen, and the run is not at its end")
	}
	if r.failed != nil {
		return nil, r.failed
	}
	return r.result()
}

// stream is randomness from the seed for those who ask crypto/rand.
type stream struct{ r interface{ Uint64() uint64 } }

func (s stream) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint64() >> 17)
	}
	return len(p), nil
}

// run is one run under way.
type run struct {
	c       Case
	o       Options
	rescued bool // leaders were elected uncleanly at the end
	w       *world.World
	net     *world.Net
	cluster *cluster.Cluster
	self    *world.Process // of the harness

	buffer   bytes.Buffer
	journal  *histories.Recorder
	counters *log.Counters
	workload *log.Workload
	groups   *groupRun
	online   *linearizability.Online
	sighting string // what made a violation certain
	stopping stop   // of the load
	never    stop
	certain  world.Signal
	clients  []*world.Process
	working  int
	idle     world.Signal

	absent     int // the node that is down when the load begins, see recreate.go; 0: none
	loadBegan  time.Duration
	sightedAt  time.Duration
	nemesis    *attack
	invariants *invariants
	facts      model.Facts
	endings    []string
	turns      []Turn
	done       bool
	failed     error
}

func newRun(c Case, o Options, w *world.World) *run {
	r := &run{c: c, o: o, w: w}
	r.net = world.NewNet(w, world.Delay{Least: us(c.Net.Least), Most: us(c.Net.Most), Slow: us(c.Net.Slow), SlowEvery: c.Net.SlowEvery, Link: us(c.Net.Link)})
	r.cluster = cluster.New(w, r.net, c.cluster())
	if ppm := c.Net.DriftPPM; ppm > 0 {
		drifts := w.Rand(4)
		for _, n := range r.cluster.Nodes() {
			n.SetDrift(float64(drifts.Int64N(2*ppm+1)-ppm) / 1e6)
		}
	}
	r.self = w.NewProcess(0)
	r.invariants = newInvariants(c, w, r.exposed, r.turn)
	r.cluster.Stepped, r.cluster.Proposed, r.cluster.Elected = r.invariants.stepped, r.invariants.proposed, r.invariants.elected
	r.cluster.Ended = func(node int, why error) {
		r.endings = append(r.endings, fmt.Sprintf("n%d ended by itself: %v", node, why))
	}
	return r
}

// turn keeps something worth telling, from the load on.
func (r *run) turn(partition int32, format string, args ...any) {
	const most = 10_000
	if r.journal != nil && len(r.turns) < most {
		r.turns = append(r.turns, Turn{r.w.Now(), partition, fmt.Sprintf(format, args...)})
	}
}

// exposed tells whether the faults have left no copy whole.
func (r *run) exposed() bool { return r.nemesis != nil && r.nemesis.harm.Exposed() }

// runID is the id of a simulated run, in every value.
func (c Case) runID() uint64 { return uint64(c.Seed)<<1 | 1 }

// start is the wall clock at the start of every simulated run.
var start = time.Unix(1_800_000_000, 0).UTC()

func (r *run) main(t *world.Task) {
	defer func() { r.done = true }()
	if err := r.setUp(t); err != nil {
		r.failed = fmt.Errorf("simulated run, seed %d: %w", r.c.Seed, err)
		return
	}
	r.load(t)
	r.heal(t)
	r.drain(t)
}

// broke tells whether an invariant has ended the run.
func (r *run) broke() bool { return len(r.invariants.broken) > 0 && !r.o.Blind }

// abandon ends the run where it stands.
func (r *run) abandon() {
	if r.nemesis == nil {
		r.failed = fmt.Errorf("simulated run, seed %d: before the load %s", r.c.Seed, r.invariants.broken[0])
		return
	}
	r.nemesis.abandon()
	r.facts.Faults, r.facts.LeaderChanges = r.nemesis.results(), r.nemesis.changes
	r.facts.DrainComplete, r.facts.DrainReason = false, "an invariant did not hold, which ended the run"
	r.mark("end")
}

// setUp starts the cluster and makes the topic.
func (r *run) setUp(t *world.Task) error {
	for _, n := range r.cluster.Nodes() {
		if err := n.Start(); err != nil {
			return err
		}
	}
	id, err := r.createTopic(r.visitorEnv(t, 0))
	if err == nil && r.c.Recreated {
		id, err = r.recreate(t, id)
	}
	if err != nil {
		return err
	}
	r.journal = histories.NewRecorderClock(&r.buffer, histories.Header{Run: r.c.runID(), Seed: r.c.Seed, Start: start}, r.w.Now)
	r.online = linearizability.NewOnline(r.c.Contract(r.c.mayExpose()))
	r.journal.Tap(r.watch)
	r.counters = log.NewCounters(r.c.Partitions)
	r.workload = log.New(r.config(id), r.journal, r.counters)
	r.groups = newGroupRun(r, r.config(id))
	if r.absent > 0 {
		return r.ledWithout(t)
	}
	if missing := r.await(t, setUpBound); len(missing) > 0 {
		return fmt.Errorf("the cluster is not ready after %v: %s", setUpBound, strings.Join(missing, "; "))
	}
	return nil
}

const setUpBound = 60 * time.Second

func (r *run) createTopic(e *env) (id [16]byte, err error) {
	err = r.admin(e, "made", func() kmsg.Request {
		q := kmsg.NewPtrCreateTopicsRequest()
		q.Version = 7
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(r.c.Partitions), int16(r.c.Replication)
		q.Topics = append(q.Topics, t)
		return q
	}, func(resp kmsg.Response) error {
		got := resp.(*kmsg.CreateTopicsResponse).Topics[0]
		if id = got.TopicID; got.ErrorCode != 0 {
			return fmt.Errorf("error code %d", got.ErrorCode)
		}
		return nil
	})
	return id, err
}

// admin asks node after node until one answers without an error.
func (r *run) admin(e *env, what string, ask func() kmsg.Request, done func(kmsg.Response) error) (err error) {
	for end := e.Now() + setUpBound; e.Now() < end; e.Sleep(20 * time.Millisecond) {
		for _, n := range r.cluster.Nodes() {
			var c workloads.Conn
			if c, err = e.Dial(n.Name(), time.Second); err != nil {
				continue
			}
			resp, failed := c.RoundTrip(ask(), 5*time.Second)
			c.Close()
			if err = failed; err != nil {
				continue
			}
			if err = done(resp); err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("the topic could not be %s: %w", what, err)
}

// config is the load, with bounds from the case's timers as the harness derives them from a system's.
func (r *run) config(id [16]byte) log.Config {
	s := r.c.Scale()
	return log.Config{
		Run: r.c.runID(), Topic: topic, TopicID: id, Partitions: r.c.Partitions, Clients: r.c.Clients, Acks: int16(r.c.Acks), Idempotent: r.c.Idempotent,
		Rate: r.c.Rate, Stretch: 400, ReadBytes: 32 << 10, Breaths: log.Breaths{Seed: r.c.Seed, Period: 1500 * time.Millisecond, Length: 120 * time.Millisecond}, StartMS: start.UnixMilli(), Deletes: r.c.Deletes,
		RequestTimeout: max(2*s.Lag+500*time.Millisecond, 1500*time.Millisecond), Deadline: max(2*s.Session+s.Lag+2*time.Second, 5*time.Second), DialTimeout: time.Second,
	}
}

// watch is the journal's tap: the online checker ends the load when a violation is certain.
func (r *run) watch(ev histories.Event) {
	if r.sighting != "" {
		return
	}
	if s := r.online.Step(&ev); s != nil {
		r.sighting = s.String()
	} else if r.sighting = r.groups.watch(&ev); r.sighting == "" {
		return
	}
	r.sightedAt = r.w.Now()
	r.w.Note("sighting")
	r.w.Say("a violation is certain: %s", r.sighting)
	r.certain.Broadcast()
}

// links are the addresses of the nodes.
func (r *run) links() map[int32]string {
	out := map[int32]string{}
	for _, n := range r.cluster.Nodes() {
		out[int32(n.ID())] = n.Name()
	}
	return out
}

// visitorEnv is the environment of the harness itself: it is not asked to stop.
func (r *run) visitorEnv(t *world.Task, number int) *env {
	return &env{r: r, t: t, party: nemesis.ClientParty(0), rand: r.w.Rand(1<<20 + uint64(number)), stop: &r.never}
}

// load lets clients work while the nemesis does, and ends with every client gone and every fault healed.
func (r *run) load(t *world.Task) {
	r.mark("load")
	r.loadBegan = t.Now()
	workers := r.workload.Workers()
	if r.groups != nil {
		workers = r.groups.load.Workers()
	}
	if r.c.InFlight {
		workers = append(workers, r.workload.PipelinedWriters()...)
	}
	if r.c.Deletes {
		workers = append(workers, r.workload.Deleters()...)
	}
	for i, worker := range workers {
		p := r.w.NewProcess(100 + i)
		r.clients = append(r.clients, p)
		r.working++
		r.w.Go(p, func(t *world.Task) {
			e := &env{r: r, t: t, party: nemesis.ClientParty(worker.Client), rand: r.w.Rand(1<<30 + uint64(i)), stop: &r.stopping}
			worker.Run(e, r.links())
			r.working--
			r.idle.Broadcast()
		})
	}
	r.nemesis = newAttack(r)
	r.nemesis.begin()
	r.present()
	end := t.Now() + r.c.Load()
	for t.Now() < end && (r.sighting == "" || r.o.KeepGoing) {
		t.Wait(&r.certain, end-t.Now())
	}
	r.nemesis.end(t)
	r.stopping.ask()
	limit := t.Now() + 2*time.Minute
	for r.working > 0 && t.Now() < limit {
		t.Wait(&r.idle, limit-t.Now())
	}
	if r.working > 0 {
		r.facts.Broken = fmt.Sprintf("%d clients did not stop in time", r.working)
	}
	r.facts.Faults, r.facts.LeaderChanges = r.nemesis.results(), r.nemesis.changes
}

func (r *run) mark(phase string) {
	r.journal.Mark(histories.Event{Kind: histories.Phase, Note: phase})
	r.w.Say("phase: %s", phase)
}

// await asks all nodes for their views until there is nothing to complain of, or the bound has passed.
func (r *run) await(t *world.Task, bound time.Duration) []string {
	v := r.workload.Visit(r.visitorEnv(t, 1), 0, r.links())
	defer v.Close()
	for end := t.Now() + bound; ; {
		var views []log.NodeView
		for _, n := range r.cluster.Nodes() {
			view, err := v.View(int32(n.ID()))
			views = append(views, log.NodeView{Node: int32(n.ID()), View: view, Err: err})
		}
		complaints := log.Complaints(views, r.c.Partitions, r.c.Replication)
		if len(complaints) == 0 || t.Now() >= end {
			return complaints
		}
		t.Sleep(50 * time.Millisecond)
	}
}

// heal demands that the system works again within the contract's bound.
func (r *run) heal(t *world.Task) {
	r.mark("heal")
	began := t.Now()
	unmet := r.await(t, livenessBound)
	if len(unmet) == 0 {
		r.everyPartition(t, func(p int32, v *log.Visitor) {
			if s := v.WriteAndRead(began + livenessBound - t.Now()); s != "" {
				unmet = append(unmet, s)
			}
		})
		unmet = append(unmet, r.groups.answer(t, began+livenessBound-t.Now())...)
	}
	r.facts.Liveness = model.Recovery{Checked: true, BoundMS: livenessBound.Milliseconds(), TookMS: (t.Now() - began).Milliseconds(), Unmet: append(r.endings, unmet...)}
}

// drain reads everything back.
func (r *run) drain(t *world.Task) {
	r.mark("drain")
	r.facts.CopiesWanted = r.c.Partitions * r.c.Replication
	reasons := r.rescue(t, r.await(t, log.SettleBound))
	settled := len(reasons) == 0
	r.everyPartition(t, func(p int32, v *log.Visitor) {
		copies, reason := v.Drain(settled)
		r.facts.CopiesRead += copies
		if reason != "" {
			reasons = append(reasons, fmt.Sprintf("p%d: %s", p, reason))
		}
	})
	r.groups.drain(t)
	r.facts.DrainComplete = len(reasons) == 0
	r.facts.DrainReason = strings.Join(reasons, "; ")
	r.mark("end")
}

// rescue has leaders elected uncleanly where the faults permit it, as the harness does. It returns what is then still to complain of.
func (r *run) rescue(t *world.Task, complaints []string) []string {
	if len(complaints) == 0 || !r.exposed() {
		return complaints
	}
	var nodes []int32
	for _, n := range r.cluster.Nodes() {
		nodes = append(nodes, int32(n.ID()))
	}
	rescued := make([]bool, r.c.Partitions)
	r.everyPartition(t, func(p int32, v *log.Visitor) { rescued[p] = v.Rescue(nodes) })
	if !slices.Contains(rescued, true) {
		return complaints
	}
	r.rescued = true
	r.facts.Notes = append(r.facts.Notes, log.Rescued(rescued))
	return r.await(t, livenessBound)
}

func (r *run) everyPartition(t *world.Task, do func(int32, *log.Visitor)) {
	for p := range int32(r.c.Partitions) {
		v := r.workload.Visit(r.visitorEnv(t, 2+int(p)), p, r.links())
		do(p, v)
		v.Close()
	}
}

// end takes the world apart.
func (r *run) end() {
	for _, p := range r.clients {
		p.Kill()
	}
	for _, n := range r.cluster.Nodes() {
		n.Kill()
	}
	if r.nemesis != nil {
		r.nemesis.self.Kill()
	}
	r.self.Kill()
}

// check decides every claim.
func (r *run) check(contract model.Contract, o linearizability.Options) (*linearizability.Answer, error) {
	if r.groups != nil {
		return r.groups.check(contract, o)
	}
	in, err := histories.NewReader(bytes.NewReader(r.buffer.Bytes()))
	if err != nil {
		return nil, err
	}
	return linearizability.CheckLog(in.All(), contract, r.facts, o)
}

// result tells what came of the run.
func (r *run) result() (*Result, error) {
	if err := r.journal.Close(); err != nil {
		return nil, err
	}
	o := linearizability.Options{Claims: r.o.Claims}
	if r.o.Floors != nil {
		o.Floors = *r.o.Floors
	}
	contract := r.c.Contract(r.exposed())
	if r.nemesis != nil && !r.rescued {
		contract.PowerLossUntil = r.nemesis.harm.Until()
	}
	answer, err := r.check(contract, o)
	if err != nil {
		return nil, err
	}
	out := &Result{
		Case: r.c, Events: r.w.Events(), Virtual: r.w.Now(), Hash: r.w.Hash(), History: r.buffer.Bytes(), Answer: answer, Facts: r.facts,
		Faults: r.facts.Faults, Broken: r.invariants.broken, Turns: r.turns,
	}
	if r.broke() {
		out.SightedMS = (r.w.Now() - r.loadBegan).Milliseconds() + 1
	}
	if r.sighting != "" {
		out.Sighting, out.SightedMS = r.sighting, (r.sightedAt-r.loadBegan).Milliseconds()+1
		if answer.Verdict() != model.Violated {
			return nil, fmt.Errorf("simulated run, seed %d: a bug of ackproof: the online checker saw %s, and the check of the whole history finds nothing", r.c.Seed, r.sighting)
		}
	}
	return out, nil
}
