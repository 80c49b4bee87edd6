package log

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
)

// maxInFlight is max.in.flight.requests.per.connection, the most that an idempotent producer may have.
const maxInFlight = 5

// apartAtMost is how far apart a producer sends batches, all of which are under way at once.
const apartAtMost = 20 * time.Millisecond

// PipelinedWriters lists producers that have several writes under way, one per partition. They are idempotent; the load has to be.
func (w *Workload) PipelinedWriters() []Worker {
	var out []Worker
	for p := range w.cfg.Partitions {
		out = append(out, Worker{Name: "pipelined writer", Client: p%w.cfg.Clients + 1, Run: func(env workloads.Env, links map[int32]string) {
			c := &client{Workload: w, env: env, partition: int32(p), links: links, process: w.NewProcess()}
			defer c.close()
			c.open(false)
			c.pipeline()
		}})
	}
	return out
}

// pipeline writes several batches at a time until the run stops. Whenever not all of them are applied, another producer goes on: what is open behind a gap in its
// sequence numbers is nobody's.
func (c *client) pipeline() {
	producer := producerState{id: -1, epoch: -1}
	var sequence int64
	for !c.env.Stopped() {
		c.breathe(false)
		if producer.id < 0 {
			id, epoch, err := c.kafka.InitProducerID()
			if err != nil {
				c.env.Sleep(c.between(20*time.Millisecond, 100*time.Millisecond))
				continue
			}
			producer, sequence = producerState{id: id, epoch: epoch}, 0
			c.process = c.NewProcess()
		}
		count := 2 + c.env.Rand().IntN(maxInFlight-1)
		if !c.writeTogether(&producer, &sequence, count) {
			producer.id = -1
			c.kafka.Close()
			c.env.Sleep(c.between(10*time.Millisecond, 60*time.Millisecond))
		}
		c.env.Sleep(c.interval(count))
	}
}

// writeTogether sends so many batches of one record, and tells whether all were applied.
func (c *client) writeTogether(p *producerState, sequence *int64, count int) bool {
	var batches []kafka.Batch
	var events []histories.Event
	for range count {
		v := histories.Value{Origin: c.cfg.Origin(c.partition), Producer: c.process, Sequence: *sequence}
		event := histories.Event{Kind: histories.Append, Process: c.process, Partition: c.partition, Pipelined: true, Runs: []histories.Run{{Producer: c.process, Sequence: *sequence, Count: 1}}}
		event.Op = c.journal.Invoke(event)
		events = append(events, event)
		batches = append(batches, kafka.Batch{Partition: c.partition, ProducerID: p.id, Epoch: p.epoch, Sequence: p.sequence, Values: [][]byte{histories.EncodeValue(nil, v, valueBytes(v.Sequence))}})
		*sequence++
		p.sequence = (p.sequence + 1) & 0x7fffffff
	}
	var apart time.Duration
	if c.env.Rand().IntN(2) == 0 {
		apart = apartAtMost
	}
	all := true
	for i, got := range c.kafka.ProduceInOrder(batches, apart, c.cfg.Deadline) {
		event := events[i]
		event.Node, event.Code = got.Node, got.Code
		switch got.Outcome {
		case kafka.Applied:
			event.Type, event.Offset = histories.OK, got.Offset
		case kafka.NotApplied:
			event.Type = histories.Fail
		default:
			event.Type = histories.Info
		}
		all = all && got.Outcome == kafka.Applied
		c.journal.Complete(event)
		if got.Outcome == kafka.Applied {
			c.counters.Ack(c.partition, 1)
		}
	}
	return all
}
