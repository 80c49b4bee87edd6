package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/conformance/program"
)

// judge is the conductor's own client: it prepares topics and looks at the outcome, so that no client is judged by itself.
type judge struct {
	*kadm.Client
	cl        *kgo.Client
	bootstrap []string
}

const judgeID = "conformance-judge"

func newJudge(bootstrap string) (*judge, error) {
	j := &judge{bootstrap: strings.Split(bootstrap, ",")}
	cl, err := j.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	j.cl = cl
	j.Client = kadm.NewClient(cl)
	return j, nil
}

func (j *judge) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(j.bootstrap...), kgo.ClientID(judgeID), kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)...)
}

// partitions of every topic that a scenario works on.
const partitions = 6

// topic makes a topic, and waits until every broker knows it with all its leaders: brokers learn of it one after the other, and some clients take the word
// of the first that they ask for final.
func (j *judge) topic(ctx context.Context, name string) error {
	if _, err := j.CreateTopic(ctx, partitions, 3, nil, name); err != nil {
		return err
	}
	for _, seed := range j.cl.SeedBrokers() {
		err := program.Patiently(ctx, "a new topic", func() error {
			q := kmsg.NewPtrMetadataRequest()
			q.AllowAutoTopicCreation = false
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = &name
			q.Topics = append(q.Topics, t)
			answer, err := seed.Request(ctx, q)
			if err != nil {
				return err
			}
			known := answer.(*kmsg.MetadataResponse).Topics[0]
			if err := kerr.ErrorForCode(known.ErrorCode); err != nil {
				return err
			}
			for _, p := range known.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	return nil
}

// write appends records from to from+n−1, the i-th to partition i modulo their number, with time stamps a second apart from begin on; codec is kgo's, pace the
// time from one record to the next, 0 for batches.
func (j *judge) write(ctx context.Context, topic string, from, n int, begin time.Time, pace time.Duration, codec kgo.CompressionCodec) error {
	cl, err := j.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	failed := make(chan error, n)
	for i := from; i < from+n; i++ {
		r := &kgo.Record{
			Topic: topic, Partition: int32(i % partitions), Key: []byte(program.Key(i)), Value: []byte(program.Value(i)),
			Timestamp: begin.Add(time.Duration(i) * time.Second),
		}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) { failed <- err })
		if pace > 0 {
			time.Sleep(pace)
		}
	}
	for range n {
		if err := <-failed; err != nil {
			return fmt.Errorf("the judge's own records: %w", err)
		}
	}
	return nil
}

// readAll reads a topic from its start to its end.
func (j *judge) readAll(ctx context.Context, topic string) ([]*kgo.Record, error) {
	var ends kadm.ListedOffsets
	err := program.Patiently(ctx, "the ends of "+topic, func() (err error) {
		if ends, err = j.ListEndOffsets(ctx, topic); err == nil {
			err = ends.Error()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	cl, err := j.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var all []*kgo.Record
	for int64(len(all)) < left {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s was read to record %d of %d only: %w", topic, len(all), left, ctx.Err())
		}
		all = append(all, fetches.Records()...)
	}
	return all, nil
}

// leader tells which broker leads a partition.
func (j *judge) leader(ctx context.Context, topic string, partition int32) (id int32, err error) {
	err = program.Patiently(ctx, fmt.Sprintf("the leader of %s-%d", topic, partition), func() error {
		topics, err := j.ListTopics(ctx, topic)
		if err == nil {
			err = topics.Error()
		}
		if err == nil {
			p := topics[topic].Partitions[partition]
			id, err = p.Leader, p.Err
		}
		return err
	})
	return id, err
}

// coordinator tells which broker coordinates a group.
func (j *judge) coordinator(ctx context.Context, group string) (id int32, err error) {
	err = program.Patiently(ctx, "the coordinator of "+group, func() error {
		r := j.FindGroupCoordinators(ctx, group)
		id = r[group].NodeID
		return r.Error()
	})
	return id, err
}

// controller tells which broker leads the control plane.
func (j *judge) controller(ctx context.Context) (id int32, err error) {
	err = program.Patiently(ctx, "the leader of the control plane", func() error {
		m, err := j.BrokerMetadata(ctx)
		if id = m.Controller; err == nil && id < 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return id, err
}

// served gives what the brokers offer to clients.
func (j *judge) served(ctx context.Context) (map[int16]versions, error) {
	q := kmsg.NewPtrApiVersionsRequest()
	q.Version, q.ClientSoftwareName, q.ClientSoftwareVersion = 3, judgeID, "1"
	answer, err := j.cl.Request(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("which APIs are served: %w", err)
	}
	served := map[int16]versions{}
	for _, k := range answer.(*kmsg.ApiVersionsResponse).ApiKeys {
		served[k.ApiKey] = versions{k.MinVersion, k.MaxVersion}
	}
	return served, nil
}

// whole waits until all brokers are back and every copy is in sync.
func (j *judge) whole(ctx context.Context, brokers int) error {
	for {
		m, err := j.Metadata(ctx)
		missing := 0
		m.Topics.EachPartition(func(p kadm.PartitionDetail) {
			if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
				missing++
			}
		})
		if err == nil && len(m.Brokers) == brokers && missing == 0 {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the cluster is not whole again: %d of %d brokers, %d partitions not in sync, %v", len(m.Brokers), brokers, missing, err)
		}
	}
}

// committed sums up a group's offsets.
func (j *judge) committed(ctx context.Context, group string) (sum int64, err error) {
	err = program.Patiently(ctx, "what "+group+" has committed", func() error {
		offsets, err := j.FetchOffsets(ctx, group)
		if err == nil {
			err = offsets.Error()
		}
		sum = 0
		offsets.Each(func(o kadm.OffsetResponse) { sum += max(0, o.At) })
		return err
	})
	return sum, err
}

// noneBeginning waits until no topic's name begins so: brokers learn one after the other that a topic is gone.
func (j *judge) noneBeginning(ctx context.Context, prefix string) error {
	return program.Patiently(ctx, "deletion", func() error {
		topics, err := j.ListTopics(ctx)
		if err != nil {
			return err
		}
		for _, t := range topics.Names() {
			if strings.HasPrefix(t, prefix) {
				return fmt.Errorf("topic %s is still there", t)
			}
		}
		return nil
	})
}
