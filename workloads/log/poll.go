package log

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads/kafka"
)

// poll asks for the visible end some thirty times a second, and for the start now and then, unless it moves: a start that was raised by a deletion which is not
// acknowledged yet may go back.
func (c *client) poll() {
	for turn := 0; !c.env.Stopped(); turn++ {
		c.breathe(true)
		kind, timestamp := histories.EndOffset, kafka.Latest
		if turn%10 == 9 && !c.cfg.Deletes {
			kind, timestamp = histories.StartOffset, kafka.Earliest
		}
		answer := AskOffset(c.journal, c.kafka, c.process, c.partition, kind, timestamp)
		if answer.Code != 0 {
			c.kafka.Forget(c.partition)
			c.env.Sleep(c.between(30*time.Millisecond, 100*time.Millisecond))
			continue
		}
		if kind == histories.EndOffset {
			c.raise(answer.Offset)
		}
		c.env.Sleep(c.between(20*time.Millisecond, 50*time.Millisecond))
	}
}

// AskOffset asks the leader for the start or the visible end of the partition and records it.
func AskOffset(journal Journal, client *kafka.Client, process, partition int32, kind histories.Kind, timestamp int64) kafka.Answer {
	event := histories.Event{Kind: kind, Process: process, Partition: partition}
	event.Op = journal.Invoke(event)
	answer := client.Offset(partition, 0, timestamp)
	event.Type, event.Node, event.Code = histories.Fail, answer.Node, answer.Code
	if answer.Code == 0 {
		event.Type, event.Offset, event.LeaderEpoch = histories.OK, answer.Offset, answer.LeaderEpoch
	}
	journal.Complete(event)
	return answer
}
