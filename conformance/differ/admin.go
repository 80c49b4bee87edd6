package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// adminCases are about topics, configurations and the cluster.
var adminCases = []testCase{
	{"metadata", 3, func(t *talk) {
		t.make()
		ask := func(step string, change func(*kmsg.MetadataRequest)) {
			q := kmsg.NewPtrMetadataRequest()
			change(q)
			t.ask(step, anyBroker, q)
		}
		named := func(names ...string) (all []kmsg.MetadataRequestTopic) {
			for _, n := range names {
				all = append(all, kmsg.MetadataRequestTopic{Topic: &n})
			}
			return all
		}
		ask("by name", func(q *kmsg.MetadataRequest) { q.Topics = named(t.topic) })
		ask("twice", func(q *kmsg.MetadataRequest) { q.Topics = named(t.topic, t.topic) })
		if t.v >= 4 {
			ask("unknown", func(q *kmsg.MetadataRequest) { q.Topics = named("nowhere") })
			ask("bad name", func(q *kmsg.MetadataRequest) { q.Topics = named("no way!") })
			ask("empty name", func(q *kmsg.MetadataRequest) { q.Topics = named("") })
		}
		if t.v >= 1 {
			ask("no topics", func(q *kmsg.MetadataRequest) { q.Topics = []kmsg.MetadataRequestTopic{} })
		}
		if t.v >= 8 {
			ask("with what is allowed", func(q *kmsg.MetadataRequest) {
				q.Topics, q.IncludeTopicAuthorizedOperations, q.IncludeClusterAuthorizedOperations = named(t.topic), true, true
			})
		}
		if t.v >= 10 {
			ask("by id", func(q *kmsg.MetadataRequest) { q.Topics = []kmsg.MetadataRequestTopic{{TopicID: t.id}} })
			ask("by an unknown id", func(q *kmsg.MetadataRequest) { q.Topics = []kmsg.MetadataRequestTopic{{TopicID: another}} })
			ask("by id and name", func(q *kmsg.MetadataRequest) {
				q.Topics = []kmsg.MetadataRequestTopic{{TopicID: t.id, Topic: &t.topic}}
			})
		}
	}},
	{"api versions", 18, func(t *talk) {
		q := kmsg.NewPtrApiVersionsRequest()
		q.ClientSoftwareName, q.ClientSoftwareVersion = "differ", "1.0"
		t.ask("ask", anyBroker, q)
		if t.v >= 3 {
			q.ClientSoftwareName = "not a name!"
			t.ask("bad software name", anyBroker, q)
			q.ClientSoftwareName, q.ClientSoftwareVersion = "", ""
			t.ask("no software name", anyBroker, q)
		}
	}},
	{"create topics", 19, func(t *talk) {
		ask := func(step string, change func(*kmsg.CreateTopicsRequestTopic), more ...func(*kmsg.CreateTopicsRequest)) {
			q := kmsg.NewPtrCreateTopicsRequest()
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = fmt.Sprintf("%s-%d", t.topic, len(t.asked)), 1, 3
			change(&topic)
			q.Topics, q.TimeoutMillis = append(q.Topics, topic), 10_000
			for _, m := range more {
				m(q)
			}
			was := t.topic
			t.topic = topic.Topic // so that its name is masked
			t.ask(step, anyBroker, q)
			t.topic = was
		}
		as := func(*kmsg.CreateTopicsRequestTopic) {}
		config := func(name, value string) func(*kmsg.CreateTopicsRequestTopic) {
			return func(c *kmsg.CreateTopicsRequestTopic) {
				c.Configs = append(c.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
			}
		}
		assign := func(replicas ...int32) func(*kmsg.CreateTopicsRequestTopic) {
			return func(c *kmsg.CreateTopicsRequestTopic) {
				c.NumPartitions, c.ReplicationFactor = -1, -1
				c.ReplicaAssignment = append(c.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: 0, Replicas: replicas})
			}
		}
		validate := func(q *kmsg.CreateTopicsRequest) { q.ValidateOnly = true }
		one := t.anyOf()
		ask("plain", as)
		ask("validate only", as, validate)
		ask("there already", func(c *kmsg.CreateTopicsRequestTopic) { t.make(); c.Topic = t.topic })
		ask("twice in one request", as, func(q *kmsg.CreateTopicsRequest) { q.Topics = append(q.Topics, q.Topics[0]) })
		ask("no name", func(c *kmsg.CreateTopicsRequestTopic) { c.Topic = "" })
		ask("bad name", func(c *kmsg.CreateTopicsRequestTopic) { c.Topic = "no way!" })
		ask("a dot", func(c *kmsg.CreateTopicsRequestTopic) { c.Topic = "." })
		ask("internal name", func(c *kmsg.CreateTopicsRequestTopic) { c.Topic = "__cluster_metadata" })
		ask("no partitions", func(c *kmsg.CreateTopicsRequestTopic) { c.NumPartitions = 0 })
		ask("minus two partitions", func(c *kmsg.CreateTopicsRequestTopic) { c.NumPartitions = -2 })
		ask("no replicas", func(c *kmsg.CreateTopicsRequestTopic) { c.ReplicationFactor = 0 })
		ask("too many replicas", func(c *kmsg.CreateTopicsRequestTopic) { c.ReplicationFactor = 9 })
		if t.v >= 4 {
			ask("defaults", func(c *kmsg.CreateTopicsRequestTopic) { c.NumPartitions, c.ReplicationFactor = -1, -1 }, validate)
		}
		ask("configuration", config("retention.ms", "1000"), validate)
		ask("unknown configuration", config("no.such.key", "1"), validate)
		ask("bad value", config("retention.ms", "soon"), validate)
		ask("value out of range", config("min.insync.replicas", "0"), validate)
		ask("bad list", config("cleanup.policy", "burn"), validate)
		ask("null value", func(c *kmsg.CreateTopicsRequestTopic) {
			c.Configs = append(c.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "retention.ms"})
		}, validate)
		ask("assigned", assign(one))
		ask("assigned and counted", func(c *kmsg.CreateTopicsRequestTopic) { assign(one)(c); c.NumPartitions = 1 })
		ask("assigned to nobody", assign())
		ask("assigned to a stranger", assign(99))
		ask("assigned twice", assign(one, one))
		ask("nothing", as, func(q *kmsg.CreateTopicsRequest) { q.Topics = q.Topics[:0] })
	}},
	{"delete topics", 20, func(t *talk) {
		t.make()
		ask := func(step string, names ...kmsg.DeleteTopicsRequestTopic) {
			q := kmsg.NewPtrDeleteTopicsRequest()
			q.Topics, q.TimeoutMillis = names, 10_000
			for _, n := range names {
				if n.Topic != nil {
					q.TopicNames = append(q.TopicNames, *n.Topic)
				}
			}
			t.ask(step, anyBroker, q)
		}
		named := func(name string) kmsg.DeleteTopicsRequestTopic { return kmsg.DeleteTopicsRequestTopic{Topic: &name} }
		ask("unknown", named("nowhere"))
		ask("bad name", named("no way!"))
		ask("twice in one request", named(t.topic), named(t.topic))
		if t.v >= 6 {
			ask("unknown id", kmsg.DeleteTopicsRequestTopic{TopicID: another})
			ask("name and id", kmsg.DeleteTopicsRequestTopic{Topic: &t.topic, TopicID: t.id})
			ask("neither", kmsg.DeleteTopicsRequestTopic{})
			ask("by id", kmsg.DeleteTopicsRequestTopic{TopicID: t.id})
		} else {
			ask("plain", named(t.topic))
		}
		ask("nothing")
	}},
	{"create partitions", 37, func(t *talk) {
		t.make()
		ask := func(step, name string, count int32, more ...func(*kmsg.CreatePartitionsRequest)) {
			q := kmsg.NewPtrCreatePartitionsRequest()
			q.Topics, q.TimeoutMillis = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: count}}, 10_000
			for _, m := range more {
				m(q)
			}
			t.ask(step, anyBroker, q)
		}
		assign := func(replicas ...int32) func(*kmsg.CreatePartitionsRequest) {
			return func(q *kmsg.CreatePartitionsRequest) {
				q.Topics[0].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: replicas}}
			}
		}
		one := t.anyOf()
		ask("unknown topic", "nowhere", 2)
		ask("as many", t.topic, 1)
		ask("fewer", t.topic, 0)
		ask("negative", t.topic, -1)
		ask("validate only", t.topic, 2, func(q *kmsg.CreatePartitionsRequest) { q.ValidateOnly = true })
		ask("assigned to a stranger", t.topic, 2, assign(97, 98, 99))
		ask("fewer replicas than the others", t.topic, 2, assign(one))
		ask("assigned twice", t.topic, 2, assign(one, one, one))
		ask("fewer assignments than partitions", t.topic, 4, assign(t.all()...))
		ask("twice in one request", t.topic, 3, func(q *kmsg.CreatePartitionsRequest) { q.Topics = append(q.Topics, q.Topics[0]) })
		ask("plain", t.topic, 2)
		ask("assigned", t.topic, 3, assign(t.all()...))
	}},
	{"describe configs", 32, func(t *talk) {
		t.make()
		ask := func(step string, kind kmsg.ConfigResourceType, name string, keys ...string) {
			q := kmsg.NewPtrDescribeConfigsRequest()
			q.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
			t.ask(step, anyBroker, q)
		}
		ask("one key", kmsg.ConfigResourceTypeTopic, t.topic, "retention.ms")
		ask("another key", kmsg.ConfigResourceTypeTopic, t.topic, "cleanup.policy")
		ask("min ISR", kmsg.ConfigResourceTypeTopic, t.topic, "min.insync.replicas")
		ask("unknown key", kmsg.ConfigResourceTypeTopic, t.topic, "no.such.key")
		ask("unknown topic", kmsg.ConfigResourceTypeTopic, "nowhere", "retention.ms")
		ask("bad name", kmsg.ConfigResourceTypeTopic, "no way!", "retention.ms")
		ask("no name", kmsg.ConfigResourceTypeTopic, "", "retention.ms")
		ask("broker that is no number", kmsg.ConfigResourceTypeBroker, "one", "log.dirs")
		ask("unknown broker", kmsg.ConfigResourceTypeBroker, "99", "log.dirs")
		ask("no such type", kmsg.ConfigResourceType(77), "x", "y")
		q := kmsg.NewPtrDescribeConfigsRequest()
		q.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: t.topic, ConfigNames: []string{"retention.ms"}}}
		q.IncludeSynonyms, q.IncludeDocumentation = true, true
		t.ask("with synonyms and documentation", anyBroker, q)
	}},
	{"alter configs", 33, func(t *talk) {
		t.make()
		ask := func(step, topic, key string, value *string) {
			q := kmsg.NewPtrAlterConfigsRequest()
			q.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic, Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: key, Value: value}}}}
			t.ask(step, anyBroker, q)
		}
		ask("set", t.topic, "retention.ms", kmsg.StringPtr("1000"))
		ask("unknown key", t.topic, "no.such.key", kmsg.StringPtr("1"))
		ask("bad value", t.topic, "retention.ms", kmsg.StringPtr("soon"))
		ask("null", t.topic, "retention.ms", nil)
		ask("unknown topic", "nowhere", "retention.ms", kmsg.StringPtr("1000"))
	}},
	{"incremental alter configs", 44, func(t *talk) {
		t.make()
		ask := func(step string, kind kmsg.ConfigResourceType, name, key string, op kmsg.IncrementalAlterConfigOp, value *string, more ...func(*kmsg.IncrementalAlterConfigsRequest)) {
			q := kmsg.NewPtrIncrementalAlterConfigsRequest()
			q.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Op: op, Value: value}}}}
			for _, m := range more {
				m(q)
			}
			t.ask(step, anyBroker, q)
		}
		const set, remove, add, take = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
		const topic = kmsg.ConfigResourceTypeTopic
		ask("set", topic, t.topic, "retention.ms", set, kmsg.StringPtr("1000"))
		ask("delete", topic, t.topic, "retention.ms", remove, nil)
		ask("delete what is not set", topic, t.topic, "segment.bytes", remove, nil)
		ask("append to a list", topic, t.topic, "cleanup.policy", add, kmsg.StringPtr("compact"))
		ask("subtract from a list", topic, t.topic, "cleanup.policy", take, kmsg.StringPtr("compact"))
		ask("append to what is no list", topic, t.topic, "retention.ms", add, kmsg.StringPtr("1"))
		ask("no such operation", topic, t.topic, "retention.ms", 9, kmsg.StringPtr("1"))
		ask("unknown key", topic, t.topic, "no.such.key", set, kmsg.StringPtr("1"))
		ask("bad value", topic, t.topic, "retention.ms", set, kmsg.StringPtr("soon"))
		ask("null", topic, t.topic, "retention.ms", set, nil)
		ask("unknown topic", topic, "nowhere", "retention.ms", set, kmsg.StringPtr("1000"))
		ask("no such type", 77, "x", "y", set, kmsg.StringPtr("1"))
		ask("validate only", topic, t.topic, "retention.ms", set, kmsg.StringPtr("5"), func(q *kmsg.IncrementalAlterConfigsRequest) { q.ValidateOnly = true })
		ask("one key twice", topic, t.topic, "retention.ms", set, kmsg.StringPtr("5"), func(q *kmsg.IncrementalAlterConfigsRequest) {
			q.Resources[0].Configs = append(q.Resources[0].Configs, q.Resources[0].Configs[0])
		})
		ask("one topic twice", topic, t.topic, "retention.ms", set, kmsg.StringPtr("5"), func(q *kmsg.IncrementalAlterConfigsRequest) {
			q.Resources = append(q.Resources, q.Resources[0])
		})
	}},
	{"elect leaders", 43, func(t *talk) {
		t.make()
		ask := func(step string, kind int8, topics ...kmsg.ElectLeadersRequestTopic) {
			q := kmsg.NewPtrElectLeadersRequest()
			q.ElectionType, q.Topics, q.TimeoutMillis = kind, topics, 10_000
			t.ask(step, anyBroker, q)
		}
		ask("preferred, which leads", 0, kmsg.ElectLeadersRequestTopic{Topic: t.topic, Partitions: []int32{0}})
		ask("partition that is not there", 0, kmsg.ElectLeadersRequestTopic{Topic: t.topic, Partitions: []int32{7}})
		ask("topic that is not there", 0, kmsg.ElectLeadersRequestTopic{Topic: "nowhere", Partitions: []int32{0}})
		if t.v >= 1 {
			ask("unclean, while a leader is there", 1, kmsg.ElectLeadersRequestTopic{Topic: t.topic, Partitions: []int32{0}})
			ask("no such type", 7, kmsg.ElectLeadersRequestTopic{Topic: t.topic, Partitions: []int32{0}})
		}
	}},
	{"describe quorum", 55, func(t *talk) {
		ask := func(step, topic string, partition int32) {
			q := kmsg.NewPtrDescribeQuorumRequest()
			p := kmsg.NewDescribeQuorumRequestTopicPartition()
			p.Partition = partition
			q.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: topic, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{p}}}
			t.ask(step, anyBroker, q)
		}
		ask("the quorum", "__cluster_metadata", 0)
		ask("another topic", "nowhere", 0)
		ask("another partition", "__cluster_metadata", 3)
	}},
	{"describe cluster", 60, func(t *talk) {
		ask := func(step string, change func(*kmsg.DescribeClusterRequest)) {
			q := kmsg.NewPtrDescribeClusterRequest()
			change(q)
			t.ask(step, anyBroker, q)
		}
		ask("brokers", func(q *kmsg.DescribeClusterRequest) {})
		ask("with what is allowed", func(q *kmsg.DescribeClusterRequest) { q.IncludeClusterAuthorizedOperations = true })
		if t.v >= 1 {
			ask("controllers", func(q *kmsg.DescribeClusterRequest) { q.EndpointType = 2 })
			ask("no such type", func(q *kmsg.DescribeClusterRequest) { q.EndpointType = 7 })
		}
	}},
	{"describe topic partitions", 75, func(t *talk) {
		t.make()
		ask := func(step string, change func(*kmsg.DescribeTopicPartitionsRequest)) {
			q := kmsg.NewPtrDescribeTopicPartitionsRequest()
			q.Topics, q.ResponsePartitionLimit = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: t.topic}}, 2000
			change(q)
			t.ask(step, anyBroker, q)
		}
		ask("one", func(*kmsg.DescribeTopicPartitionsRequest) {})
		ask("unknown", func(q *kmsg.DescribeTopicPartitionsRequest) { q.Topics[0].Topic = "nowhere" })
		ask("bad name", func(q *kmsg.DescribeTopicPartitionsRequest) { q.Topics[0].Topic = "no way!" })
		ask("limit 0", func(q *kmsg.DescribeTopicPartitionsRequest) { q.ResponsePartitionLimit = 0 })
		ask("behind the last", func(q *kmsg.DescribeTopicPartitionsRequest) {
			q.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: t.topic, Partition: 1}
		})
		ask("negative cursor", func(q *kmsg.DescribeTopicPartitionsRequest) {
			q.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: t.topic, Partition: -1}
		})
	}},
}

// all gives the ids of the brokers; anyOf one of them.
func (t *talk) all() (ids []int32) {
	for id := range t.brokers {
		ids = append(ids, id)
	}
	return ids
}

func (t *talk) anyOf() int32 { return t.all()[0] }
