// Package franz adds a producer of the kind that people really run to the log workload: franz-go, pipelined, with retries, batching and
// time-outs of its own. It starts goroutines and therefore has no place in a simulation. It hides almost every error code, so that whatever
// is not an acknowledgement counts as unknown.
package franz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/histories"
	"ackproof/workloads/log"
)

const (
	tick = 12 * time.Millisecond // between two records to one partition
	// inFlight bounds the records of one partition that are open at a time.
	inFlight = 12
)

// Producer is one franz-go client that writes to every partition, one record per operation.
type Producer struct {
	Config   log.Config
	Workload *log.Workload
	Journal  log.Journal
	Counters *log.Counters
	// Links maps the addresses that brokers advertise to those under which this client reaches them.
	Links map[string]string
	// Dialer says where the client dials from.
	Dialer net.Dialer
}

// Run produces until stop is closed, then waits until the open operations have ended, for the deadline of an operation at most. When hard
// ends, it returns at once. What is still open then has an unknown outcome.
func (p *Producer) Run(hard context.Context, stop <-chan struct{}, now func() time.Duration) error {
	for {
		g, err := p.newGeneration()
		if err != nil {
			return err
		}
		stopped := g.run(hard, stop, now)
		g.retire()
		if stopped {
			return nil
		}
	}
}

// generation is one producer session: after an unknown outcome a new one takes over under new numbers.
type generation struct {
	*Producer
	client    *kgo.Client
	producers []int32 // number of the process and producer, per partition: order is promised within a partition only
	next      []int64 // sequence of the next record, per partition

	mu      sync.Mutex
	open    []map[uint64]opened // per partition, by operation
	failed  bool                // some outcome is unknown
	retired bool                // later answers come too late
}

type opened struct {
	event histories.Event
	since time.Time
}

func (p *Producer) newGeneration() (*generation, error) {
	seeds := make([]string, 0, len(p.Links))
	for addr := range p.Links {
		seeds = append(seeds, addr)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID("ackproof-franz"),
		kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			link, ok := p.Links[addr]
			if !ok {
				return nil, fmt.Errorf("dial %s: no broker of this test advertises that address", addr)
			}
			d := p.Dialer
			d.Timeout = p.Config.DialTimeout
			return d.DialContext(ctx, network, link)
		}),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(3 * time.Millisecond),
		kgo.ProduceRequestTimeout(p.Config.RequestTimeout),
		kgo.RecordDeliveryTimeout(p.Config.Deadline),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.UnknownTopicRetries(-1),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	switch p.Config.Acks {
	case 0:
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case 1:
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		options = append(options, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	if !p.Config.Idempotent || p.Config.Acks != -1 {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("make a franz-go client: %w", err)
	}
	g := &generation{Producer: p, client: client, next: make([]int64, p.Config.Partitions)}
	for range p.Config.Partitions {
		g.producers = append(g.producers, p.Workload.NewProcess())
		g.open = append(g.open, map[uint64]opened{})
	}
	return g, nil
}

// run writes until an outcome is unknown (false) or the run stops (true).
func (g *generation) run(hard context.Context, stop <-chan struct{}, now func() time.Duration) (stopped bool) {
	ticker := time.NewTicker(g.interval())
	defer ticker.Stop()
	for {
		select {
		case <-hard.Done():
			return true
		case <-stop:
			g.settle(hard)
			return true
		case <-ticker.C:
		}
		if g.overdue() {
			return false
		}
		for partition := range int32(g.Config.Partitions) {
			if g.Config.Breaths.Resting(partition, now()) {
				continue
			}
			g.send(hard, partition)
		}
	}
}

// interval is the time between two records to one partition: a tenth of the asked-for rate comes from here.
func (g *generation) interval() time.Duration {
	if g.Config.Rate <= 0 {
		return tick
	}
	return max(tick, 10*time.Second*time.Duration(g.Config.Partitions)/time.Duration(g.Config.Rate))
}

// overdue tells whether the session has to end: an outcome is unknown or an operation has been open for longer than its deadline. An
// idempotent franz-go does not fail a record in flight while a fault lasts, it waits for the healing; hence a time-out of our own.
func (g *generation) overdue() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, ops := range g.open {
		for _, o := range ops {
			if time.Since(o.since) > g.Config.Deadline {
				return true
			}
		}
	}
	return g.failed
}

// send begins one operation, unless too many are open.
func (g *generation) send(ctx context.Context, partition int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open[partition]) >= inFlight {
		return
	}
	number, sequence := g.producers[partition], g.next[partition]
	g.next[partition]++
	event := histories.Event{
		Kind: histories.Append, Process: number, Partition: partition, Pipelined: true,
		Runs: []histories.Run{{Producer: number, Sequence: sequence, Count: 1}},
	}
	event.Op = g.Journal.Invoke(event)
	g.open[partition][event.Op] = opened{event, time.Now()}
	value := histories.Value{Origin: g.Config.Origin(partition), Producer: number, Sequence: sequence}
	record := &kgo.Record{Topic: g.Config.Topic, Partition: partition, Value: histories.EncodeValue(nil, value, 128)}
	// TryProduce never blocks; it may call back at once, from another goroutine.
	g.client.TryProduce(ctx, record, func(r *kgo.Record, err error) { g.answer(event, r.Offset, err) })
}

// answer ends one operation.
func (g *generation) answer(event histories.Event, offset int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return
	}
	delete(g.open[event.Partition], event.Op)
	switch {
	case err == nil:
		event.Type, event.Offset = histories.OK, offset
		if g.Config.Acks == 0 {
			event.Offset = -1
		}
	case errors.Is(err, kgo.ErrMaxBuffered):
		event.Type, event.Note = histories.Fail, err.Error()
	default:
		event.Type, event.Code, event.Note = histories.Info, histories.NoAnswer, err.Error()
		g.failed = true
	}
	g.Journal.Complete(event)
	if err == nil {
		g.Counters.Ack(event.Partition, 1)
	}
}

// settle waits for the open operations to end.
func (g *generation) settle(hard context.Context) {
	ctx, cancel := context.WithTimeout(hard, g.Config.Deadline)
	defer cancel()
	// The error is that of the context; what is open then is retired.
	_ = g.client.Flush(ctx)
}

// retire gives every open operation an unknown outcome and closes the client.
func (g *generation) retire() {
	g.mu.Lock()
	g.retired = true
	for _, ops := range g.open {
		for _, o := range ops {
			o.event.Type, o.event.Code = histories.Info, histories.NoAnswer
			g.Journal.Complete(o.event)
		}
	}
	g.mu.Unlock()
	g.client.Close()
}
