package controller

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (e *edit) createTopics(r *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.CreateTopicsResponse)
	resp.Topics = []kmsg.CreateTopicsResponseTopic{}
	count := map[string]int{}
	for _, q := range r.Topics {
		count[q.Topic]++
	}
	for _, q := range r.Topics {
		if count[q.Topic] > 1 {
			resp.Topics = append(resp.Topics, topicRefused(q.Topic, problem{kerr.InvalidRequest, "the topic is there twice"}))
			continue
		}
		t, p := e.newTopic(q)
		if p.found() {
			resp.Topics = append(resp.Topics, topicRefused(q.Topic, p))
			continue
		}
		e.putTopic(t)
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.TopicID = t.Name, t.ID
		if r.ValidateOnly {
			rt.TopicID = [16]byte{}
		}
		rt.NumPartitions, rt.ReplicationFactor = int32(len(t.Partitions)), int16(len(t.Partitions[0].Replicas))
		rt.Configs = e.image.describe(t)
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// topicRefused is the answer for a topic that is not created. Configs is empty but not null: null breaks the Java admin client.
func topicRefused(name string, p problem) kmsg.CreateTopicsResponseTopic {
	rt := kmsg.NewCreateTopicsResponseTopic()
	rt.Topic, rt.ErrorCode, rt.ErrorMessage = name, p.Code(), p.Message()
	rt.NumPartitions, rt.ReplicationFactor = -1, -1
	rt.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	return rt
}

func (im *Image) describe(t *Topic) []kmsg.CreateTopicsResponseTopicConfig {
	out := []kmsg.CreateTopicsResponseTopicConfig{}
	for _, k := range configKeys {
		source := kmsg.ConfigSourceDefaultConfig
		if _, ok := im.Defaults[k.Name]; ok {
			source = kmsg.ConfigSourceStaticBrokerConfig
		}
		if _, ok := t.Configs[k.Name]; ok {
			source = kmsg.ConfigSourceDynamicTopicConfig
		}
		out = append(out, kmsg.CreateTopicsResponseTopicConfig{Name: k.Name, Value: kmsg.StringPtr(im.Config(t, k.Name)), Source: int8(source)})
	}
	return out
}

// newTopic checks a topic and lays it out.
func (e *edit) newTopic(q kmsg.CreateTopicsRequestTopic) (*Topic, problem) {
	if err := checkTopicName(q.Topic); err != nil {
		return nil, problem{kerr.InvalidTopicException, err.Error()}
	}
	if q.Topic == "__cluster_metadata" {
		return nil, problem{kerr.InvalidRequest, "the name is kept for the control plane's own log"}
	}
	if e.image.Topics[q.Topic] != nil {
		return nil, problem{kerr.TopicAlreadyExists, fmt.Sprintf("topic %q already exists", q.Topic)}
	}
	if len(e.image.Topics) >= MaxTopics {
		return nil, problem{kerr.PolicyViolation, fmt.Sprintf("the cluster has %d topics, the most that it takes", MaxTopics)}
	}
	layout, p := e.layout(q)
	if p.found() {
		return nil, p
	}
	rf := len(layout[0])
	if rf == 1 && e.flags&singleCopy == 0 {
		return nil, problem{kerr.PolicyViolation, "a topic with one replica loses acknowledged records with its broker; this cluster does not accept it"}
	}
	t := &Topic{Name: q.Topic, ID: topicID(e.cluster, e.index, q.Topic), Configs: map[string]string{}}
	for _, c := range q.Configs {
		if c.Value == nil {
			return nil, problem{kerr.InvalidConfig, fmt.Sprintf("configuration %s is null", c.Name)}
		}
		t.Configs[c.Name] = *c.Value
	}
	if p := e.checkConfigs(t.Configs, rf); p.found() {
		return nil, p
	}
	for i, replicas := range layout {
		np, p := e.newPartition(i, replicas)
		if p.found() {
			return nil, p
		}
		t.Partitions = append(t.Partitions, np)
	}
	return t, problem{}
}

// layout is the replicas of each partition: as told, or spread evenly.
func (e *edit) layout(q kmsg.CreateTopicsRequestTopic) ([][]int32, problem) {
	if len(q.ReplicaAssignment) > 0 {
		if q.NumPartitions != -1 || q.ReplicationFactor != -1 {
			return nil, problem{kerr.InvalidRequest, "with an assignment, partitions and replication factor must be -1"}
		}
		if p := e.roomFor(0, len(q.ReplicaAssignment)); p.found() {
			return nil, p
		}
		layout, rf := make([][]int32, len(q.ReplicaAssignment)), len(q.ReplicaAssignment[0].Replicas)
		for _, a := range q.ReplicaAssignment {
			if a.Partition < 0 || int(a.Partition) >= len(layout) || layout[a.Partition] != nil {
				return nil, problem{kerr.InvalidReplicaAssignment, fmt.Sprintf("partition %d is there twice or leaves a gap", a.Partition)}
			}
			if p := e.checkReplicas(a.Replicas, rf); p.found() {
				return nil, p
			}
			layout[a.Partition] = slices.Clone(a.Replicas)
		}
		return layout, problem{}
	}
	count, rf := int(q.NumPartitions), int(q.ReplicationFactor)
	if count == -1 {
		count = e.image.defaultNumber(defaultPartsKey)
	}
	if rf == -1 {
		rf = e.image.defaultNumber(defaultRFKey)
	}
	if count < 1 {
		return nil, problem{kerr.InvalidPartitions, fmt.Sprintf("%d partitions, want at least 1", count)}
	}
	if p := e.roomFor(0, count); p.found() {
		return nil, p
	}
	return e.spread(count, rf)
}

func (e *edit) roomFor(have, more int) problem {
	if have+more > MaxPartitionsPerTopic {
		return problem{kerr.InvalidPartitions, fmt.Sprintf("%d partitions, want at most %d in a topic", have+more, MaxPartitionsPerTopic)}
	}
	if all := e.image.partitions(); all+more > MaxPartitions {
		return problem{kerr.InvalidPartitions, fmt.Sprintf("%d partitions besides %d others, want at most %d in the cluster", more, all, MaxPartitions)}
	}
	return problem{}
}

// checkReplicas judges an assignment by hand; rf is how many replicas the topic's other partitions have.
func (e *edit) checkReplicas(replicas []int32, rf int) problem {
	if len(replicas) == 0 || repeats(replicas) || len(replicas) != rf {
		return problem{kerr.InvalidReplicaAssignment, fmt.Sprintf("replicas %v: none, one twice, or not as many as the topic's other partitions have", replicas)}
	}
	for _, id := range replicas {
		if e.image.Brokers[id] == nil {
			return problem{kerr.InvalidReplicaAssignment, fmt.Sprintf("replicas %v: broker %d is not registered", replicas, id)}
		}
	}
	return problem{}
}

// newPartition is partition i of those replicas; who is alive is in sync, as there is nothing to have yet.
func (e *edit) newPartition(i int, replicas []int32) (*Partition, problem) {
	p := &Partition{Leader: none, Replicas: replicas, ISR: []int32{}, ELR: []int32{}, LastKnownLeader: none}
	for _, id := range replicas {
		if e.image.Active(id) {
			p.ISR = append(p.ISR, id)
		}
	}
	if len(p.ISR) == 0 {
		return nil, problem{kerr.InvalidReplicaAssignment, fmt.Sprintf("partition %d: all of the brokers %v are fenced or shutting down", i, replicas)}
	}
	p.Leader = p.ISR[0]
	return p, problem{}
}

// spread lays out partitions over the active brokers: leaders in turn, going on where the partitions made so far end, and followers shifted by one more with
// each round, so that a broker's load goes to all others when it fails.
func (e *edit) spread(count, rf int) ([][]int32, problem) {
	var ids []int32
	for _, id := range sortedKeys(e.image.Brokers) {
		if e.image.Active(id) {
			ids = append(ids, id)
		}
	}
	n := len(ids)
	if rf < 1 || rf > n {
		return nil, problem{kerr.InvalidReplicationFactor, fmt.Sprintf("replication factor %d, want 1 to %d, the number of unfenced brokers", rf, n)}
	}
	start := e.image.partitions()
	layout := make([][]int32, count)
	for i := range layout {
		turn := start + i
		leader, shift := turn%n, turn/n
		layout[i] = append(layout[i], ids[leader])
		for j := range rf - 1 {
			layout[i] = append(layout[i], ids[(leader+1+(shift+j)%(n-1))%n])
		}
	}
	return layout, problem{}
}

func checkTopicName(name string) error {
	if len(name) == 0 || len(name) > 249 || name == "." || name == ".." {
		return fmt.Errorf("topic name %.60q, want 1 to 249 characters, but neither \".\" nor \"..\"", name)
	}
	for _, c := range []byte(name) {
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return fmt.Errorf("topic name %.60q, want ASCII letters, digits, '.', '_' and '-'", name)
		}
	}
	return nil
}

// topicID looks like a random UUID (version 4) but follows from the entry, so that all voters give the same one, and no two topics ever have it (R24).
func topicID(cluster string, index uint64, name string) (id [16]byte) {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, index))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(cluster))))
	h.Write([]byte(cluster))
	h.Write([]byte(name))
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// deletions returns what is to be deleted, in the form of version 6.
func deletions(r *kmsg.DeleteTopicsRequest) []kmsg.DeleteTopicsRequestTopic {
	if r.Version >= 6 {
		return r.Topics
	}
	out := make([]kmsg.DeleteTopicsRequestTopic, len(r.TopicNames))
	for i := range r.TopicNames {
		out[i].Topic = &r.TopicNames[i]
	}
	return out
}

func (e *edit) deleteTopics(r *kmsg.DeleteTopicsRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.DeleteTopicsResponse)
	resp.Topics = []kmsg.DeleteTopicsResponseTopic{}
	all := deletions(r)
	twice := map[string]bool{}
	for _, q := range all {
		if q.Topic != nil {
			_, seen := twice[*q.Topic]
			twice[*q.Topic] = seen
		}
	}
	for _, q := range all {
		rt := kmsg.DeleteTopicsResponseTopic{Topic: q.Topic, TopicID: q.TopicID}
		p := problem{kerr.InvalidRequest, "the topic is there twice"}
		if q.Topic == nil || !twice[*q.Topic] {
			p = e.deleteTopic(q, &rt)
		}
		if p.found() {
			rt.ErrorCode, rt.ErrorMessage = p.Code(), p.Message()
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (e *edit) deleteTopic(q kmsg.DeleteTopicsRequestTopic, rt *kmsg.DeleteTopicsResponseTopic) problem {
	byName, byID := q.Topic != nil, q.TopicID != [16]byte{}
	if byName == byID {
		return problem{kerr.InvalidRequest, "want either the name or the id of a topic"}
	}
	var t *Topic
	if byName {
		if t = e.image.Topics[*q.Topic]; t == nil {
			return problem{kerr.UnknownTopicOrPartition, fmt.Sprintf("no topic %q", *q.Topic)}
		}
	} else if t = e.image.TopicByID(q.TopicID); t == nil {
		return problem{kerr.UnknownTopicID, fmt.Sprintf("no topic of id %x", q.TopicID)}
	}
	rt.Topic, rt.TopicID = &t.Name, t.ID
	e.dropTopic(t.Name)
	return problem{}
}

func (e *edit) createPartitions(r *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.CreatePartitionsResponse)
	resp.Topics = []kmsg.CreatePartitionsResponseTopic{}
	count := map[string]int{}
	for _, q := range r.Topics {
		count[q.Topic]++
	}
	for _, q := range r.Topics {
		p := problem{kerr.InvalidRequest, "the topic is there twice"}
		if count[q.Topic] == 1 {
			p = e.growTopic(q)
		}
		resp.Topics = append(resp.Topics, kmsg.CreatePartitionsResponseTopic{Topic: q.Topic, ErrorCode: p.Code(), ErrorMessage: p.Message()})
	}
	return resp
}

func (e *edit) growTopic(q kmsg.CreatePartitionsRequestTopic) problem {
	t := e.image.Topics[q.Topic]
	if t == nil {
		return problem{kerr.UnknownTopicOrPartition, fmt.Sprintf("no topic %q", q.Topic)}
	}
	have, rf := len(t.Partitions), len(t.Partitions[0].Replicas)
	more := int(q.Count) - have
	if more < 1 {
		return problem{kerr.InvalidPartitions, fmt.Sprintf("%d partitions, want more than the %d that there are", q.Count, have)}
	}
	if p := e.roomFor(have, more); p.found() {
		return p
	}
	var layout [][]int32
	var p problem
	if q.Assignment == nil {
		if layout, p = e.spread(more, rf); p.found() {
			return p
		}
	} else if len(q.Assignment) != more {
		return problem{kerr.InvalidReplicaAssignment, fmt.Sprintf("%d assignments, want one for each of the %d new partitions", len(q.Assignment), more)}
	}
	for _, a := range q.Assignment {
		if p := e.checkReplicas(a.Replicas, rf); p.found() {
			return p
		}
		layout = append(layout, slices.Clone(a.Replicas))
	}
	parts := slices.Clone(t.Partitions)
	for i, replicas := range layout {
		np, p := e.newPartition(have+i, replicas)
		if p.found() {
			return p
		}
		parts = append(parts, np)
	}
	e.topic(t.Name).Partitions = parts
	return problem{}
}
