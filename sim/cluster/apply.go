package cluster

import (
	"errors"
	"maps"
	"slices"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
	"ackproof/sim/world"
)

// apply brings the replicas in line with the newest image. Images of before this life's registration are not applied: what they say about this broker was
// said to the process before it (R19).
func (b *broker) apply() {
	image := b.image
	if b.view == nil {
		b.view = image // for questions about what is known; nothing is served by it
	}
	if !b.claimed && (b.epoch < 0 || !b.ownImage(image)) {
		return
	}
	b.n.c.w.Note("image", int64(b.n.id), int64(image.Index))
	for _, r := range slices.Clone(b.replicas) {
		if t := image.TopicByID(r.key.topic); t == nil || !slices.Contains(t.Partitions[r.key.index].Replicas, b.n.id) {
			b.remove(r)
		}
	}
	var wanted []string
	for _, name := range slices.Sorted(maps.Keys(image.Topics)) {
		t := image.Topics[name]
		for i, p := range t.Partitions {
			if !slices.Contains(p.Replicas, b.n.id) {
				continue
			}
			wanted = append(wanted, folderName(name, int32(i)))
			r := b.find(key{t.ID, int32(i)})
			if r == nil {
				var err error
				if r, err = b.open(t, int32(i), p); err != nil {
					b.n.c.w.Say("%s cannot open %s: %v", b.n.Name(), folderName(name, int32(i)), err)
					b.n.c.w.After(repairPause, b.n.process, b.apply)
					continue
				}
				b.add(r)
			}
			r.give(image, t, p)
		}
	}
	if !b.claimed {
		for _, name := range b.n.disk.Folders() {
			if !slices.Contains(wanted, name) { // of a topic that is gone; a log that could not be opened stays
				b.discard(name)
			}
		}
		b.claimed = true
	}
	b.view = image
	if r := image.Brokers[b.n.id]; r != nil && b.ownImage(image) {
		b.applied = r.Epoch
	}
	b.followGroups()
	b.viewNews.Broadcast()
}

// give tells the replica what the image says. A copy that is being rebuilt follows, but is not told that it leads (R17, S2).
func (r *replica) give(im *controller.Image, t *controller.Topic, p *controller.Partition) {
	f := r.b.n.folders[r.folder()]
	if f.rebuild {
		switch {
		case p.Leader == r.b.n.id && im.Config(t, "unclean.leader.election.enable") != "true":
			a := host.Resignation(p)
			r.propose(&a)
			return
		case p.Leader != r.b.n.id && slices.Contains(p.ISR, r.b.n.id):
			f.rebuild = false
		}
	}
	r.step(partition.Assign{State: host.StateOf(im, t, p)})
}

func (b *broker) open(t *controller.Topic, index int32, p *controller.Partition) (*replica, error) {
	name := folderName(t.Name, index)
	f := b.n.folders[name]
	if f != nil && !host.Owns(t, f.topic) {
		b.discard(name) // R24
		f = nil
	}
	if f == nil {
		// No folder, though the partition counted on this copy before this broker was started: the disk was lost.
		lost := !b.claimed && host.CountsOn(p, b.n.id) && b.n.made[key{t.ID, index}]
		f = &folder{topic: t.ID, rebuild: lost}
		b.n.folders[name] = f
	}
	r := &replica{b: b, key: key{t.ID, index}, topic: t.Name, back: b.backoff()}
	err := r.load()
	if err == nil || f.rebuild {
		b.n.made[r.key] = true
	}
	return r, err
}

// load opens the log, or begins it anew if it is damaged (R23).
func (r *replica) load() error {
	n := r.b.n
	log, err := n.disk.Open(r.folder())
	if errors.Is(err, storage.ErrDamaged) {
		n.disk.Remove(r.folder())
		n.folders[r.folder()].rebuild = true
		log, err = n.disk.Open(r.folder())
	}
	if err != nil {
		return err
	}
	t := n.c.cfg.Timers
	r.log = log
	r.core, err = host.OpenReplica(partition.Config{Self: n.id, LagTime: t.Lag, FlushEach: n.c.cfg.FlushEach, CheckpointEach: t.Checkpoint}, log)
	return err
}

func (b *broker) remove(r *replica) {
	b.replicas = slices.DeleteFunc(b.replicas, func(x *replica) bool { return x == r })
	s := r.core.Status()
	r.step(partition.Assign{State: partition.State{Leader: -1, LeaderEpoch: s.LeaderEpoch + 1, PartitionEpoch: s.PartitionEpoch + 1}})
	r.closed = true
	_ = r.log.Close(false) // it goes: whatever it says
	b.discard(r.folder())
}

func (b *broker) discard(name string) {
	b.n.disk.Remove(name)
	delete(b.n.folders, name)
}

// offline brings a replica back whose log failed: the broker gives up its registration, and once the image has a new one the log is opened again (S3, S4,
// R19).
func (r *replica) offline(why error) {
	b := r.b
	b.n.c.w.Note("offline", int64(b.n.id), int64(r.key.index))
	b.n.c.w.Say("%s %s is offline: %v", b.n.Name(), r.folder(), why)
	r.failed = true
	b.n.c.w.Go(b.n.process, func(t *world.Task) {
		for {
			old := b.epoch
			b.reregister()
			for b.applied <= old {
				t.Wait(&b.viewNews, world.Forever)
			}
			for r.busy {
				t.Sleep(writeTime)
			}
			_ = r.log.Close(false) // it is dead: whatever it says, it is opened again
			if err := r.load(); err == nil {
				break
			}
			t.Sleep(repairPause)
		}
		r.failed, r.queue = false, nil
		if t := b.view.TopicByID(r.key.topic); t != nil {
			r.give(b.view, t, t.Partitions[r.key.index])
		}
	})
}
