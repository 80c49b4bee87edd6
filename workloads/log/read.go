package log

import (
	"maps"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/workloads/kafka"
)

const (
	// readWait is how long a broker may hold a read that has nothing to return; short, so that readers come to rest in a breath.
	readWait = 40 * time.Millisecond
	// codeOffsetOutOfRange is Kafka's OFFSET_OUT_OF_RANGE.
	codeOffsetOutOfRange = 1
)

// tail reads the partition from its start and then follows its end.
func (c *client) tail() {
	c.readFrom(0, 0, func(int64, bool) bool { return !c.env.Stopped() })
}

// reread begins anew again and again, at the start or at a place drawn below the known end, and reads a stretch or up to the end: what was
// read once must be there for every later reader.
func (c *client) reread() {
	for !c.env.Stopped() {
		c.env.Sleep(c.between(100*time.Millisecond, 700*time.Millisecond))
		end := c.ends[c.partition].Load()
		from := int64(0)
		if end > 0 && c.env.Rand().IntN(3) > 0 {
			from = c.env.Rand().Int64N(end)
		}
		c.readFrom(0, from, func(position int64, empty bool) bool {
			return !c.env.Stopped() && !empty && position < from+c.cfg.Stretch
		})
	}
}

// followers reads one broker's copy after the other, whoever leads (KIP-392). Each is an assignment of its own, because copies lag by
// different amounts.
func (c *client) followers() {
	nodes := slices.Sorted(maps.Keys(c.links))
	for i := 0; !c.env.Stopped(); i++ {
		until := c.env.Now() + c.between(500*time.Millisecond, 2*time.Second)
		from := max(0, c.ends[c.partition].Load()-c.cfg.Stretch/4)
		c.readFrom(nodes[i%len(nodes)], from, func(int64, bool) bool {
			return !c.env.Stopped() && c.env.Now() < until
		})
	}
}

// readFrom reads under one assignment from a position on, the leader's log (node 0) or one node's copy, while more says so; more is told
// the position reached and whether the last read was empty. A reader that is told that its position does not exist tries for two seconds
// and then begins at the start of the log under a new assignment, which is what a consumer with auto.offset.reset=earliest does.
func (c *client) readFrom(node int32, position int64, more func(position int64, empty bool) bool) {
	session := c.NewSession()
	outside := 0
	for empty := false; more(position, empty); {
		c.breathe(true)
		got := Read(c.journal, c.kafka, ReadSpec{
			Kind: histories.Fetch, Origin: c.cfg.Origin(c.partition), Process: c.process, Session: session, Partition: c.partition, Node: node, From: position, Bytes: c.cfg.ReadBytes, Wait: readWait,
		})
		switch {
		case got.Code == 0:
			outside = 0
			empty = got.Next == position
			position = got.Next
			c.raise(got.End)
			if node != 0 || empty {
				c.env.Sleep(c.between(2*time.Millisecond, 10*time.Millisecond))
			}
		case got.Code == codeOffsetOutOfRange && node == 0:
			c.kafka.Forget(c.partition)
			if outside++; outside > 20 {
				session, position, outside = c.NewSession(), c.start(), 0
			}
			c.env.Sleep(100 * time.Millisecond)
		default:
			c.kafka.Forget(c.partition)
			c.env.Sleep(c.between(20*time.Millisecond, 100*time.Millisecond))
		}
	}
}

// raise remembers the end of the partition.
func (c *client) raise(end int64) {
	p := &c.ends[c.partition]
	for old := p.Load(); end > old && !p.CompareAndSwap(old, end); old = p.Load() {
	}
}

// ReadSpec is one read.
type ReadSpec struct {
	Kind      histories.Kind   // Fetch or CopyRead
	Origin    histories.Origin // of the values that belong here
	Process   int32
	Session   int32
	Partition int32
	Node      int32 // 0: the leader; else that node's copy
	From      int64
	Bytes     int32 // the most that is asked for
	Wait      time.Duration
}

// ReadResult is what a read gave.
type ReadResult struct {
	Code int16 // 0: good
	Node int32
	Next int64 // the position after what was read
	End  int64 // high watermark, −1 unknown
	Runs []histories.Run
}

// Read does one read and records it, with the position asked for also when it returns nothing.
func Read(journal Journal, client *kafka.Client, spec ReadSpec) ReadResult {
	event := histories.Event{
		Kind: spec.Kind, Process: spec.Process, Session: spec.Session, Partition: spec.Partition, Node: spec.Node, Offset: spec.From,
	}
	event.Op = journal.Invoke(event)
	answer := client.Fetch(spec.Partition, spec.Node, spec.From, spec.Bytes, spec.Wait)
	event.Node, event.Code, event.Type = answer.Node, answer.Code, histories.Fail
	result := ReadResult{Code: answer.Code, Node: answer.Node, Next: spec.From, End: answer.HighWatermark}
	if answer.Code == 0 {
		event.Type = histories.OK
		event.HighWatermark = answer.HighWatermark
		if spec.Node != 0 && spec.Kind == histories.Fetch {
			// A follower's watermark trails its leader's by design: it says nothing about the visible end.
			event.HighWatermark = -1
		}
		err := kafka.Records(answer.Batches, spec.From, func(r kafka.Record) {
			value, defect := histories.Value{}, histories.Corrupt
			if !r.Damaged {
				value, defect = histories.DecodeValue(r.Value, spec.Origin)
			}
			event.Runs = histories.AppendRecord(event.Runs, r.Offset, value, defect)
			result.Next = r.Offset + 1
		})
		result.Runs = event.Runs
		if err != nil { // bytes that are no record batch stand where the next record should
			event.Runs = histories.AppendRecord(event.Runs, result.Next, histories.Value{}, histories.Corrupt)
			event.Note = err.Error()
			result.Code = -1
		}
	}
	journal.Complete(event)
	return result
}
