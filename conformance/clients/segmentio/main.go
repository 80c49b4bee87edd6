// Segmentio is the client program of kafka-go (github.com/segmentio/kafka-go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"ackproof/conformance/program"
)

func main() {
	program.Main(program.Client{
		Version: program.LibraryVersion("github.com/segmentio/kafka-go"),
		Produce: produce, Consume: consume, Seek: seek, Admin: admin,
	})
}

func transport() *kafka.Transport {
	return &kafka.Transport{ClientID: "client", MetadataTTL: time.Second}
}

func produce(ctx context.Context, job program.Job) error {
	codecs := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	codec, ok := codecs[job.Compression]
	if !ok || job.Idempotent {
		return fmt.Errorf("compression %q, idempotent %t", job.Compression, job.Idempotent)
	}
	failed := make(chan error, job.Count)
	w := &kafka.Writer{
		Addr: kafka.TCP(job.Bootstrap...), Topic: job.Topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll, Compression: codec, Async: true,
		BatchTimeout: 20 * time.Millisecond, MaxAttempts: 100, WriteBackoffMax: 300 * time.Millisecond, Transport: transport(),
		Completion: func(messages []kafka.Message, err error) {
			for _, m := range messages {
				if err == nil {
					program.Emit(program.Event{Event: "acked", Partition: int32(m.Partition), Offset: m.Offset, Value: string(m.Value)})
				} else {
					failed <- err
				}
			}
		},
	}
	for i := job.From; i < job.From+job.Count; i++ {
		if err := w.WriteMessages(ctx, kafka.Message{Key: []byte(program.Key(i)), Value: []byte(program.Value(i))}); err != nil {
			return err
		}
		time.Sleep(job.Pace)
	}
	if err := w.Close(); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// reader takes the records of one assignment, until its context ends or enough were taken.
type reader struct {
	job  program.Job
	mu   sync.Mutex
	n    int
	next map[int]int64 // to commit
	full context.CancelFunc
}

func consume(ctx context.Context, job program.Job) error {
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	balancer, ok := balancers[job.Assignor]
	if !ok || job.Protocol != "classic" {
		return fmt.Errorf("protocol %q, assignor %q", job.Protocol, job.Assignor)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: job.Group, Brokers: job.Bootstrap, Topics: []string{job.Topic}, Dialer: &kafka.Dialer{ClientID: "client", Timeout: 5 * time.Second},
		GroupBalancers: []kafka.GroupBalancer{balancer}, HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: 6 * time.Second, RebalanceTimeout: 10 * time.Second,
		JoinGroupBackoff: 200 * time.Millisecond, StartOffset: kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	ctx, full := context.WithCancel(ctx)
	defer full()
	r := &reader{job: job, full: full}
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "next generation:", err) // the library's users call it again
			}
			continue
		}
		r.generation(ctx, generation)
	}
	return group.Close()
}

// generation takes part in one generation. The readers are functions of it: the library waits for them before it joins again or leaves, so each commits
// before it returns.
func (r *reader) generation(ctx context.Context, g *kafka.Generation) {
	var partitions []int32
	r.mu.Lock()
	r.next = map[int]int64{}
	r.mu.Unlock()
	for _, a := range g.Assignments[r.job.Topic] {
		partitions = append(partitions, int32(a.ID))
	}
	slices.Sort(partitions)
	program.Emit(program.Event{Event: "assigned", Partitions: partitions})
	var readers sync.WaitGroup
	for _, a := range g.Assignments[r.job.Topic] {
		readers.Add(1)
		g.Start(func(generation context.Context) {
			defer readers.Done()
			both, cancel := context.WithCancel(generation)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r.read(both, g, a)
		})
	}
	ended := make(chan struct{})
	g.Start(func(generation context.Context) {
		<-generation.Done()
		close(ended)
	})
	select {
	case <-ctx.Done():
	case <-ended:
	}
	readers.Wait()
	program.Emit(program.Event{Event: "assigned"})
}

// commit is called with mu held.
func (r *reader) commit(g *kafka.Generation) {
	if len(r.next) == 0 {
		return
	}
	if err := g.CommitOffsets(map[string]map[int]int64{r.job.Topic: r.next}); err != nil {
		fmt.Fprintln(os.Stderr, "commit:", err) // what is not committed comes again
		return
	}
	r.next = map[int]int64{}
	program.Emit(program.Event{Event: "committed"})
}

func (r *reader) read(ctx context.Context, g *kafka.Generation, a kafka.PartitionAssignment) {
	source := kafka.NewReader(kafka.ReaderConfig{
		Brokers: r.job.Bootstrap, Topic: r.job.Topic, Partition: a.ID, MaxWait: 200 * time.Millisecond, Dialer: &kafka.Dialer{ClientID: "client", Timeout: 5 * time.Second},
		ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: 200 * time.Millisecond,
	})
	defer source.Close()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.commit(g)
	}()
	if err := source.SetOffset(a.Offset); err != nil {
		fmt.Fprintln(os.Stderr, "set the offset:", err)
		return
	}
	for {
		m, err := source.ReadMessage(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return
			}
			fmt.Fprintln(os.Stderr, "read:", err)
			continue
		}
		if !r.take(ctx, g, m) {
			return
		}
	}
}

func (r *reader) take(ctx context.Context, g *kafka.Generation, m kafka.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || r.job.Count > 0 && r.n >= r.job.Count {
		return false
	}
	r.n++
	program.Emit(program.Event{Event: "record", Partition: int32(m.Partition), Offset: m.Offset, Value: string(m.Value)})
	r.next[m.Partition] = m.Offset + 1
	if r.n == r.job.Count {
		r.commit(g)
		r.full()
	}
	return true
}

func seek(ctx context.Context, job program.Job) error {
	client := &kafka.Client{Addr: kafka.TCP(job.Bootstrap...), Timeout: 5 * time.Second, Transport: transport()}
	var meta *kafka.MetadataResponse
	err := program.Patiently(ctx, "metadata", func() (err error) {
		meta, err = client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{job.Topic}})
		return err
	})
	if err != nil {
		return err
	}
	records := make(chan kafka.Message)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range meta.Topics[0].Partitions {
		var offset int64
		err := program.Patiently(ctx, "offset by time", func() error {
			q := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{job.Topic: {kafka.TimeOffsetOf(p.ID, job.Time)}}}
			answer, err := client.ListOffsets(ctx, q)
			if err != nil {
				return err
			}
			got := answer.Topics[job.Topic][0]
			for offset = range got.Offsets {
			}
			return got.Error
		})
		if err != nil {
			return err
		}
		program.Emit(program.Event{Event: "offset", Partition: int32(p.ID), Offset: offset})
		source := kafka.NewReader(kafka.ReaderConfig{
			Brokers: job.Bootstrap, Topic: job.Topic, Partition: p.ID, MaxWait: 200 * time.Millisecond, Dialer: &kafka.Dialer{ClientID: "client", Timeout: 5 * time.Second},
		})
		defer source.Close()
		if err := source.SetOffset(offset); err != nil {
			return err
		}
		go func() {
			for ctx.Err() == nil {
				if m, err := source.ReadMessage(ctx); err == nil {
					select {
					case records <- m:
					case <-ctx.Done():
					}
				}
			}
		}()
	}
	for range job.Count {
		select {
		case m := <-records:
			program.Emit(program.Event{Event: "record", Partition: int32(m.Partition), Offset: m.Offset, Value: string(m.Value)})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func admin(ctx context.Context, job program.Job) error {
	client := &kafka.Client{Addr: kafka.TCP(job.Bootstrap...), Timeout: 5 * time.Second, Transport: transport()}
	return program.Administer(ctx, job, program.Admin{
		CreateTopic: func(topic string, partitions int32, retention string) error {
			r, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
				Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 3, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: retention}},
			}}})
			if err == nil {
				err = r.Errors[topic]
			}
			return unless(err, kafka.TopicAlreadyExists)
		},
		Partitions: func(topic string) (int, error) {
			r, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
			if err != nil {
				return 0, err
			}
			return len(r.Topics[0].Partitions), r.Topics[0].Error
		},
		AddPartitions: func(topic string, total int32) error {
			r, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: total}}})
			if err == nil {
				err = r.Errors[topic]
			}
			return unless(err, kafka.InvalidPartitionNumber)
		},
		SetRetention: func(topic, milliseconds string) error {
			r, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
				Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: milliseconds, ConfigOperation: kafka.ConfigOperationSet}},
			}}})
			if err == nil {
				err = r.Resources[0].Error
			}
			return err
		},
		Retention: func(topic string) (string, error) {
			r, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
			}}})
			if err == nil {
				err = r.Resources[0].Error
			}
			if err != nil || len(r.Resources[0].ConfigEntries) != 1 {
				return "", errors.Join(err, errors.New("expected one entry for retention.ms"))
			}
			return r.Resources[0].ConfigEntries[0].ConfigValue, nil
		},
		Commit: func(group, topic string) error {
			r, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
				GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: 0}}},
			})
			if err == nil {
				err = r.Topics[topic][0].Error
			}
			return err
		},
		ListGroups: func() ([]string, error) {
			r, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, g := range r.Groups {
				ids = append(ids, g.GroupID)
			}
			return ids, r.Error
		},
		GroupState: func(group string) (string, error) {
			r, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
			if err != nil {
				return "", err
			}
			return r.Groups[0].GroupState, r.Groups[0].Error
		},
		DeleteGroup: func(group string) error {
			r, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
			if err == nil {
				err = r.Errors[group]
			}
			return unless(err, kafka.GroupIdNotFound)
		},
		DeleteTopic: func(topic string) error {
			r, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
			if err == nil {
				err = r.Errors[topic]
			}
			return unless(err, kafka.UnknownTopicOrPartition)
		},
	})
}

// unless takes an error that says that an earlier try has done it all the same.
func unless(err error, done kafka.Error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}
