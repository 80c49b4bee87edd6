// Package node is the shell of the reference broker: sockets, clock, disk and goroutines around the pure cores of broker/core. One node is a broker
// and a voter of the control plane; it has one listener for clients, other brokers and raft.
//
// Who runs what: a goroutine per connection reads requests and steps the replicas that they concern (replica.go); whoever makes an answer known sends it; one goroutine
// owns the controller (control.go); one applies metadata (apply.go); one per leader fetches for the partitions that this broker follows (fetcher.go);
// one registers and says that the broker lives (lifecycle.go). What a request means is in the file of its name. The package must not decide anything
// that the cores decide. Start reading at Node.Run.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/group"
	"ackproof/broker/core/partition"
	"ackproof/broker/fault"
	"ackproof/broker/storage/raftlog"
	"ackproof/broker/wire"
)

const (
	// cacheBytes is the memory for recent batches, of the whole node.
	cacheBytes = 4 << 20
	// framesBytes is the memory of requests that waits for the next ones, of the whole node.
	framesBytes = 8 << 20
)

// Node is one broker. Open makes it, Run serves.
type Node struct {
	cfg        Config
	log        *slog.Logger
	listener   net.Listener
	advertised string // host:port
	table      *wire.Table
	server     *wire.Server
	store      *store
	control    *control
	peers      *peers
	links      map[int32]*raftLink
	replicas   replicaMap
	fetchers   fetchers
	alterer    *alterer
	producers  producerIDs
	applier    *applier
	groups     groups
	late       lateNews

	image        atomic.Pointer[controller.Image] // newest
	imageNews    news
	view         atomic.Pointer[view] // what has been applied: requests are answered from it
	viewNews     news                 // the view, the applied epoch or the registration changed
	incarnation  atomic.Pointer[[16]byte]
	registered   atomic.Pointer[registration]
	appliedEpoch atomic.Int64 // broker epoch of the newest applied image that has our registration

	registerAgain chan struct{} // holds one
	running       context.Context
	repairs       sync.WaitGroup
}

// Open takes the node's folder and its port. Errors name the folder, or the port and its key.
func Open(cfg Config, log *slog.Logger) (_ *Node, err error) {
	log = log.With("node", cfg.NodeID)
	for _, name := range cfg.Plant {
		bug, found := fault.Find(name)
		if !found {
			return nil, fmt.Errorf("ackproof.plant: no planted bug %q", name)
		}
		if err := fault.Plant(bug); err != nil {
			return nil, fmt.Errorf("ackproof.plant: %w", err)
		}
		log.Warn("bug planted", "id", bug.ID, "name", bug.Name)
	}
	n := &Node{cfg: cfg, log: log, table: wire.NewTable(wire.APIs()), registerAgain: make(chan struct{}, 1)}
	n.appliedEpoch.Store(-1)
	n.view.Store(newView(&controller.Image{}))
	n.alterer, n.producers.n, n.fetchers.n = newAlterer(n), n, n
	n.groups = groups{n: n, again: make(chan struct{}, 1), led: map[int32]*coordinator{}}
	n.applier = &applier{n: n, failed: map[string]*folder{}}
	if n.listener, err = listen(cfg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.listener.Close()
		}
	}()
	if n.advertised = cfg.Advertised; n.advertised == "" {
		n.advertised = n.listener.Addr().String()
	}
	if n.store, err = openStore(cfg, cacheBytes, log); err != nil {
		return nil, err
	}
	raftLog, stored, err := raftlog.Open(n.store.path(raftFolder))
	if err != nil {
		return nil, fmt.Errorf("the control plane's log: %w", err)
	}
	if n.control, err = newControl(n.controllerConfig(), stored, raftLog, log); err != nil {
		return nil, errors.Join(err, raftLog.Close())
	}
	n.control.send, n.control.publish = n.sendRaft, n.publish
	n.peers = &peers{self: fmt.Sprintf("broker-%d", cfg.NodeID), address: cfg.Voters, maxFrame: cfg.MaxFrameBytes}
	n.links = map[int32]*raftLink{}
	for _, id := range n.voterIDs() {
		if id != cfg.NodeID {
			n.links[id] = &raftLink{
				to: id, self: cfg.NodeID, cluster: cfg.Cluster, log: log, lost: n.control.offer, queue: make(chan *raftpb.Message, raftQueue),
				dial: func(ctx context.Context) (*wire.Client, error) { return n.peers.dial(ctx, id) },
			}
		}
	}
	n.server = wire.NewServer(wire.ServerConfig{
		Handler: n, Table: n.table, Frames: &wire.FramePool{Budget: framesBytes, Poison: cfg.poisonFrames}, Log: log, MaxFrameBytes: cfg.MaxFrameBytes, Idle: cfg.ConnectionIdle, MaxConnections: cfg.MaxConnections,
	})
	return n, nil
}

// listen opens the port, or takes the one that was inherited.
func listen(cfg Config) (net.Listener, error) {
	if cfg.ListenFD != 0 {
		f := os.NewFile(cfg.ListenFD, "listener")
		l, err := net.FileListener(f)
		f.Close() // the listener has a copy
		if err != nil {
			return nil, fmt.Errorf("ackproof.listener.fd = %d is not a listening socket: %w", cfg.ListenFD, err)
		}
		return l, nil
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listeners = %s: %w", cfg.Listen, err)
	}
	return l, nil
}

func (n *Node) controllerConfig() controller.Config {
	c := n.cfg
	return controller.Config{
		Self: c.NodeID, Voters: n.voterIDs(), Cluster: c.Cluster,
		TickEvery: c.RaftTick, ElectionTicks: int(c.ElectionTimeout / c.RaftTick), SessionTimeout: c.SessionTimeout, ImbalanceEach: c.ImbalanceEach,
		SnapshotAfter: 1000,
		Defaults: map[string]string{
			"min.insync.replicas":            strconv.Itoa(c.MinISR),
			"unclean.leader.election.enable": strconv.FormatBool(c.Unclean),
			"max.message.bytes":              strconv.Itoa(int(c.MaxMessageBytes)),
		},
		DefaultRF: c.ReplicationFactor, DefaultParts: c.Partitions, AllowSingleCopy: c.AllowSingleCopy,
	}
}

func (n *Node) voterIDs() []int32 {
	ids := make([]int32, 0, len(n.cfg.Voters))
	for id := range n.cfg.Voters {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Addr is where the node listens.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// Run serves until ctx ends, and then stops in order: leaderships move away, connections end, logs are closed, the marker of a clean stop is written
// last. The error is nil after a clean stop; anything else is a failure that the node does not survive. Run may be called once.
func (n *Node) Run(ctx context.Context) error {
	// Everything runs until the controlled shutdown is over, so its context does not end with ctx.
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	n.running = running
	var tasks sync.WaitGroup
	start := func(name string, task func(context.Context) error) {
		tasks.Add(1)
		go func() {
			defer tasks.Done()
			if err := task(running); err != nil && running.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			}
		}()
	}
	quiet := func(task func(context.Context)) func(context.Context) error {
		return func(ctx context.Context) error { task(ctx); return nil }
	}
	start("listener "+n.listener.Addr().String(), func(ctx context.Context) error { return n.server.Serve(ctx, n.listener) })
	start("control plane", n.control.run)
	for _, l := range n.links {
		start("raft", quiet(l.run))
	}
	if n.cfg.Pprof != "" {
		start("ackproof.pprof.listen", n.serveProfiles)
	}
	start("start", func(ctx context.Context) error { return n.serve(ctx, start, quiet) })

	select {
	case <-ctx.Done():
		n.log.Info("stopping")
		n.leave(running)
	case <-running.Done():
	}
	failure := context.Cause(running) // nil unless a task failed
	stop(context.Canceled)
	tasks.Wait()
	n.fetchers.wg.Wait()
	n.repairs.Wait()
	n.peers.close()
	return errors.Join(failure, n.close(failure == nil))
}

// serve opens the logs, and only then registers: a log that is damaged decides how (R23).
func (n *Node) serve(ctx context.Context, start func(string, func(context.Context) error), quiet func(func(context.Context)) func(context.Context) error) error {
	folders, err := n.store.scan()
	n.applier.found = map[string]*folder{}
	previous := n.store.previous
	for _, f := range folders {
		n.applier.found[f.name] = f
		if f.err != nil {
			previous = -1
		}
	}
	if err != nil {
		return err
	}
	start("metadata", n.applier.run)
	start("in-sync sets", quiet(n.alterer.run))
	start("clock", quiet(n.tick))
	start("groups", quiet(n.groups.run))
	return n.live(ctx, previous)
}

// tick lets time pass for the replicas: lag, deadlines, checkpoints.
func (n *Node) tick(ctx context.Context) {
	t := time.NewTicker(min(max(n.cfg.LagTime/20, 20*time.Millisecond), 100*time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			for _, r := range n.replicas.list() {
				r.step(partition.Tick{})
			}
		case <-ctx.Done():
			return
		}
	}
}

// close closes all logs, cleanly if everything has gone well, and says so last of all (R23).
func (n *Node) close(clean bool) error {
	var errs []error
	for _, r := range n.replicas.list() {
		if err := r.close(clean); err != nil {
			clean = false
			errs = append(errs, fmt.Errorf("close the log of %s: %w", r, err))
		}
	}
	for _, f := range n.applier.found {
		if f.log != nil {
			errs = append(errs, f.log.Close(clean))
		}
	}
	if err := n.control.store.Close(); err != nil {
		clean = false
		errs = append(errs, fmt.Errorf("close the control plane's log: %w", err))
	}
	reg := n.registered.Load()
	if clean && reg != nil && n.applier.first {
		errs = append(errs, n.store.markClean(reg.epoch))
	}
	return errors.Join(errs...)
}

// hooks is what the replicas call.
func (n *Node) hooks() replicaHooks {
	return replicaHooks{
		self:     n.cfg.NodeID,
		alterISR: n.alterer.add,
		role: func(r *replica) {
			n.fetchers.kick(n.running, r)
			if r.topic == group.Topic {
				poke(n.groups.again)
			}
		},
		rebuilt: n.rebuilt,
		note:    func(what string, r *replica) { n.log.Error(what, "partition", r.String()) },
		offline: func(r *replica, err error) {
			n.log.Error("replica is offline", "partition", r.String(), "error", err)
			n.repairs.Add(1)
			go func() {
				defer n.repairs.Done()
				n.repair(n.running, r)
			}()
		},
	}
}

func (n *Node) sendRaft(to int32, m *raftpb.Message) {
	if l := n.links[to]; l != nil {
		l.send(m)
	}
}

func (n *Node) publish(image *controller.Image) {
	n.image.Store(image)
	n.imageNews.broadcast()
}

// awaitView waits for a view with some property, and gives the newest one in any case.
func (n *Node) awaitView(ctx context.Context, ok func(*view) bool) (*view, error) {
	for {
		fresh := n.viewNews.wait()
		v := n.view.Load()
		if ok(v) {
			return v, nil
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// awaitReady waits until the view has this broker's own registration.
func (n *Node) awaitReady(ctx context.Context) (*view, error) {
	if n.appliedEpoch.Load() >= 0 {
		return n.view.Load(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RequestTimeout)
	defer cancel()
	return n.awaitView(ctx, func(*view) bool { return n.appliedEpoch.Load() >= 0 })
}

// serveProfiles serves Go's profiles on a loopback address.
func (n *Node) serveProfiles(ctx context.Context) error {
	l, err := net.Listen("tcp", n.cfg.Pprof)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
