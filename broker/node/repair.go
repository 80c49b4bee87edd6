package node

import (
	"context"
	"errors"
	"time"

	"ackproof/broker/storage"
)

const repairPause = 5 * time.Second // between attempts, so that a broken disk does not keep the cluster busy

// repair brings a replica back whose log failed while it was served (S3, S4).
//
// What such a log still holds is unknown, so the broker must not be counted for it any more. It gives up its whole registration: the new one is
// fenced out of every leadership and ISR at once, and, since it proves no clean shutdown, out of every ELR (R19, R18). Only when the image says so is
// the log opened again, repaired or, if it is damaged, begun anew, and the replica follows like any other that comes back. A log that was begun anew
// is marked on disk until it has been in the ISR once: with that mark it is never told that it leads, whoever elects it, the last known leader's
// election of KIP-966 included (S2, R23).
func (n *Node) repair(ctx context.Context, r *replica) {
	name := partitionFolder(r.topic, r.key.partition)
	if err := r.closeLog(); err != nil {
		n.log.Debug("closing the failed log", "partition", name, "error", err)
	}
	for {
		reg := n.registered.Load()
		if reg == nil {
			return // cannot be: replicas exist only after the registration
		}
		poke(n.registerAgain)
		if _, err := n.awaitView(ctx, func(*view) bool { return n.appliedEpoch.Load() > reg.epoch }); err != nil {
			return
		}
		err := n.reopen(r, name)
		if err == nil {
			n.log.Info("replica is back after its storage had failed", "partition", name, "rebuilding", r.rebuilding.Load())
			return
		}
		n.log.Error("log could not be opened again", "partition", name, "error", err, "again_in", repairPause)
		if !sleep(ctx, repairPause) {
			return
		}
	}
}

func (n *Node) reopen(r *replica, name string) error {
	log, err := n.store.openLog(name)
	if errors.Is(err, storage.ErrDamaged) {
		n.log.Error("log is damaged; the copy is rebuilt from the others", "partition", name, "error", err)
		if err := n.store.discard(name, damagedFolder); err != nil {
			return err
		}
		if log, err = n.store.create(name, r.key.topic, true); err == nil {
			r.rebuilding.Store(true)
		}
	}
	if err != nil {
		return err
	}
	v := n.view.Load()
	t := v.byID[r.key.topic]
	if t == nil {
		return log.Close(false) // deleted meanwhile
	}
	core, err := n.newCore(t, log)
	if err != nil {
		return errors.Join(err, log.Close(false))
	}
	r.replace(core, log)
	r.give(v, t, t.Partitions[r.key.partition])
	return nil
}

// rebuilt takes the mark off a copy that the controller counts as in sync: it got there by fetching all that is committed (R14).
func (n *Node) rebuilt(r *replica) {
	if err := n.store.rebuilt(partitionFolder(r.topic, r.key.partition)); err != nil {
		n.log.Error("could not take the mark off a rebuilt copy", "partition", r.String(), "error", err)
		return
	}
	r.rebuilding.Store(false)
	n.log.Info("copy is complete again", "partition", r.String())
}
