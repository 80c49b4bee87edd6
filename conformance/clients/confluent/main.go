//go:build cgo

// Confluent is the client program of confluent-kafka-go (github.com/confluentinc/confluent-kafka-go), with the librdkafka that it brings.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"ackproof/conformance/program"
)

func main() {
	_, librdkafka := kafka.LibraryVersion()
	program.Main(program.Client{
		Version: fmt.Sprintf("%s, librdkafka %s", program.LibraryVersion("github.com/confluentinc/confluent-kafka-go/v2"), librdkafka),
		Produce: produce, Consume: consume, Seek: seek, Admin: admin,
	})
}

// callTime bounds one call that the library does not bound by itself.
const callTime = 10 * time.Second

func config(job program.Job, more kafka.ConfigMap) *kafka.ConfigMap {
	cfg := kafka.ConfigMap{"bootstrap.servers": strings.Join(job.Bootstrap, ","), "client.id": "client", "reconnect.backoff.max.ms": 1000}
	maps.Copy(cfg, more)
	return &cfg
}

func produce(ctx context.Context, job program.Job) error {
	p, err := kafka.NewProducer(config(job, kafka.ConfigMap{
		"compression.type": job.Compression, "enable.idempotence": job.Idempotent, "acks": "all", "linger.ms": 20,
	}))
	if err != nil {
		return err
	}
	defer p.Close()
	delivered := make(chan kafka.Event, job.Count)
	go func() {
		for i := job.From; i < job.From+job.Count; i++ {
			m := &kafka.Message{
				TopicPartition: kafka.TopicPartition{Topic: &job.Topic, Partition: kafka.PartitionAny},
				Key:            []byte(program.Key(i)), Value: []byte(program.Value(i)),
			}
			if err := p.Produce(m, delivered); err != nil {
				m.TopicPartition.Error = err
				delivered <- m
			}
			time.Sleep(job.Pace)
		}
	}()
	for range job.Count {
		select {
		case e := <-delivered:
			m, ok := e.(*kafka.Message)
			if !ok {
				return fmt.Errorf("%v, expected a delivery report", e)
			}
			if m.TopicPartition.Error != nil {
				return m.TopicPartition.Error
			}
			program.Emit(program.Event{Event: "acked", Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset), Value: string(m.Value)})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func consume(ctx context.Context, job program.Job) error {
	cfg := kafka.ConfigMap{"group.id": job.Group, "enable.auto.commit": false, "auto.offset.reset": "earliest", "group.protocol": job.Protocol}
	if job.Protocol == "classic" {
		maps.Copy(cfg, kafka.ConfigMap{"partition.assignment.strategy": job.Assignor, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
	}
	c, err := kafka.NewConsumer(config(job, cfg))
	if err != nil {
		return err
	}
	held, next := map[int32]bool{}, positions{}
	err = c.Subscribe(job.Topic, func(c *kafka.Consumer, e kafka.Event) error {
		switch e := e.(type) {
		case kafka.AssignedPartitions:
			for _, p := range e.Partitions {
				held[p.Partition] = true
			}
		case kafka.RevokedPartitions:
			if !c.AssignmentLost() {
				if err := next.commit(c); err != nil {
					fmt.Fprintln(os.Stderr, "commit:", err) // what is not committed comes again, to the next owner
				}
			}
			for _, p := range e.Partitions {
				delete(held, p.Partition)
				delete(next, p.Partition)
			}
		}
		program.Emit(program.Event{Event: "assigned", Partitions: slices.Sorted(maps.Keys(held))})
		return nil
	})
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil && (job.Count == 0 || n < job.Count); {
		switch e := c.Poll(100).(type) {
		case *kafka.Message:
			if e.TopicPartition.Error != nil {
				return e.TopicPartition.Error
			}
			n++
			program.Emit(program.Event{Event: "record", Partition: e.TopicPartition.Partition, Offset: int64(e.TopicPartition.Offset), Value: string(e.Value)})
			e.TopicPartition.Offset++
			next[e.TopicPartition.Partition] = e.TopicPartition
		case kafka.Error:
			fmt.Fprintln(os.Stderr, "poll:", e) // the library goes on by itself
		}
	}
	if err := program.Patiently(context.Background(), "commit", func() error { return next.commit(c) }); err != nil {
		return err
	}
	return c.Close()
}

// positions are where each partition goes on after what was taken. They are committed by name: the library's own list also has what its Close takes and
// throws away.
type positions map[int32]kafka.TopicPartition

func (p positions) commit(c *kafka.Consumer) error {
	if len(p) == 0 {
		return nil
	}
	done, err := c.CommitOffsets(slices.Collect(maps.Values(p)))
	for _, d := range done {
		err = errors.Join(err, d.Error)
	}
	if err == nil {
		clear(p)
		program.Emit(program.Event{Event: "committed"})
	}
	return err
}

func seek(ctx context.Context, job program.Job) error {
	c, err := kafka.NewConsumer(config(job, kafka.ConfigMap{"group.id": "none", "enable.auto.commit": false}))
	if err != nil {
		return err
	}
	defer c.Close()
	var found []kafka.TopicPartition
	err = program.Patiently(ctx, "offsets by time", func() error {
		m, err := c.GetMetadata(&job.Topic, false, int(callTime.Milliseconds()))
		if err != nil {
			return err
		}
		var times []kafka.TopicPartition
		for _, p := range m.Topics[job.Topic].Partitions {
			times = append(times, kafka.TopicPartition{Topic: &job.Topic, Partition: p.ID, Offset: kafka.Offset(job.Time.UnixMilli())})
		}
		if len(times) == 0 {
			return fmt.Errorf("no partition of %s is known", job.Topic)
		}
		found, err = c.OffsetsForTimes(times, int(callTime.Milliseconds()))
		for _, f := range found {
			err = errors.Join(err, f.Error)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		program.Emit(program.Event{Event: "offset", Partition: f.Partition, Offset: int64(f.Offset)})
	}
	if err := c.Assign(found); err != nil {
		return err
	}
	for n := 0; n < job.Count; {
		switch e := c.Poll(100).(type) {
		case *kafka.Message:
			n++
			program.Emit(program.Event{Event: "record", Partition: e.TopicPartition.Partition, Offset: int64(e.TopicPartition.Offset), Value: string(e.Value)})
		case kafka.Error:
			fmt.Fprintln(os.Stderr, "poll:", e)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func admin(ctx context.Context, job program.Job) error {
	adm, err := kafka.NewAdminClient(config(job, nil))
	if err != nil {
		return err
	}
	defer adm.Close()
	// one gives the error of the only topic that was asked for, unless it says that an earlier try has done it all the same.
	one := func(done kafka.ErrorCode) func([]kafka.TopicResult, error) error {
		return func(r []kafka.TopicResult, err error) error {
			if err == nil && r[0].Error.Code() != kafka.ErrNoError && r[0].Error.Code() != done {
				err = r[0].Error
			}
			return err
		}
	}
	return program.Administer(ctx, job, program.Admin{
		CreateTopic: func(topic string, partitions int32, retention string) error {
			spec := kafka.TopicSpecification{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 3, Config: map[string]string{"retention.ms": retention}}
			return one(kafka.ErrTopicAlreadyExists)(adm.CreateTopics(ctx, []kafka.TopicSpecification{spec}))
		},
		Partitions: func(topic string) (int, error) {
			r, err := adm.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}))
			if err != nil {
				return 0, err
			}
			t := r.TopicDescriptions[0]
			if t.Error.Code() != kafka.ErrNoError {
				return 0, t.Error
			}
			return len(t.Partitions), nil
		},
		AddPartitions: func(topic string, total int32) error {
			return one(kafka.ErrInvalidPartitions)(adm.CreatePartitions(ctx, []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: int(total)}}))
		},
		SetRetention: func(topic, milliseconds string) error {
			entry := kafka.ConfigEntry{Name: "retention.ms", Value: milliseconds, IncrementalOperation: kafka.AlterConfigOpTypeSet}
			r, err := adm.IncrementalAlterConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic, Config: []kafka.ConfigEntry{entry}}})
			if err == nil && r[0].Error.Code() != kafka.ErrNoError {
				err = r[0].Error
			}
			return err
		},
		Retention: func(topic string) (string, error) {
			r, err := adm.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic}})
			if err != nil {
				return "", err
			}
			if r[0].Error.Code() != kafka.ErrNoError {
				return "", r[0].Error
			}
			return r[0].Config["retention.ms"].Value, nil
		},
		Commit: func(group, topic string) error {
			at := kafka.TopicPartition{Topic: &topic, Partition: 0, Offset: 0}
			r, err := adm.AlterConsumerGroupOffsets(ctx, []kafka.ConsumerGroupTopicPartitions{{Group: group, Partitions: []kafka.TopicPartition{at}}})
			if err != nil {
				return err
			}
			return r.ConsumerGroupsTopicPartitions[0].Partitions[0].Error
		},
		ListGroups: func() (groups []string, err error) {
			r, err := adm.ListConsumerGroups(ctx)
			for _, g := range r.Valid {
				groups = append(groups, g.GroupID)
			}
			return groups, errors.Join(err, errors.Join(r.Errors...))
		},
		GroupState: func(group string) (string, error) {
			r, err := adm.DescribeConsumerGroups(ctx, []string{group})
			if err != nil {
				return "", err
			}
			g := r.ConsumerGroupDescriptions[0]
			if g.Error.Code() != kafka.ErrNoError {
				return "", g.Error
			}
			return g.State.String(), nil
		},
		DeleteGroup: func(group string) error {
			r, err := adm.DeleteConsumerGroups(ctx, []string{group})
			if err != nil {
				return err
			}
			if e := r.ConsumerGroupResults[0].Error; e.Code() != kafka.ErrNoError && e.Code() != kafka.ErrGroupIDNotFound {
				return e
			}
			return nil
		},
		DeleteTopic: func(topic string) error {
			return one(kafka.ErrUnknownTopicOrPart)(adm.DeleteTopics(ctx, []string{topic}))
		},
	})
}
