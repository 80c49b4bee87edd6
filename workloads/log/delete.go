package log

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
)

// Deleters lists clients that do not belong to every load: one per partition that deletes the older part of the log now and then, as an operator does who is
// short of room.
func (w *Workload) Deleters() []Worker {
	var out []Worker
	for p := range w.cfg.Partitions {
		out = append(out, Worker{Name: "deleter", Client: p%w.cfg.Clients + 1, Run: func(env workloads.Env, links map[int32]string) {
			c := &client{Workload: w, env: env, partition: int32(p), links: links, process: w.NewProcess()}
			defer c.close()
			c.open(false)
			c.remove()
		}})
	}
	return out
}

// remove deletes up to a place drawn from the newer half of what is known, again and again until that is acknowledged, and then looks for a while whether it stays
// so. The answer to a deletion says where the log begins, so it is recorded as what it is: an answer about the start. Nobody knows in which
// leader epoch it was given, so it is compared with no other answer, and the start is asked for at once.
func (c *client) remove() {
	for !c.env.Stopped() {
		c.env.Sleep(c.between(100*time.Millisecond, 400*time.Millisecond))
		half := c.ends[c.partition].Load() / 2
		if half < 1 {
			continue
		}
		if !c.removeBelow(half + c.env.Rand().Int64N(half)) {
			return
		}
		for range 1 + c.env.Rand().IntN(30) {
			c.breathe(true)
			if c.env.Stopped() {
				return
			}
			if AskOffset(c.journal, c.kafka, c.process, c.partition, histories.StartOffset, kafka.Earliest).Code != 0 {
				c.kafka.Forget(c.partition)
			}
			c.env.Sleep(c.between(30*time.Millisecond, 60*time.Millisecond))
		}
	}
}

// removeBelow returns true when the deletion is acknowledged, and false when the run stops first.
func (c *client) removeBelow(offset int64) bool {
	for !c.env.Stopped() {
		c.breathe(true)
		event := histories.Event{Kind: histories.StartOffset, Process: c.process, Partition: c.partition, Note: "delete-records"}
		event.Op = c.journal.Invoke(event)
		answer := c.kafka.DeleteRecords(c.partition, offset, c.cfg.RequestTimeout)
		event.Type, event.Node, event.Code = histories.Fail, answer.Node, answer.Code
		if answer.Code == 0 {
			event.Type, event.Offset, event.LeaderEpoch = histories.OK, answer.Offset, answer.LeaderEpoch
		}
		c.journal.Complete(event)
		if answer.Code == 0 {
			return true
		}
		c.kafka.Forget(c.partition)
		c.env.Sleep(c.between(30*time.Millisecond, 120*time.Millisecond))
	}
	return false
}

// start asks where the log begins; 0 if nobody says.
func (c *client) start() int64 {
	return max(0, c.kafka.Offset(c.partition, 0, kafka.Earliest).Offset)
}
