package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/nemesis/lossy"
	"ackproof/nemesis/seccomp"
	"ackproof/systems"
	"ackproof/workloads/group"
	"ackproof/workloads/kafka"
	"ackproof/workloads/log"
	"ackproof/workloads/sockets"
)

// run is the state of one test.
type run struct {
	Test
	began    time.Time // of the run; clients' and the journal's clock count from here
	id       uint64
	contract model.Contract
	schedule nemesis.Schedule
	dir      runDir
	history  *os.File
	journal  *histories.Recorder
	backend  nemesis.Backend
	system   systems.System
	timers   systems.Timers
	runner   *nemesis.Runner
	rescued  bool // leaders were elected uncleanly at the end
	config   log.Config
	workload *log.Workload
	groups   *group.Workload // nil: of another workload
	counters *log.Counters

	certain  certainty
	endWatch func() // ends the watch over the nodes; it may be called again; nil before the load

	mu     sync.Mutex
	notes  []string
	broken []string // parts of the harness that died
	ended  []string // nodes that ended by themselves

	begun   atomic.Int64 // faults that have taken effect
	faults  []model.FaultResult
	seconds model.Seconds
	facts   model.Facts
	results model.Results
	opinion string
}

func (r *run) now() time.Duration { return time.Since(r.began) }

// note keeps a remark for the report and shows it at once.
func (r *run) note(text string) {
	r.mu.Lock()
	r.notes = append(r.notes, text)
	r.mu.Unlock()
	r.Observer.Note(text)
}

func (r *run) allNotes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// died notes the death of a part of the harness: from then on no claim can be held.
func (r *run) died(part string, cause any) {
	r.mu.Lock()
	r.broken = append(r.broken, fmt.Sprintf("%s died: %v", part, cause))
	r.mu.Unlock()
}

// guard runs a part of the harness and notes its death.
func (r *run) guard(part string, do func()) {
	defer func() {
		if p := recover(); p != nil {
			r.died(part, p)
		}
	}()
	do()
}

// plan decides everything that can be decided beforehand, prints and saves it.
func (r *run) plan(context.Context) error {
	var err error
	if r.dir, err = newRunDir(r.Store, r.Options, time.Now()); err != nil {
		return infra("make the run directory", err)
	}
	o := r.Options
	topic := fmt.Sprintf("ackproof-%016x", r.id)
	if r.backend, err = r.ground(); err != nil {
		return infra("prepare the ground", err)
	}
	r.system, err = r.Open(systems.Options{
		Dir: r.dir.path, Nodes: o.Nodes, Topic: topic, Partitions: o.Partitions, Replication: o.Replication, MinISR: o.MinISR, Acks: o.Acks,
		Idempotent: o.Idempotent, Unclean: o.Unclean, FlushEach: o.FlushEach, Plant: o.Plant, Network: r.backend.Network(), Host: r.backend,
		Settings: o.Settings, Note: r.note,
	})
	if err != nil {
		return infra("prepare the system", err)
	}
	r.contract, r.timers = o.extended(r.system.Contract()), r.system.Timers()
	if err := r.makeSchedule(); err != nil {
		return err
	}
	if err := r.spare(); err != nil {
		return err
	}
	if err := r.savePlan(); err != nil {
		return err
	}
	r.Observer.Planned(o.Seed, r.replay(), r.contract, len(r.schedule.Faults))
	if l, ok := r.system.(systems.Linter); ok {
		for _, warning := range l.Lint() {
			r.note("the configuration: " + warning)
		}
	}
	r.config = log.Config{
		Run: r.id, Topic: topic, Partitions: o.Partitions, Clients: o.Clients, Acks: int16(o.Acks), Idempotent: o.Idempotent && o.Acks == -1, Rate: o.Rate,
		Breaths: log.Breaths{Seed: o.Seed, Period: breathPeriod, Length: breathLength},
		StartMS: r.began.UnixMilli(),
		// A write must outlive the shrinking of the in-sync set, or nobody would see what is acknowledged afterwards.
		RequestTimeout: max(2*r.timers.Lag+500*time.Millisecond, 1500*time.Millisecond),
		// And its retries an election, or every failover would leave open writes.
		Deadline:    max(2*r.timers.Session+r.timers.Lag+2*time.Second, 5*time.Second),
		DialTimeout: max(time.Second, r.timers.Session/2),
	}
	for _, n := range r.Notes {
		r.note(n)
	}
	return r.lookForFaults()
}

// savePlan writes run.json.
func (r *run) savePlan() error {
	err := r.dir.writeJSON(planFile, Plan{
		Version: PlanVersion, Seed: r.Options.Seed, Run: fmt.Sprintf("%016x", r.id), Started: r.began.UTC(), Command: r.Command, Options: r.Options,
		Contract: r.contract, Schedule: r.schedule, Versions: Versions{Ackproof: Build(), System: r.system.Info()}, Environment: here(),
	})
	if err != nil {
		return infra("save the plan", err)
	}
	return nil
}

const (
	breathPeriod = 1500 * time.Millisecond
	breathLength = 120 * time.Millisecond
)

func (r *run) makeSchedule() error {
	o := r.Options
	switch {
	case r.Schedule != nil:
		r.schedule = *r.Schedule
		if err := r.schedule.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
			return usage("%v", err)
		}
	case r.Draw != nil:
		r.schedule = r.Draw(r.timers)
		if err := r.schedule.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
			return usage("%v", err)
		}
	case len(o.Nemesis) == 0:
		r.schedule = nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: o.Seed, Faults: []nemesis.Fault{}}
	default:
		r.schedule = nemesis.Generate(o.Seed, nemesis.GenerateOptions{
			Kinds: o.Nemesis, Nodes: o.Nodes, Partitions: o.Partitions, Clients: o.Clients, Load: time.Duration(o.Time), Timers: r.timers,
			Groups: o.Workload == WorkloadGroup, Unlinked: systems.IsUnlinked(r.system),
		})
	}
	return nil
}

// spare refuses faults that would show nothing.
func (r *run) spare() error {
	fragile, ok := r.system.(systems.Fragile)
	if !ok {
		return nil
	}
	for _, k := range nemesis.AllKinds() {
		if why := fragile.Spare(string(k)); why != "" && (slices.Contains(r.Options.Nemesis, k) || slices.Contains(r.schedule.Uses(), k)) {
			return usage("%s with --system %s, expected other faults: %s", k, r.Options.System, why)
		}
	}
	return nil
}

// lookForFaults tells which of the wanted faults cannot be injected here. They are reported as not started when their time comes, unless the run requires them.
func (r *run) lookForFaults() error {
	for _, k := range nemesis.AllKinds() {
		if !slices.Contains(r.Options.Nemesis, k) && !slices.Contains(r.schedule.Uses(), k) {
			continue
		}
		if ok, why := r.backend.Can(k); !ok {
			missing := fmt.Sprintf("no %s on %s: %s", k, r.backend.Name(), why)
			if r.Options.Require {
				return infra("inject the faults that are required", errors.New(missing))
			}
			r.note(missing)
		}
	}
	return nil
}

// setUp starts the system and opens the journal.
func (r *run) setUp(ctx context.Context) error {
	begin := time.Now()
	r.Observer.Phase("set up", 0)
	starting, cancel := context.WithTimeout(ctx, max(setUpBound, 4*r.timers.Start))
	defer cancel()
	if err := r.system.Start(starting); err != nil {
		return infra("start the system", err)
	}
	r.config.TopicID = r.system.TopicID()
	var err error
	if r.history, err = os.Create(r.dir.file(historyFile)); err != nil {
		return infra("open the history", err)
	}
	r.journal = histories.NewRecorderClock(r.history, histories.Header{Run: r.id, Seed: r.Options.Seed, Start: r.began}, r.now)
	r.certain.reached, r.certain.online = make(chan struct{}), linearizability.NewOnline(r.watchedContract())
	r.journal.Tap(r.watchLog)
	r.counters = log.NewCounters(r.Options.Partitions)
	r.workload = log.New(r.config, r.journal, r.counters)
	r.prepareGroups()
	r.runner = &nemesis.Runner{System: r.system, Backend: r.backend, Acked: r.counters.Acked, Event: r.faultStep, Moment: r.journal.Last}
	r.seconds.Setup = time.Since(begin).Seconds()
	return nil
}

// watchedContract is what the online checker may hold the system to: what the faults may come to permit is decided at the end.
func (r *run) watchedContract() model.Contract {
	if nemesis.MayExpose(r.wanted(), r.contract.FlushEach) {
		return r.exposedContract()
	}
	return r.contract
}

// setUpBound bounds the start of a system on a slow machine, unless a node of the system alone may take a good part of it.
const setUpBound = 60 * time.Second

// faultStep puts a step of the nemesis into the journal.
func (r *run) faultStep(s nemesis.FaultStep) {
	if s.Step == nemesis.Began {
		r.begun.Add(1)
	}
	r.journal.Mark(histories.Event{Kind: histories.Fault, Offset: int64(s.Fault), Note: string(s.Step) + ": " + s.Note})
}

// links are the addresses under which a client reaches the nodes: by id, and by the address that the node advertises. Client 0 is the
// harness itself.
func (r *run) links(client int) (byID map[int32]string, byAddr map[string]string, err error) {
	byID, byAddr = map[int32]string{}, map[string]string{}
	for _, n := range r.system.Nodes() {
		if !systems.Serves(n) {
			continue
		}
		link, err := r.backend.Network().ClientLink(client, n.ID(), n.Addr())
		if err != nil {
			return nil, nil, err
		}
		byID[int32(n.ID())], byAddr[n.Addr()] = link, link
	}
	return byID, byAddr, nil
}

// probe writes and reads once through the links of every client before any fault: a harness that cannot do that would see faults where
// there are none.
func (r *run) probe(ctx context.Context) error {
	begin := time.Now()
	for client := range r.Options.Clients + 1 {
		links, _, err := r.links(client)
		if err != nil {
			return infra("open the links of the clients", err)
		}
		if err := r.probeOne(ctx, client, links); err != nil {
			return infra(fmt.Sprintf("probe the system through the links of client %d", client), r.withDead(err))
		}
	}
	r.seconds.Setup += time.Since(begin).Seconds()
	return nil
}

// withDead adds to an error what the nodes say that do not run any more.
func (r *run) withDead(err error) error {
	for _, n := range r.system.Nodes() {
		if alive, reason := n.Alive(); !alive {
			err = fmt.Errorf("%w; %s ended (%v); %s", err, n.Name(), reason, tail(n))
		}
	}
	return err
}

func (r *run) probeOne(ctx context.Context, client int, links map[int32]string) error {
	v := r.visit(ctx, client, int32(client%r.Options.Partitions), links)
	defer v.Close()
	for node := range links {
		if _, err := v.View(node); err != nil {
			return err
		}
	}
	wrote, err := v.Write()
	if err != nil {
		return err
	}
	if wrote.Outcome != kafka.Applied {
		return fmt.Errorf("a write to node %d was answered with code %d, expected an acknowledgement (is the system up?)", wrote.Node, wrote.Code)
	}
	if read := v.ReadAll(5 * time.Second); read.Code != 0 {
		return fmt.Errorf("a read from node %d ended with code %d, expected to reach the end", read.Node, read.Code)
	}
	return nil
}

// ground makes the back end of the run. The data of nodes whose disks are to be hurt lies on disks that can be.
func (r *run) ground() (nemesis.Backend, error) {
	var b nemesis.Backend = nemesis.NewProxies()
	if r.Ground != nil {
		var err error
		if b, err = r.Ground(); err != nil {
			return nil, err
		}
	}
	if ok, _ := seccomp.Available(); ok && nemesis.UsesCalls(r.wanted()) {
		b = nemesis.WithCalls(b)
	}
	if ok, _ := lossy.Available(); !ok || !nemesis.UsesDisk(r.wanted()) {
		return b, nil // without them the faults say why they are not to be had
	}
	return nemesis.WithDisks(b, lossy.Options{FlushTime: flushTimes[uint64(r.Options.Seed)%uint64(len(flushTimes))]}), nil
}

// flushTimes is what a flush takes on a good disk, on an ordinary one and on a slow one; the seed decides. The longer, the more is unflushed when the power goes.
var flushTimes = []time.Duration{time.Millisecond, 4 * time.Millisecond, 15 * time.Millisecond}

// wanted are the kinds of faults that the run may inject.
func (r *run) wanted() []nemesis.Kind {
	if r.Schedule != nil {
		return r.Schedule.Uses()
	}
	return r.Options.Nemesis
}

// env is the world of the client with that number; stream is where its randomness comes from.
func (r *run) env(client int, hard context.Context, stop <-chan struct{}, stream uint64) *sockets.Env {
	return sockets.New(hard, stop, r.began, r.Options.Seed, stream).Through(r.backend.Network().ClientDialer(client))
}

// visit makes a client of the harness. It is not asked to stop, but its connections break when ctx ends.
func (r *run) visit(ctx context.Context, client int, partition int32, links map[int32]string) *log.Visitor {
	never := make(chan struct{})
	return r.workload.Visit(r.env(client, ctx, never, 1<<40+uint64(partition)), partition, links)
}

// release stops everything; it is safe at every stage.
func (r *run) release() error {
	var errs []error
	if r.endWatch != nil {
		r.endWatch()
	}
	if r.system != nil {
		errs = append(errs, r.system.Stop())
	}
	if r.backend != nil {
		errs = append(errs, r.backend.Close())
	}
	if r.journal != nil {
		errs = append(errs, r.closeHistory())
	}
	return errors.Join(errs...)
}

// closeHistory ends the journal; every event is on its way to the disk afterwards. It may be called twice.
func (r *run) closeHistory() error {
	if r.history == nil {
		return nil
	}
	err := errors.Join(r.journal.Close(), r.history.Close())
	r.history = nil
	return err
}
