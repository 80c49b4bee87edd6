package log

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads/kafka"
)

const (
	// maxBatch bounds the records of one write. Batches of several records keep the history small at high rates; single ones are drawn as well.
	maxBatch = 24
	// pause between the writes of one producer when no rate is asked for: enough that the load does not take the processor from the brokers' timers.
	pause = 4 * time.Millisecond
)

// produce writes batches until the run stops.
func (c *client) produce() {
	producer := producerState{id: -1, epoch: -1}
	var sequence int64
	next := c.env.Now()
	for !c.env.Stopped() {
		c.breathe(false)
		if c.cfg.Idempotent && producer.id < 0 {
			id, epoch, err := c.kafka.InitProducerID()
			if err != nil {
				c.env.Sleep(c.between(20*time.Millisecond, 100*time.Millisecond))
				continue
			}
			producer = producerState{id: id, epoch: epoch}
		}
		count := c.batchSize()
		if outcome := c.write(&producer, sequence, count).Outcome; outcome == kafka.Unknown {
			// The write stays open: whoever left it must not be heard of again.
			c.process, sequence = c.NewProcess(), 0
			producer = producerState{id: -1, epoch: -1}
			c.kafka.Close()
			c.env.Sleep(c.between(10*time.Millisecond, 60*time.Millisecond))
		} else {
			sequence += int64(count) // a value is never used twice, not even that of a write that failed
			if outcome == kafka.NotApplied {
				c.env.Sleep(c.between(30*time.Millisecond, 120*time.Millisecond))
			}
		}
		next = max(next+c.interval(count), c.env.Now()-time.Second)
		if wait := next - c.env.Now(); wait > 0 {
			c.env.Sleep(wait)
		}
	}
}

// producerState is an idempotent producer as the broker knows it; id −1: none.
type producerState struct {
	id       int64
	epoch    int16
	sequence int32 // of the next record; counts what is in the log, unlike the sequence numbers in values
}

// write sends one batch and records it.
func (c *client) write(p *producerState, sequence int64, count int) kafka.Produced {
	batch := kafka.Batch{Partition: c.partition, ProducerID: p.id, Epoch: p.epoch, Sequence: -1}
	if p.id >= 0 {
		batch.Sequence = p.sequence
	}
	for i := range count {
		v := histories.Value{Origin: c.cfg.Origin(c.partition), Producer: c.process, Sequence: sequence + int64(i)}
		batch.Values = append(batch.Values, histories.EncodeValue(nil, v, valueBytes(v.Sequence)))
	}
	event := histories.Event{
		Kind: histories.Append, Process: c.process, Partition: c.partition,
		Runs: []histories.Run{{Producer: c.process, Sequence: sequence, Count: int32(count)}},
	}
	event.Op = c.journal.Invoke(event)
	got := c.kafka.Produce(batch, c.cfg.Deadline)
	event.Node, event.Code = got.Node, got.Code
	switch got.Outcome {
	case kafka.Applied:
		event.Type, event.Offset = histories.OK, got.Offset
		p.sequence = int32((int64(p.sequence) + int64(count)) & 0x7fffffff)
	case kafka.NotApplied:
		event.Type = histories.Fail
		if p.id >= 0 && (got.Code == 45 || got.Code == 47 || got.Code == 59) {
			p.id = -1 // the broker and this producer disagree about its past: begin anew
		}
	default:
		event.Type = histories.Info
	}
	c.journal.Complete(event)
	if got.Outcome == kafka.Applied {
		c.counters.Ack(c.partition, count)
	}
	return got
}

// batchSize draws the number of records of a write: small when the rate is low, so that a low rate still means many writes.
func (c *client) batchSize() int {
	most := maxBatch
	if c.cfg.Rate > 0 {
		most = min(maxBatch, 1+c.cfg.Rate/(40*c.cfg.Partitions))
	}
	return 1 + c.env.Rand().IntN(most)
}

// interval is the time that a producer takes for a write of that many records.
func (c *client) interval(count int) time.Duration {
	if c.cfg.Rate <= 0 {
		return pause
	}
	producers := 2 * c.cfg.Partitions // of this kind; franz-go adds its tenth
	return time.Duration(count) * time.Second * time.Duration(producers) / time.Duration(c.cfg.Rate)
}

// valueBytes is the size of a record's value: 96 to 191 bytes, spread by the sequence number.
func valueBytes(sequence int64) int { return 96 + int(sequence*37%96) }
