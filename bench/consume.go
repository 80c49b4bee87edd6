package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// consume reads [from, to) of each partition. The partitions are dealt to as many consumers as there are clients, at most one per partition.
func consume(ctx context.Context, cfg Config, topic string, from, to map[int32]int64, progress func(done, total int64)) (Phase, error) {
	var total int64
	shares := make([]map[int32]kgo.Offset, min(cfg.Clients, len(to)))
	for i, partition := range slices.Sorted(maps.Keys(to)) {
		if total += to[partition] - from[partition]; to[partition] == from[partition] {
			continue
		}
		s := i % len(shares)
		if shares[s] == nil {
			shares[s] = map[int32]kgo.Offset{}
		}
		shares[s][partition] = kgo.NewOffset().At(from[partition])
	}

	var done, bytes atomic.Int64
	elapsed, err := attended(ctx, done.Load, func(done int64) { progress(done, total) }, func(ctx context.Context, running *errgroup.Group) {
		for _, share := range shares {
			if share != nil {
				running.Go(func() error { return read(ctx, cfg, topic, share, to, &done, &bytes) })
			}
		}
	})
	if err != nil {
		return Phase{}, fmt.Errorf("after %d of %d records: %w", done.Load(), total, err)
	}
	if done.Load() != total {
		return Phase{}, fmt.Errorf("read %d records between the offsets, expected %d", done.Load(), total)
	}
	return newPhase(total, bytes.Load(), elapsed, nil), nil
}

// read consumes one share of the partitions, up to the ends.
func read(ctx context.Context, cfg Config, topic string, share map[int32]kgo.Offset, to map[int32]int64, done, bytes *atomic.Int64) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cfg.Bootstrap...),
		kgo.ClientID("ackproof-bench"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: share}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // a lost offset is an error, not a reason to begin elsewhere
		kgo.FetchMaxPartitionBytes(4*batchBytes),
		kgo.WithPools(&recordPool{}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for open := len(share); open > 0; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if r.Offset < to[p.Partition] {
					done.Add(1)
					bytes.Add(int64(len(r.Value)))
				}
				if r.Offset == to[p.Partition]-1 {
					open--
				}
				r.Recycle()
			}
		})
	}
	return nil
}

// recordPool lets franz-go use the structs of consumed records again.
type recordPool struct{ pool sync.Pool }

// GetRecords gives a slice of capacity n or more.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.pool.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kgo.Record, 0, n)
}

// PutRecords takes a slice back.
func (p *recordPool) PutRecords(s []kgo.Record) { p.pool.Put(&s) }
