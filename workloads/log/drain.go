package log

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
)

// Visitor is a client of the harness itself: it probes before the load, and after healing it demands writes and reads everything back. It
// records its operations like any other client. One goroutine at a time may use it.
type Visitor struct{ c *client }

// Visit makes a visitor to one partition.
func (w *Workload) Visit(env workloads.Env, partition int32, links map[int32]string) *Visitor {
	c := &client{Workload: w, env: env, partition: partition, links: links, process: w.NewProcess()}
	c.open(false)
	return &Visitor{c}
}

// Close closes its connections.
func (v *Visitor) Close() { v.c.close() }

// Write appends one record as a new producer and tells what became of it.
func (v *Visitor) Write() (kafka.Produced, error) {
	c := v.c
	producer := producerState{id: -1, epoch: -1}
	if c.cfg.Idempotent {
		id, epoch, err := c.kafka.InitProducerID()
		if err != nil {
			return kafka.Produced{Outcome: kafka.NotApplied, Code: kafka.NoRoute, Offset: -1}, err
		}
		producer = producerState{id: id, epoch: epoch}
	}
	c.process = c.NewProcess()
	return c.write(&producer, 0, 1), nil
}

// View asks one node for its view of the topic.
func (v *Visitor) View(node int32) (kafka.View, error) { return v.c.kafka.AskView(node) }

// End asks the leader for the visible end and records the question.
func (v *Visitor) End() kafka.Answer {
	answer := AskOffset(v.c.journal, v.c.kafka, v.c.process, v.c.partition, histories.EndOffset, kafka.Latest)
	if answer.Code != 0 {
		v.c.kafka.Forget(v.c.partition)
	}
	return answer
}

// CopyEnd asks one node for the end of its own copy, whatever of it is visible. It is no operation of the history: Copy records what was found.
func (v *Visitor) CopyEnd(node int32) kafka.Answer {
	return v.c.kafka.Offset(v.c.partition, node, kafka.Latest)
}

// ReadAll reads the leader's log under a fresh assignment from its start up to an empty read at the end. It gives up after the patience and
// then returns the code of the last read.
func (v *Visitor) ReadAll(patience time.Duration) ReadResult {
	return v.readAll(histories.Fetch, 0, 0, patience)
}

// Copy reads one node's copy from its start up to an empty read at or after the offset target, and records where the copy ends. A follower
// learns the watermark one fetch later than its leader, hence the target.
func (v *Visitor) Copy(node int32, target int64, patience time.Duration) ReadResult {
	result := v.readAll(histories.CopyRead, node, target, patience)
	if result.Code != 0 {
		return result
	}
	c := v.c
	event := histories.Event{Kind: histories.CopyEnd, Process: c.process, Partition: c.partition, Node: node}
	event.Op = c.journal.Invoke(event)
	answer := v.CopyEnd(node)
	event.Type, event.Code = histories.Fail, answer.Code
	if answer.Code == 0 {
		event.Type, event.Offset, event.HighWatermark, event.LeaderEpoch = histories.OK, answer.Offset, result.End, answer.LeaderEpoch
	}
	c.journal.Complete(event)
	result.Code = answer.Code
	return result
}

// start asks where a log begins. The leader's answer is recorded: what lies below it is not read, and nobody else may know that it was deleted, if the answer to the
// deletion was lost. What a follower says is not, because it learns of a deletion later.
func (v *Visitor) start(node int32) kafka.Answer {
	if node == 0 {
		return AskOffset(v.c.journal, v.c.kafka, v.c.process, v.c.partition, histories.StartOffset, kafka.Earliest)
	}
	return v.c.kafka.Offset(v.c.partition, node, kafka.Earliest)
}

func (v *Visitor) readAll(kind histories.Kind, node int32, target int64, patience time.Duration) ReadResult {
	c := v.c
	until := c.env.Now() + patience
	session := c.NewSession()
	start := v.start(node)
	for ; start.Code != 0; start = v.start(node) {
		if c.env.Now() >= until {
			return ReadResult{Code: start.Code, Node: node, End: -1}
		}
		c.kafka.Forget(c.partition)
		c.env.Sleep(50 * time.Millisecond)
	}
	for position := max(0, start.Offset); ; {
		got := Read(c.journal, c.kafka, ReadSpec{
			Kind: kind, Origin: c.cfg.Origin(c.partition), Process: c.process, Session: session, Partition: c.partition, Node: node, From: position, Bytes: c.cfg.ReadBytes, Wait: readWait,
		})
		if got.Code == 0 && got.Next == position && position >= max(got.End, target) {
			return got
		}
		if c.env.Now() >= until {
			if got.Code == 0 {
				got.Code = kafka.NoAnswer // it answers, but its end is out of reach
			}
			return got
		}
		if got.Code != 0 || got.Next == position {
			c.kafka.Forget(c.partition)
			c.env.Sleep(50 * time.Millisecond)
		}
		position = got.Next
	}
}

// ReadAt reads once from a position of the leader's log, under an assignment of its own.
func (v *Visitor) ReadAt(position int64) ReadResult {
	c := v.c
	got := Read(c.journal, c.kafka, ReadSpec{
		Kind: histories.Fetch, Origin: c.cfg.Origin(c.partition), Process: c.process, Session: c.NewSession(), Partition: c.partition, From: position, Bytes: c.cfg.ReadBytes, Wait: readWait,
	})
	if got.Code != 0 {
		c.kafka.Forget(c.partition)
	}
	return got
}
