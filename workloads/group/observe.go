package group

import (
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
)

// observe reads the group's committed offsets back again and again, as somebody who is no member of it.
func (w *Workload) observe(g Group, env workloads.Env, links map[int32]string) {
	client := w.client(env, links)
	defer client.Close()
	process := w.log.NewProcess()
	for !env.Stopped() {
		if _, code := w.readBack(g, client, process); code != 0 {
			env.Sleep(between(env, 2*time.Millisecond, 20*time.Millisecond)) // soon: a coordinator that takes over has most to hide at first
		} else {
			env.Sleep(between(env, 20*time.Millisecond, 60*time.Millisecond))
		}
	}
}

// readBack asks for the committed offsets of all partitions and records the answer.
func (w *Workload) readBack(g Group, client *kafka.Client, process int32) (map[int32]kafka.CommittedOffset, int16) {
	partitions := make([]int32, w.cfg.Log.Partitions)
	event := object(process)
	for p := range partitions {
		partitions[p] = int32(p)
		event.Steps = append(event.Steps, histories.Step{Do: histories.Committed, Key: g.Key(int32(p)), Offset: -1})
	}
	event.Op = w.journal.Invoke(event)
	offsets, node, code := client.FetchCommitted(kafka.Member{Group: g.Name, Generation: -1}, false, partitions)
	event.Node, event.Code, event.Type = node, code, histories.Fail
	if code == 0 {
		event.Type, event.Steps = histories.OK, nil
		for _, p := range partitions {
			event.Steps = append(event.Steps, found(g, p, offsets[p]))
		}
	}
	w.journal.Complete(event)
	return offsets, code
}

// found is a committed offset as histories have it.
func found(g Group, partition int32, c kafka.CommittedOffset) histories.Step {
	s := histories.Step{Do: histories.Committed, Key: g.Key(partition), Offset: max(c.Offset, -1)}
	if c.Metadata != "" {
		s.Value = histories.Datum{Form: histories.Text, Text: c.Metadata}
	}
	return s
}
