package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// producers are the clients of the load; they live over warm-up and measurement, so that the latter starts with warm connections.
type producers struct {
	sync  bool
	value []byte // one random value, shared by all records: the servers see incompressible bytes, the client copies nothing
	each  []*producer
}

// producer is one client.
type producer struct {
	client  *kgo.Client
	free    sync.Pool               // of *flight: a record is made once and used again
	latency *hdrhistogram.Histogram // µs; written by the client's promises, which franz-go runs one at a time
	done    atomic.Int64
	failed  atomic.Pointer[error] // the first error
}

// flight is one record under way.
type flight struct {
	record kgo.Record
	sent   time.Time
	finish func(*kgo.Record, error)
}

func newProducers(cfg Config, topic string) (*producers, error) {
	all := &producers{sync: cfg.Sync, value: make([]byte, cfg.Size)}
	_, _ = rand.Read(all.value) // never fails (crypto/rand)
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Bootstrap...),
		kgo.ClientID("ackproof-bench"),
		kgo.DefaultProduceTopicAlways(),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(batchBytes),
		kgo.MaxBufferedRecords(max(bufferRecords/cfg.Clients, 100)),
		kgo.MaxBufferedBytes(max(bufferBytes/cfg.Clients, 2*batchBytes)),
	}
	if cfg.Sync {
		opts = append(opts, kgo.ProducerLinger(0))
	} else {
		opts = append(opts, kgo.ProducerLinger(linger))
	}
	switch cfg.Acks {
	case -1:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case 1:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case 0:
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	}
	for range cfg.Clients {
		client, err := kgo.NewClient(opts...)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("producer for %v: %w", cfg.Bootstrap, err)
		}
		p := &producer{client: client, latency: newHistogram()}
		p.free.New = func() any {
			f := new(flight)
			f.finish = func(_ *kgo.Record, err error) { p.finish(f, err) }
			return f
		}
		all.each = append(all.each, p)
	}
	return all, nil
}

func (all *producers) close() {
	for _, p := range all.each {
		p.client.Close()
	}
}

// maxLatency is the largest latency that is told apart; stallTimeout keeps real ones below.
const maxLatency = 10 * time.Minute

// newHistogram counts latencies in µs with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxLatency.Microseconds(), 3)
}

// send produces n records, spread evenly over the clients, and waits for every answer.
func (all *producers) send(ctx context.Context, n int64, progress func(done, total int64)) (Phase, error) {
	for _, p := range all.each {
		p.latency.Reset()
		p.done.Store(0)
	}
	elapsed, err := attended(ctx, all.done, func(done int64) { progress(done, n) }, func(ctx context.Context, running *errgroup.Group) {
		for i, p := range all.each {
			share := n / int64(len(all.each))
			if int64(i) < n%int64(len(all.each)) {
				share++
			}
			running.Go(func() error {
				if all.sync {
					return p.oneByOne(ctx, share, all.value)
				}
				return p.pipelined(ctx, share, all.value)
			})
		}
	})
	if err != nil {
		return Phase{}, fmt.Errorf("after %d of %d records: %w", all.done(), n, err)
	}
	if done := all.done(); done != n {
		return Phase{}, fmt.Errorf("%d records were acknowledged, %d sent", done, n)
	}
	merged := newHistogram()
	for _, p := range all.each {
		merged.Merge(p.latency)
	}
	return newPhase(n, n*int64(len(all.value)), elapsed, merged), nil
}

func (all *producers) done() int64 {
	var n int64
	for _, p := range all.each {
		n += p.done.Load()
	}
	return n
}

// pipelined hands records to the client as fast as its buffers take them. The latency of a record includes its time in these buffers.
func (p *producer) pipelined(ctx context.Context, n int64, value []byte) error {
	for range n {
		if p.failed.Load() != nil {
			break
		}
		f := p.free.Get().(*flight)
		f.record = kgo.Record{Value: value}
		f.sent = time.Now()
		p.client.Produce(ctx, &f.record, f.finish)
	}
	if err := p.client.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return p.failure()
}

// oneByOne waits for each answer before it sends the next record.
func (p *producer) oneByOne(ctx context.Context, n int64, value []byte) error {
	answered := make(chan struct{}, 1)
	f := new(flight)
	f.finish = func(_ *kgo.Record, err error) {
		p.count(f, err)
		answered <- struct{}{}
	}
	for range n {
		f.record = kgo.Record{Value: value}
		f.sent = time.Now()
		p.client.Produce(ctx, &f.record, f.finish)
		select {
		case <-answered:
		case <-ctx.Done(): // an idempotent record that may have been sent is not failed by its context
			return context.Cause(ctx)
		}
		if err := p.failure(); err != nil {
			return err
		}
	}
	return nil
}

// finish is the promise of a pipelined record.
func (p *producer) finish(f *flight, err error) {
	p.count(f, err)
	p.free.Put(f)
}

func (p *producer) count(f *flight, err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
		return
	}
	us := max(time.Since(f.sent).Microseconds(), 1)
	_ = p.latency.RecordValue(min(us, maxLatency.Microseconds()))
	p.done.Add(1)
}

// failure is the first error of a record, nil if there is none.
func (p *producer) failure() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}
