package controller

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// change is what happens to a partition: a new in-sync set, and how to elect if that leaves it without a leader.
type change struct {
	isr     []int32
	lost    int32 // a replica that came back from an unclean stop and may have lost records; none if there is none
	gone    bool  // it has lost all of them
	prefer  bool  // give the lead to the preferred replica if it is in sync
	unclean bool  // elect any live replica rather than none, though records are lost
	confirm bool  // move the partition epoch also if the sets stay as they are
}

// settle is the one place where a partition's leader, ISR and ELR change. It replaces partition i if anything changes.
func (e *edit) settle(t *Topic, i int32, ch change) {
	old := t.Partitions[i]
	minISR := min(e.image.MinISR(t), len(old.Replicas))
	next := *old
	next.ISR = ch.isr

	// R18 (KIP-966): while the ISR is smaller than min.insync.replicas nothing is committed (R3), so whoever leaves it then, or left it with that step,
	// still has every committed record. Unless it stopped uncleanly. The ELR is emptied again below if the ISR is large enough.
	next.ELR = []int32{}
	for _, id := range old.Replicas {
		had := slices.Contains(old.ISR, id) || slices.Contains(old.ELR, id)
		if had && id != ch.lost && !slices.Contains(next.ISR, id) {
			next.ELR = append(next.ELR, id)
		}
	}
	next.Lost = old.lostBut(next.ISR)
	if ch.gone {
		next.Lost = append(next.Lost, ch.lost)
	}
	if len(next.ISR) == 0 && old.Leader != none && !ch.gone {
		next.LastKnownLeader = old.Leader
	}

	e.elect(&next, ch, ch.unclean || e.image.uncleanElection(t))
	if len(next.ISR) >= minISR && e.flags&keepEligible == 0 {
		next.ELR = []int32{}
	}
	if next.Leader != none {
		next.LastKnownLeader = none
	}

	if next.Leader != old.Leader {
		next.LeaderEpoch++
	} else if slices.Equal(next.ISR, old.ISR) && slices.Equal(next.ELR, old.ELR) && slices.Equal(next.Lost, old.Lost) && next.LastKnownLeader == old.LastKnownLeader && !ch.confirm {
		return
	}
	next.PartitionEpoch++
	e.topic(t.Name).Partitions[i] = &next
}

// lostBut are the replicas that have lost their logs, without those; nil if there are none.
func (p *Partition) lostBut(ids []int32) (out []int32) {
	for _, id := range p.Lost {
		if !slices.Contains(ids, id) {
			out = append(out, id)
		}
	}
	return out
}

// elect chooses p's leader (R17): the present one if it may stay, else the first replica in order that is in sync; from the ELR when the ISR is empty; the
// last known leader when both are. Nobody else, unless unclean election is allowed.
func (e *edit) elect(p *Partition, ch change, unclean bool) {
	active := e.image.Active
	may := func(ids []int32) func(int32) bool {
		return func(id int32) bool { return slices.Contains(ids, id) && active(id) }
	}
	inISR := may(p.ISR)
	if ch.prefer && inISR(p.Replicas[0]) {
		p.Leader = p.Replicas[0]
		return
	}
	if p.Leader != none && inISR(p.Leader) {
		return
	}
	p.Leader = first(p.Replicas, inISR)
	if p.Leader != none {
		return
	}
	if len(p.ISR) == 0 {
		if p.Leader = first(p.Replicas, may(p.ELR)); p.Leader != none {
			p.ISR, p.ELR = []int32{p.Leader}, without(p.ELR, p.Leader)
			return
		}
		// KIP-966 calls this "unclean recovery" in its balanced mode: whoever led last has at least as much as anybody who is left. It is how Kafka comes
		// back after all copies stopped uncleanly, and it does so with unclean.leader.election.enable=false too.
		if l := p.LastKnownLeader; len(p.ELR) == 0 && l != none && active(l) {
			p.Leader, p.ISR = l, []int32{l}
			return
		}
	}
	// B05 elects here although the configuration forbids it.
	if unclean || e.flags&electAnyReplica != 0 {
		if p.Leader = first(p.Replicas, func(id int32) bool { return active(id) && !slices.Contains(p.Lost, id) }); p.Leader == none {
			p.Leader = first(p.Replicas, active)
		}
		if p.Leader != none {
			// What the others have beyond the new leader's log is no longer the truth.
			p.ISR, p.ELR = []int32{p.Leader}, []int32{}
			p.Lost = p.lostBut(p.ISR)
		}
	}
}

func first(ids []int32, ok func(int32) bool) int32 {
	for _, id := range ids {
		if ok(id) {
			return id
		}
	}
	return none
}

// The types of ElectLeaders (KIP-460).
const (
	preferredElection = 0
	uncleanElection   = 1
)

// electLeaders is the election that somebody asks for, for the named partitions or for all.
func (e *edit) electLeaders(r *kmsg.ElectLeadersRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.ElectLeadersResponse)
	resp.Topics = []kmsg.ElectLeadersResponseTopic{}
	if r.ElectionType != preferredElection && r.ElectionType != uncleanElection {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	}
	topics, all := r.Topics, r.Topics == nil
	if all {
		for _, name := range sortedKeys(e.image.Topics) {
			t := kmsg.ElectLeadersRequestTopic{Topic: name}
			for i := range e.image.Topics[name].Partitions {
				t.Partitions = append(t.Partitions, int32(i))
			}
			topics = append(topics, t)
		}
	}
	for _, t := range topics {
		rt := kmsg.ElectLeadersResponseTopic{Topic: t.Topic, Partitions: []kmsg.ElectLeadersResponseTopicPartition{}}
		for _, i := range t.Partitions {
			p := e.electOne(t.Topic, i, r.ElectionType)
			if all && p.code == kerr.ElectionNotNeeded {
				continue
			}
			rt.Partitions = append(rt.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: i, ErrorCode: p.Code(), ErrorMessage: p.Message()})
		}
		if len(rt.Partitions) > 0 {
			resp.Topics = append(resp.Topics, rt)
		}
	}
	return resp
}

func (e *edit) electOne(topic string, i int32, kind int8) problem {
	t := e.image.Topics[topic]
	if t == nil || i < 0 || int(i) >= len(t.Partitions) {
		return problem{kerr.UnknownTopicOrPartition, fmt.Sprintf("no partition %d of topic %q", i, topic)}
	}
	p := t.Partitions[i]
	if kind == preferredElection && p.Leader == p.Replicas[0] {
		return problem{kerr.ElectionNotNeeded, "the preferred replica leads already"}
	}
	if kind == uncleanElection && p.Leader != none {
		return problem{kerr.ElectionNotNeeded, fmt.Sprintf("broker %d leads", p.Leader)}
	}
	e.settle(t, i, change{isr: p.ISR, lost: none, prefer: kind == preferredElection, unclean: kind == uncleanElection})
	if e.image.Topics[topic].Partitions[i] != p {
		return problem{}
	}
	if kind == preferredElection {
		return problem{kerr.PreferredLeaderNotAvailable, fmt.Sprintf("broker %d is not in sync: %v", p.Replicas[0], p.ISR)}
	}
	return problem{kerr.EligibleLeadersNotAvailable, fmt.Sprintf("no replica is alive: %v", p.Replicas)}
}

// preferredElections asks for an election wherever the preferred replica could lead and does not, at most 1000 at a time; nil if nowhere.
func (im *Image) preferredElections() *kmsg.ElectLeadersRequest {
	q := kmsg.NewPtrElectLeadersRequest()
	q.Version, q.ElectionType = q.MaxVersion(), preferredElection
	left := 1000
	for _, name := range sortedKeys(im.Topics) {
		t := kmsg.ElectLeadersRequestTopic{Topic: name}
		for i, p := range im.Topics[name].Partitions {
			want := p.Replicas[0]
			if left > 0 && p.Leader != want && slices.Contains(p.ISR, want) && im.Active(want) {
				t.Partitions = append(t.Partitions, int32(i))
				left--
			}
		}
		if len(t.Partitions) > 0 {
			q.Topics = append(q.Topics, t)
		}
	}
	if q.Topics == nil {
		return nil
	}
	return q
}
