// Franz is the client program of franz-go (github.com/twmb/franz-go).
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/conformance/program"
)

func main() {
	program.Main(program.Client{
		Version: program.LibraryVersion("github.com/twmb/franz-go"),
		Produce: produce, Consume: consume, Seek: seek, Admin: admin,
	})
}

func client(job program.Job, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(job.Bootstrap...), kgo.MetadataMinAge(250 * time.Millisecond), kgo.ClientID("client")}, opts...)...)
}

func produce(ctx context.Context, job program.Job) error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[job.Compression]
	if !ok {
		return fmt.Errorf("compression %q", job.Compression)
	}
	opts := []kgo.Opt{kgo.DefaultProduceTopic(job.Topic), kgo.ProducerBatchCompression(codec), kgo.RecordDeliveryTimeout(time.Minute)}
	if !job.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	cl, err := client(job, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	var failed firstError
	for i := job.From; i < job.From+job.Count; i++ {
		r := &kgo.Record{Key: []byte(program.Key(i)), Value: []byte(program.Value(i))}
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			if failed.set(err); err == nil {
				program.Emit(program.Event{Event: "acked", Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
			}
		})
		time.Sleep(job.Pace)
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	return failed.get()
}

type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func consume(ctx context.Context, job program.Job) error {
	var mu sync.Mutex
	held := map[int32]bool{}
	changed := func(took bool, partitions map[string][]int32) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range partitions[job.Topic] {
			if took {
				held[p] = true
			} else {
				delete(held, p)
			}
		}
		program.Emit(program.Event{Event: "assigned", Partitions: slices.Sorted(maps.Keys(held))})
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(job.Group), kgo.ConsumeTopics(job.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { changed(true, p) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, p map[string][]int32) {
			_ = commit(ctx, cl) // what is not committed comes again, to the next owner
			changed(false, p)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { changed(false, p) }),
	}
	if job.Protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	} else {
		balancers := map[string]kgo.GroupBalancer{
			"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
		}
		balancer, ok := balancers[job.Assignor]
		if !ok {
			return fmt.Errorf("assignor %q", job.Assignor)
		}
		opts = append(opts, kgo.Balancers(balancer), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond))
	}
	cl, err := client(job, opts...)
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	for n := 0; job.Count == 0 || n < job.Count; {
		most := 500
		if job.Count > 0 {
			most = job.Count - n
		}
		fetches := cl.PollRecords(ctx, most)
		for _, r := range fetches.Records() {
			n++
			program.Emit(program.Event{Event: "record", Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
		}
		if ctx.Err() != nil {
			break
		}
		// The library goes on by itself after errors, such as a coordinator that is gone; the conductor bounds how long.
		fetches.EachError(func(_ string, _ int32, err error) { fmt.Fprintln(os.Stderr, "poll:", err) })
		cl.AllowRebalance()
	}
	return program.Patiently(context.Background(), "commit", func() error { return commit(context.Background(), cl) })
}

func commit(ctx context.Context, cl *kgo.Client) error {
	if len(cl.UncommittedOffsets()) == 0 {
		return nil
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	program.Emit(program.Event{Event: "committed"})
	return nil
}

func seek(ctx context.Context, job program.Job) error {
	cl, err := client(job)
	if err != nil {
		return err
	}
	defer cl.Close()
	return program.Patiently(ctx, "offsets by time", func() error {
		offsets, err := kadm.NewClient(cl).ListOffsetsAfterMilli(ctx, job.Time.UnixMilli(), job.Topic)
		if err == nil {
			err = offsets.Error()
		}
		if err != nil {
			return err
		}
		return from(ctx, job, offsets)
	})
}

// from takes what lies from those offsets on.
func from(ctx context.Context, job program.Job, offsets kadm.ListedOffsets) error {
	start := map[string]map[int32]kgo.Offset{job.Topic: {}}
	offsets.Each(func(o kadm.ListedOffset) {
		program.Emit(program.Event{Event: "offset", Partition: o.Partition, Offset: o.Offset})
		start[job.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
	})
	cl, err := client(job, kgo.ConsumePartitions(start))
	if err != nil {
		return err
	}
	defer cl.Close()
	for n := 0; n < job.Count; {
		fetches := cl.PollRecords(ctx, job.Count-n)
		fetches.EachError(func(_ string, _ int32, err error) { fmt.Fprintln(os.Stderr, "poll:", err) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, r := range fetches.Records() {
			n++
			program.Emit(program.Event{Event: "record", Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)})
		}
	}
	return nil
}

func admin(ctx context.Context, job program.Job) error {
	cl, err := client(job)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	return program.Administer(ctx, job, program.Admin{
		CreateTopic: func(topic string, partitions int32, retention string) error {
			_, err := adm.CreateTopic(ctx, partitions, 3, map[string]*string{"retention.ms": &retention}, topic)
			return unless(err, kerr.TopicAlreadyExists)
		},
		Partitions: func(topic string) (int, error) {
			topics, err := adm.ListTopics(ctx, topic)
			return len(topics[topic].Partitions), first(err, topics.Error())
		},
		AddPartitions: func(topic string, total int32) error {
			r, err := adm.UpdatePartitions(ctx, int(total), topic)
			return unless(first(err, r.Error()), kerr.InvalidPartitions)
		},
		SetRetention: func(topic, milliseconds string) error {
			r, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &milliseconds}}, topic)
			if err == nil && len(r) == 1 {
				err = r[0].Err
			}
			return err
		},
		Retention: func(topic string) (string, error) {
			r, err := adm.DescribeTopicConfigs(ctx, topic)
			if err != nil {
				return "", err
			}
			for _, c := range r[0].Configs {
				if c.Key == "retention.ms" {
					return c.MaybeValue(), r[0].Err
				}
			}
			return "", first(r[0].Err, errors.New("no retention.ms"))
		},
		Commit: func(group, topic string) error {
			var o kadm.Offsets
			o.AddOffset(topic, 0, 0, -1)
			r, err := adm.CommitOffsets(ctx, group, o)
			return first(err, r.Error())
		},
		ListGroups: func() ([]string, error) {
			groups, err := adm.ListGroups(ctx)
			return groups.Groups(), err
		},
		GroupState: func(group string) (string, error) {
			groups, err := adm.DescribeGroups(ctx, group)
			return groups[group].State, first(err, groups.Error())
		},
		DeleteGroup: func(group string) error {
			r, err := adm.DeleteGroups(ctx, group)
			return unless(first(err, r.Error()), kerr.GroupIDNotFound)
		},
		DeleteTopic: func(topic string) error {
			r, err := adm.DeleteTopics(ctx, topic)
			return unless(first(err, r.Error()), kerr.UnknownTopicOrPartition)
		},
	})
}

// unless takes an error that says that an earlier try has done it all the same.
func unless(err error, done *kerr.Error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
