package node

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
)

func (n *Node) handleDescribeCluster(ctx context.Context, q *kmsg.DescribeClusterRequest) (kmsg.Response, error) {
	v, err := n.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	resp := q.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.Default()
	if q.Version >= 1 && q.EndpointType != 1 {
		resp.ErrorCode, resp.ErrorMessage = kerr.UnsupportedEndpointType.Code, kmsg.StringPtr("expected 1, brokers")
		if q.EndpointType == 2 { // controllers, which have ports of their own in Kafka
			resp.ErrorCode = kerr.MismatchedEndpointType.Code
		}
		return resp, nil
	}
	resp.ClusterID, resp.ControllerID, resp.EndpointType = n.cfg.Cluster, n.controllerFor(v), 1
	for _, b := range v.brokers(q.IncludeFencedBrokers) {
		o := kmsg.NewDescribeClusterResponseBroker()
		o.NodeID, o.Host, o.Port, o.Rack, o.IsFenced = b.ID, b.Host, b.Port, rack(b), b.Fenced
		resp.Brokers = append(resp.Brokers, o)
	}
	return resp, nil
}

// handleDescribeQuorum tells who leads the control plane, under the name that KRaft's log has in Kafka.
func (n *Node) handleDescribeQuorum(q *kmsg.DescribeQuorumRequest) kmsg.Response {
	const topic = "__cluster_metadata"
	resp := q.ResponseKind().(*kmsg.DescribeQuorumResponse)
	if len(q.Topics) > 0 && (len(q.Topics) > 1 || q.Topics[0].Topic != topic || len(q.Topics[0].Partitions) != 1 || q.Topics[0].Partitions[0].Partition != 0) {
		for _, asked := range q.Topics {
			t := kmsg.NewDescribeQuorumResponseTopic()
			t.Topic = asked.Topic
			for _, p := range asked.Partitions {
				none := kmsg.NewDescribeQuorumResponseTopicPartition()
				none.Partition, none.ErrorCode = p.Partition, kerr.UnknownTopicOrPartition.Code
				t.Partitions = append(t.Partitions, none)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	v := n.view.Load()
	t := kmsg.NewDescribeQuorumResponseTopic()
	t.Topic = topic
	p := kmsg.NewDescribeQuorumResponseTopicPartition()
	p.LeaderID, p.LeaderEpoch, p.HighWatermark = n.control.leader(), -1, int64(v.Index)
	for _, id := range n.voterIDs() {
		r := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
		r.ReplicaID, r.LogEndOffset, r.LastFetchTimestamp, r.LastCaughtUpTimestamp = id, -1, -1, -1
		if id == n.cfg.NodeID { // as Kafka's leader says of itself
			r.LastFetchTimestamp = time.Now().UnixMilli()
			r.LastCaughtUpTimestamp = r.LastFetchTimestamp
		}
		p.CurrentVoters = append(p.CurrentVoters, r)
		node := kmsg.NewDescribeQuorumResponseNode()
		node.NodeID = id
		if b := v.Brokers[id]; b != nil {
			l := kmsg.NewDescribeQuorumResponseNodeListener()
			l.Name, l.Host, l.Port = "PLAINTEXT", b.Host, uint16(b.Port)
			node.Listeners = append(node.Listeners, l)
		}
		resp.Nodes = append(resp.Nodes, node)
	}
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp
}

// handleDescribeTopicPartitions answers a page of partitions, in the order of names and indexes.
func (n *Node) handleDescribeTopicPartitions(ctx context.Context, q *kmsg.DescribeTopicPartitionsRequest) (kmsg.Response, error) {
	v, err := n.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	resp := q.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	names := make([]string, 0, len(q.Topics))
	for _, t := range q.Topics {
		names = append(names, t.Topic)
	}
	if len(names) == 0 {
		names = v.names()
	}
	slices.Sort(names)
	names = slices.Compact(names)
	left := int(q.ResponsePartitionLimit)
	if left <= 0 || left > 2000 {
		left = 2000 // Kafka's max.request.partition.size.limit
	}
	for _, name := range names {
		from := int32(0)
		if c := q.Cursor; c != nil {
			if name < c.Topic {
				continue
			}
			if name == c.Topic {
				from = max(c.Partition, 0)
			}
		}
		if left == 0 {
			resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: from}
			break
		}
		out := kmsg.NewDescribeTopicPartitionsResponseTopic()
		out.Topic = kmsg.StringPtr(name)
		t := v.Topics[name]
		if t == nil {
			out.ErrorCode = kerr.UnknownTopicOrPartition.Code
			if !validTopic(name) {
				out.ErrorCode = kerr.InvalidTopicException.Code
			}
			resp.Topics = append(resp.Topics, out)
			continue
		}
		out.TopicID, out.IsInternal = t.ID, name == group.Topic
		for i := int(from); i < len(t.Partitions); i++ {
			if left == 0 {
				resp.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: int32(i)}
				break
			}
			out.Partitions = append(out.Partitions, describePartition(v, int32(i), t.Partitions[i]))
			left--
		}
		resp.Topics = append(resp.Topics, out)
		if resp.NextCursor != nil {
			break
		}
	}
	return resp, nil
}

func describePartition(v *view, index int32, p *controller.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	o := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	o.Partition, o.LeaderID, o.LeaderEpoch = index, p.Leader, p.LeaderEpoch
	if p.Leader < 0 {
		o.ErrorCode = kerr.LeaderNotAvailable.Code
	}
	o.Replicas, o.ISR, o.OfflineReplicas = slices.Clone(p.Replicas), slices.Clone(p.ISR), host.Offline(v.Image, p)
	o.EligibleLeaderReplicas = slices.Clone(p.ELR)
	if p.LastKnownLeader >= 0 {
		o.LastKnownELR = []int32{p.LastKnownLeader}
	}
	return o
}

// handleDescribeConfigs tells the configuration of topics, as the cluster holds it, and of this broker, as it was started.
func (n *Node) handleDescribeConfigs(ctx context.Context, q *kmsg.DescribeConfigsRequest) (kmsg.Response, error) {
	v, err := n.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	resp := q.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, r := range q.Resources {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		var configs []kmsg.DescribeConfigsResponseResourceConfig
		switch r.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			switch t := v.Topics[r.ResourceName]; {
			case t != nil:
				configs = topicConfigs(v, t)
			case !validTopic(r.ResourceName):
				out.ErrorCode = kerr.InvalidTopicException.Code
			default:
				out.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
		case kmsg.ConfigResourceTypeBroker:
			if r.ResourceName == "" || r.ResourceName == strconv.Itoa(int(n.cfg.NodeID)) {
				configs = n.brokerConfigs()
			} else {
				out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("ask broker "+r.ResourceName+" itself")
			}
		default:
			out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr("only topics (2) and brokers (4) have configurations here")
		}
		for _, c := range configs {
			if r.ConfigNames == nil || slices.Contains(r.ConfigNames, c.Name) {
				out.Configs = append(out.Configs, c)
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

func topicConfigs(v *view, t *controller.Topic) []kmsg.DescribeConfigsResponseResourceConfig {
	var out []kmsg.DescribeConfigsResponseResourceConfig
	for _, k := range controller.ConfigKeys() {
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Value, c.ConfigType = k.Name, kmsg.StringPtr(v.Config(t, k.Name)), k.Type
		_, own := t.Configs[k.Name]
		_, configured := v.Defaults[k.Name]
		switch {
		case own:
			c.Source = kmsg.ConfigSourceDynamicTopicConfig
		case configured:
			c.Source = kmsg.ConfigSourceStaticBrokerConfig
		default:
			c.Source = kmsg.ConfigSourceDefaultConfig
		}
		c.IsDefault = !own
		out = append(out, c)
	}
	return out
}

func (n *Node) brokerConfigs() []kmsg.DescribeConfigsResponseResourceConfig {
	var out []kmsg.DescribeConfigsResponseResourceConfig
	for _, p := range Properties() {
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		value, given := n.cfg.given[p.Name]
		c.Name, c.ReadOnly, c.ConfigType, c.Documentation = p.Name, true, kmsg.ConfigTypeString, kmsg.StringPtr(p.Doc)
		c.Source, c.IsDefault = kmsg.ConfigSourceStaticBrokerConfig, false
		if !given {
			value, c.Source, c.IsDefault = p.Default, kmsg.ConfigSourceDefaultConfig, true
		}
		c.Value = &value
		out = append(out, c)
	}
	return out
}
