package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadata is what a member tells the one who assigns.
type metadata struct {
	topic      string
	owned      []int32
	generation int32 // in which it got them; −1: none
}

func (d metadata) encode() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Generation = 2, []string{d.topic}, d.generation
	if len(d.owned) > 0 {
		t := kmsg.NewConsumerMemberMetadataOwnedPartition()
		t.Topic, t.Partitions = d.topic, d.owned
		m.OwnedPartitions = append(m.OwnedPartitions, t)
	}
	return m.AppendTo(nil)
}

func decodeMetadata(raw []byte, topic string) metadata {
	d := metadata{topic: topic, generation: -1}
	var m kmsg.ConsumerMemberMetadata
	if m.ReadFrom(raw) != nil {
		return d // somebody else's: it owns nothing that this test knows of
	}
	d.generation = m.Generation
	for _, t := range m.OwnedPartitions {
		if t.Topic == topic {
			d.owned = append(d.owned, t.Partitions...)
		}
	}
	return d
}

func encodeAssignment(topic string, partitions []int32) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	if len(partitions) > 0 {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic, t.Partitions = topic, partitions
		a.Topics = append(a.Topics, t)
	}
	return a.AppendTo(nil)
}

// decodeAssignment gives the partitions of the topic, in order; none from what makes no sense.
func decodeAssignment(raw []byte, topic string) (partitions []int32) {
	var a kmsg.ConsumerMemberAssignment
	if len(raw) == 0 || a.ReadFrom(raw) != nil {
		return nil
	}
	for _, t := range a.Topics {
		if t.Topic == topic {
			partitions = append(partitions, t.Partitions...)
		}
	}
	slices.Sort(partitions)
	return slices.Compact(partitions)
}

// assign shares the partitions among the members: as ranges, in the order of their ids; or, cooperatively, so that each keeps what it has as far as the shares allow, and what is
// still somebody's goes to nobody else in this round.
func assign(cooperative bool, topic string, partitions int, members map[string][]byte) map[string][]byte {
	ids := slices.Sorted(maps.Keys(members))
	if len(ids) == 0 {
		return nil // a coordinator that says that nobody is there, not even the one that it asks
	}
	shares := ranges(ids, partitions)
	if cooperative {
		known := map[string]metadata{}
		for _, id := range ids {
			known[id] = decodeMetadata(members[id], topic)
		}
		shares = sticky(ids, partitions, known)
	}
	out := map[string][]byte{}
	for _, id := range ids {
		out[id] = encodeAssignment(topic, shares[id])
	}
	return out
}

// ranges gives each member as many consecutive partitions as the others, the first ones one more.
func ranges(ids []string, partitions int) map[string][]int32 {
	out := map[string][]int32{}
	next := int32(0)
	for i, id := range ids {
		n := partitions / len(ids)
		if i < partitions%len(ids) {
			n++
		}
		for range n {
			out[id] = append(out[id], next)
			next++
		}
	}
	return out
}

// sticky is the cooperative assignment. Of two members that claim one partition the one of the newer generation has it (KIP-792).
func sticky(ids []string, partitions int, known map[string]metadata) map[string][]int32 {
	owner := map[int32]string{}
	for _, id := range ids {
		for _, p := range known[id].owned {
			if other, taken := owner[p]; p >= 0 && int(p) < partitions && (!taken || known[other].generation < known[id].generation) {
				owner[p] = id
			}
		}
	}
	out := map[string][]int32{}
	most, more := partitions/len(ids), partitions%len(ids) // so many may have one more than the rest
	full := func(id string) bool { return len(out[id]) > most || len(out[id]) == most && more == 0 }
	give := func(id string, p int32) {
		if len(out[id]) == most {
			more--
		}
		out[id] = append(out[id], p)
	}
	var free []int32
	for p := range int32(partitions) {
		switch id, owned := owner[p]; {
		case !owned:
			free = append(free, p)
		case !full(id):
			give(id, p)
		}
		// What is beyond its owner's share goes to nobody yet: the owner has to give it back first.
	}
	for _, p := range free {
		i := slices.IndexFunc(ids, func(id string) bool { return !full(id) })
		give(ids[i], p)
	}
	return out
}
