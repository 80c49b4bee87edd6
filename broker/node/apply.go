package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
)

// applier brings this broker's replicas in line with the metadata. It works on the newest image only: what lies between two images needs no work of
// its own, since a replica takes the newest state whatever it had before (R26).
type applier struct {
	n     *Node
	found map[string]*folder // folders of the last run that no image has claimed yet
	first bool               // the first image of this run has been applied
	last  *view

	mu     sync.Mutex
	failed map[string]*folder // could not be opened: tried again a while later
}

// applyAtOnce is how many replicas are opened, or told of their new state, side by side: it is mostly waiting for the disk, which flushes many files in little more time than one.
const applyAtOnce = 64

// job is a partition whose replica is to be told something.
type job struct {
	t    *controller.Topic
	p    *controller.Partition
	key  partitionKey
	name string   // of its folder
	f    *folder  // that is to be opened, nil for a new one
	r    *replica // nil until it is open
}

// sideBySide does something with many jobs at the same time.
func sideBySide(jobs []job, do func(*job)) {
	turns := make(chan struct{}, applyAtOnce)
	var all sync.WaitGroup
	for i := range jobs {
		turns <- struct{}{}
		all.Go(func() {
			do(&jobs[i])
			<-turns
		})
	}
	all.Wait()
}

// run applies images until ctx ends. Images of before this run's registration are not applied: what they say about this broker was said to the
// process before it (R19), and a folder may belong to a topic that they do not know yet (R24).
func (a *applier) run(ctx context.Context) error {
	for {
		fresh := a.n.imageNews.wait()
		image := a.n.image.Load()
		if a.first || a.n.ownImage(image) {
			if a.last == nil || a.last.Image != image {
				if err := a.apply(newView(image)); err != nil {
					return err
				}
			}
		}
		var retry <-chan time.Time
		if len(a.failed) > 0 {
			retry = time.After(repairPause)
		}
		select {
		case <-fresh:
		case <-retry:
			a.last = nil // look at everything anew
		case <-ctx.Done():
			return nil
		}
	}
}

// ownImage tells whether the image has this process's registration.
func (n *Node) ownImage(image *controller.Image) bool {
	mine := n.incarnation.Load()
	if image == nil || mine == nil {
		return false
	}
	b := image.Brokers[n.cfg.NodeID]
	return b != nil && b.Incarnation == *mine
}

func (a *applier) apply(v *view) error {
	n := a.n
	same := a.last != nil && sameBrokers(a.last.Image, v.Image) && a.last.sameDefaults(v)
	// First what goes: a topic may have been deleted and made again since, and the new one wants the folder.
	for _, r := range n.replicas.list() {
		if t := v.byID[r.key.topic]; t == nil || int(r.key.partition) >= len(t.Partitions) || !slices.Contains(t.Partitions[r.key.partition].Replicas, n.cfg.NodeID) {
			if err := a.remove(r); err != nil {
				return err
			}
		}
	}
	var jobs []job
	for _, name := range v.names() {
		t := v.Topics[name]
		if same && a.last.Topics[name] == t {
			continue
		}
		for i, p := range t.Partitions {
			if !slices.Contains(p.Replicas, n.cfg.NodeID) {
				continue
			}
			j := job{t: t, p: p, key: partitionKey{t.ID, int32(i)}, name: partitionFolder(name, int32(i))}
			j.r = n.replicas.get(j.key)
			if j.r != nil && same && a.last.hasPartition(t, i) {
				continue // one change in a topic of a thousand partitions is one change
			}
			if j.r == nil {
				j.f = a.claim(j.name)
			}
			jobs = append(jobs, j)
		}
	}
	sideBySide(jobs, func(j *job) {
		if j.r == nil {
			a.open(j)
		}
	})
	a.remember(jobs)
	sideBySide(jobs, func(j *job) {
		if j.r != nil {
			n.replicas.put(j.r)
			j.r.give(v, j.t, j.p)
		}
	})
	if !a.first {
		if err := a.dropUnclaimed(); err != nil {
			return err
		}
		a.first = true
	}
	a.last = v
	n.view.Store(v)
	if b := v.Brokers[n.cfg.NodeID]; b != nil && n.ownImage(v.Image) {
		n.appliedEpoch.Store(b.Epoch)
	}
	n.viewNews.broadcast()
	return nil
}

// hasPartition tells whether partition i of the topic was in this view already, with the same state and configuration. An image replaces what it changes.
func (v *view) hasPartition(t *controller.Topic, i int) bool {
	had := v.byID[t.ID]
	return had != nil && i < len(had.Partitions) && had.Partitions[i] == t.Partitions[i] && maps.Equal(had.Configs, t.Configs)
}

// sameDefaults tells whether the cluster-wide defaults are the same: a topic's effective configuration depends on them.
func (v *view) sameDefaults(w *view) bool {
	if len(v.Defaults) != len(w.Defaults) {
		return false
	}
	for k, x := range v.Defaults {
		if y, ok := w.Defaults[k]; !ok || x != y {
			return false
		}
	}
	return true
}

// sameBrokers tells whether two images agree on every broker's registration.
func sameBrokers(a, b *controller.Image) bool {
	if len(a.Brokers) != len(b.Brokers) {
		return false
	}
	for id, x := range a.Brokers {
		if y := b.Brokers[id]; y == nil || *x != *y {
			return false
		}
	}
	return true
}

// claim takes a partition's folder, nil if there is none yet.
func (a *applier) claim(name string) *folder {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.found[name]
	if f == nil {
		f = a.failed[name]
	}
	delete(a.found, name)
	delete(a.failed, name)
	return f
}

// give tells the replica what the image says. A copy that is being rebuilt follows, but is not told that it leads: it would bring its emptiness as
// the truth (R17, S2).
func (r *replica) give(v *view, t *controller.Topic, p *controller.Partition) {
	self := r.hooks.self
	if r.rebuilding.Load() {
		switch {
		case p.Leader == self && v.Config(t, "unclean.leader.election.enable") != "true":
			r.hooks.note("this copy was lost and is not complete again, but it was elected; it resigns", r)
			r.resign(p)
			return
		case p.Leader != self && slices.Contains(p.ISR, self):
			r.hooks.rebuilt(r)
		}
	}
	r.step(partition.Assign{State: host.StateOf(v.Image, t, p)})
}

// open makes the replica of a job on its folder: the one that was found at start, one that could not be opened before, or (f is nil) a new one. One that
// cannot be opened shall not take the others away: it is answered as if it were not here, and tried again.
func (a *applier) open(j *job) {
	var err error
	if j.f != nil && !host.Owns(j.t, j.f.topic) {
		// R24: the folder is of an earlier topic of this name, which is gone.
		if err = a.drop(j.f); err == nil {
			j.f = nil
		}
	}
	if err == nil {
		if j.f == nil {
			j.f = &folder{name: j.name, topic: j.t.ID, rebuild: a.lost(j)}
		}
		j.r, err = a.n.openFolder(j.t, j.key, j.f)
	}
	if err != nil {
		a.later(j, err)
	}
}

// lost tells whether the partition, whose folder is missing, had one here before this broker was started, and counted on it.
func (a *applier) lost(j *job) bool {
	return !a.first && host.CountsOn(j.p, a.n.cfg.NodeID) && a.n.store.made.has(j.key)
}

// later puts a job off whose replica could not be opened.
func (a *applier) later(j *job, err error) {
	a.n.log.Error("could not open the log of a partition", "partition", j.name, "error", err, "again_in", repairPause)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed[j.name] = j.f
}

// remember puts the partitions that have been opened on the list of those that were made, before they do anything. Those for which that fails are closed, to be tried again.
func (a *applier) remember(jobs []job) {
	made := a.n.store.made
	var keys []partitionKey
	for _, j := range jobs {
		if j.r != nil || made.keys[j.key] || j.f != nil && j.f.rebuild {
			keys = append(keys, j.key)
		}
	}
	put := made.add
	if !a.first {
		put = made.replace // of what was on it, only what still is
	}
	err := put(keys)
	if err == nil {
		return
	}
	for i := range jobs {
		if j := &jobs[i]; j.r != nil && a.n.replicas.get(j.key) == nil {
			_ = j.r.log.Close(false) // it is empty, or as it was
			j.r = nil
			a.later(j, err)
		}
	}
}

// openFolder opens the log in a folder, if it is not open yet. f says afterwards what is left to do if that fails.
func (n *Node) openFolder(t *controller.Topic, key partitionKey, f *folder) (*replica, error) {
	if f.err != nil {
		// R23: this broker registered as one that was not shut down cleanly, because of this folder, so it is in no ISR and no ELR of the partition.
		n.log.Error("log is damaged; the copy is rebuilt from the others", "partition", f.name, "error", f.err)
		if err := n.store.discard(f.name, damagedFolder); err != nil {
			return nil, err
		}
		f.err, f.rebuild = nil, true
	}
	log := f.log
	if f.log = nil; log == nil {
		var err error
		if log, err = n.store.create(f.name, t.ID, f.rebuild); err != nil {
			return nil, err
		}
	}
	core, err := n.newCore(t, log)
	if err != nil {
		return nil, errors.Join(err, log.Close(false))
	}
	r := newReplica(key, t.Name, core, log, n.hooks())
	r.rebuilding.Store(n.store.rebuilding(f.name))
	return r, nil
}

func (n *Node) newCore(t *controller.Topic, log storage.Log) (*partition.Replica, error) {
	return host.OpenReplica(partition.Config{
		Self: n.cfg.NodeID, LagTime: n.cfg.LagTime, FlushEach: n.cfg.FlushEach || t.Configs["flush.messages"] == "1",
		ProducerExpiry: n.cfg.ProducerExpiry, CheckpointEach: n.cfg.CheckpointEach,
	}, log)
}

// remove ends a replica whose partition is gone, and deletes its log.
func (a *applier) remove(r *replica) error {
	a.n.replicas.remove(r.key)
	// Whoever waits is answered NOT_LEADER_OR_FOLLOWER, by an epoch in which nobody leads.
	s := r.status()
	r.step(partition.Assign{State: partition.State{Leader: -1, LeaderEpoch: s.LeaderEpoch + 1, PartitionEpoch: s.PartitionEpoch + 1}})
	if err := r.close(false); err != nil {
		a.n.log.Warn("closing the log of a deleted partition failed", "partition", r.String(), "error", err)
	}
	a.n.log.Info("partition deleted", "partition", r.String())
	return a.n.store.discard(partitionFolder(r.topic, r.key.partition), deletedFolder)
}

// dropUnclaimed deletes the folders of topics that are gone. It happens once, when the image is known to be newer than everything that this broker
// stored.
func (a *applier) dropUnclaimed() error {
	for _, f := range a.found {
		if err := a.drop(f); err != nil {
			return err
		}
	}
	a.found = nil
	return nil
}

func (a *applier) drop(f *folder) error {
	if f.log != nil {
		if err := f.log.Close(false); err != nil {
			a.n.log.Warn("closing the log of a deleted partition failed", "partition", f.name, "error", err)
		}
	}
	a.n.log.Info("folder of a deleted topic removed", "partition", f.name)
	return a.n.store.discard(f.name, deletedFolder)
}
