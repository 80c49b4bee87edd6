// Sarama is the client program of sarama (github.com/IBM/sarama). With SARAMA_VERSION=max in the environment it speaks as to the newest broker that it
// knows, otherwise as it does by default.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"ackproof/conformance/program"
)

func main() {
	program.Main(program.Client{
		Version: program.LibraryVersion("github.com/IBM/sarama"),
		Produce: produce, Consume: consume, Seek: seek, Admin: admin,
	})
}

func config() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.ClientID = "client"
	if os.Getenv("SARAMA_VERSION") == "max" {
		cfg.Version = sarama.MaxVersion
	}
	// The defaults give up before a cluster is over the end of a broker.
	cfg.Producer.Retry.Max, cfg.Producer.Retry.Backoff = 100, 200*time.Millisecond
	cfg.Metadata.Retry.Max = 60
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	return cfg
}

func produce(ctx context.Context, job program.Job) error {
	cfg := config()
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	codec, ok := codecs[job.Compression]
	if !ok {
		return fmt.Errorf("compression %q", job.Compression)
	}
	cfg.Producer.Compression = codec
	if job.Idempotent {
		cfg.Producer.Idempotent, cfg.Net.MaxOpenRequests = true, 1
	}
	producer, err := sarama.NewAsyncProducer(job.Bootstrap, cfg)
	if err != nil {
		return err
	}
	go func() {
		for i := job.From; i < job.From+job.Count; i++ {
			producer.Input() <- &sarama.ProducerMessage{
				Topic: job.Topic, Key: sarama.StringEncoder(program.Key(i)), Value: sarama.StringEncoder(program.Value(i)),
			}
			time.Sleep(job.Pace)
		}
	}()
	for range job.Count {
		select {
		case m := <-producer.Successes():
			value, _ := m.Value.Encode()
			program.Emit(program.Event{Event: "acked", Partition: m.Partition, Offset: m.Offset, Value: string(value)})
		case err := <-producer.Errors():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return producer.Close()
}

// member is the group's handler. Claims run side by side; mu orders what they report.
type member struct {
	job  program.Job
	mu   sync.Mutex
	n    int
	stop context.CancelFunc
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.report(s.Claims()[m.job.Topic])
	return nil
}

func (m *member) Cleanup(s sarama.ConsumerGroupSession) error {
	s.Commit()
	program.Emit(program.Event{Event: "committed"})
	m.report(nil)
	return nil
}

func (m *member) report(partitions []int32) {
	program.Emit(program.Event{Event: "assigned", Partitions: slices.Sorted(slices.Values(partitions))})
}

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case r, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if !m.take(s, r) {
				return nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// take reports a record, unless enough were taken.
func (m *member) take(s sarama.ConsumerGroupSession, r *sarama.ConsumerMessage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.job.Count > 0 && m.n >= m.job.Count || s.Context().Err() != nil {
		return false
	}
	m.n++
	program.Emit(program.Event{Event: "record", Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
	s.MarkMessage(r, "")
	if m.n == m.job.Count {
		m.stop()
	}
	return true
}

func consume(ctx context.Context, job program.Job) error {
	cfg := config()
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Consumer.Group.Session.Timeout, cfg.Consumer.Group.Heartbeat.Interval = 6*time.Second, 500*time.Millisecond
	strategies := map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "sticky": sarama.NewBalanceStrategySticky(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	}
	strategy, ok := strategies[job.Assignor]
	if !ok || job.Protocol != "classic" {
		return fmt.Errorf("protocol %q, assignor %q", job.Protocol, job.Assignor)
	}
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	group, err := sarama.NewConsumerGroup(job.Bootstrap, job.Group, cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &member{job: job, stop: stop}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{job.Topic}, m); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "consume:", err) // the library's users call it again
			time.Sleep(100 * time.Millisecond)
		}
	}
	return group.Close()
}

func seek(ctx context.Context, job program.Job) error {
	client, err := sarama.NewClient(job.Bootstrap, config())
	if err != nil {
		return err
	}
	defer client.Close()
	partitions, err := client.Partitions(job.Topic)
	if err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	records := make(chan *sarama.ConsumerMessage)
	for _, p := range partitions {
		err := program.Patiently(ctx, "offset by time", func() error {
			offset, err := client.GetOffset(job.Topic, p, job.Time.UnixMilli())
			if err != nil {
				return errors.Join(err, client.RefreshMetadata(job.Topic))
			}
			program.Emit(program.Event{Event: "offset", Partition: p, Offset: offset})
			claim, err := consumer.ConsumePartition(job.Topic, p, offset)
			if err != nil {
				return err
			}
			go func() {
				for r := range claim.Messages() {
					records <- r
				}
			}()
			return nil
		})
		if err != nil {
			return err
		}
	}
	for range job.Count {
		select {
		case r := <-records:
			program.Emit(program.Event{Event: "record", Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	os.Exit(0) // the claims above have nobody left to give records to
	return nil
}

func admin(ctx context.Context, job program.Job) error {
	client, err := sarama.NewClient(job.Bootstrap, config())
	if err != nil {
		return err
	}
	adm, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	defer adm.Close()
	return program.Administer(ctx, job, program.Admin{
		CreateTopic: func(topic string, partitions int32, retention string) error {
			detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 3, ConfigEntries: map[string]*string{"retention.ms": &retention}}
			return unless(adm.CreateTopic(topic, detail, false), sarama.ErrTopicAlreadyExists)
		},
		Partitions: func(topic string) (int, error) {
			topics, err := adm.DescribeTopics([]string{topic})
			if err != nil {
				return 0, err
			}
			if topics[0].Err != sarama.ErrNoError {
				return 0, topics[0].Err
			}
			return len(topics[0].Partitions), nil
		},
		AddPartitions: func(topic string, total int32) error {
			return unless(adm.CreatePartitions(topic, total, nil, false), sarama.ErrInvalidPartitions)
		},
		SetRetention: func(topic, milliseconds string) error {
			entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &milliseconds}}
			return adm.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
		},
		Retention: func(topic string) (string, error) {
			resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}
			r, err := adm.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
			if err != nil {
				return "", err
			}
			if r[0].ErrorCode != sarama.ErrNoError || len(r[0].Configs) != 1 {
				return "", fmt.Errorf("%d entries for retention.ms: %w", len(r[0].Configs), r[0].ErrorCode)
			}
			return r[0].Configs[0].Value, nil
		},
		Commit: func(group, topic string) error {
			manager, err := sarama.NewOffsetManagerFromClient(group, client)
			if err != nil {
				return err
			}
			defer manager.Close()
			p, err := manager.ManagePartition(topic, 0)
			if err != nil {
				return err
			}
			p.MarkOffset(0, "")
			p.ResetOffset(0, "by hand")
			manager.Commit()
			p.AsyncClose()
			for err := range p.Errors() {
				return err
			}
			return nil
		},
		ListGroups: func() ([]string, error) {
			groups, err := adm.ListConsumerGroups()
			return slices.Collect(maps.Keys(groups)), err
		},
		GroupState: func(group string) (string, error) {
			groups, err := adm.DescribeConsumerGroups([]string{group})
			if err != nil {
				return "", err
			}
			if groups[0].Err != sarama.ErrNoError {
				client.RefreshCoordinator(group) // of its calls about groups this is the one that does not do so by itself
				return "", groups[0].Err
			}
			return groups[0].State, nil
		},
		DeleteGroup: func(group string) error { return unless(adm.DeleteConsumerGroup(group), sarama.ErrGroupIDNotFound) },
		DeleteTopic: func(topic string) error { return unless(adm.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition) },
	})
}

// unless takes an error that says that an earlier try has done it all the same.
func unless(err error, done sarama.KError) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}
