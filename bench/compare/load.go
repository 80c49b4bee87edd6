package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ackproof/bench"
)

// load is one kind of load and what it gives.
type load struct {
	name    string
	config  bench.Config // bootstrap and servers are filled in
	figures func(r bench.Result, add func(measure, float64))
}

// loads of a round. Their numbers of records take a Kafka cluster on two cores about ten seconds each.
var loads = []load{
	{"1 KiB", bench.Config{Records: 1_500_000, Warmup: 100_000, Size: 1024, Clients: 1, Consume: true}, func(r bench.Result, add func(measure, float64)) {
		add(measure{name: "produce 1 KiB", unit: "MB/s", goal: 2.2}, r.Produce.MBPerSecond)
		add(measure{name: "produce 1 KiB, p99", unit: "ms", less: true}, r.Produce.Latency.P99)
		add(measure{name: "produce 1 KiB, server CPU", unit: "s/GB", less: true, goal: 0.35, decimal: 2}, *r.Produce.ServerCPUPerGB)
		add(measure{name: "consume 1 KiB", unit: "MB/s", goal: 1.2}, r.Consume.MBPerSecond)
		add(measure{name: "consume 1 KiB, server CPU", unit: "s/GB", less: true, goal: 0.4, decimal: 2}, *r.Consume.ServerCPUPerGB)
	}},
	{"100 B", bench.Config{Records: 3_000_000, Warmup: 200_000, Size: 100, Clients: 1}, func(r bench.Result, add func(measure, float64)) {
		add(measure{name: "produce 100 B", unit: "records/s", goal: 1.4}, r.Produce.RecordsPerSecond)
		add(measure{name: "produce 100 B, server CPU", unit: "s/GB", less: true, decimal: 2}, *r.Produce.ServerCPUPerGB)
	}},
	{"one in flight", bench.Config{Records: 6000, Warmup: 1000, Size: 1024, Clients: 1, Sync: true}, func(r bench.Result, add func(measure, float64)) {
		add(measure{name: "one record in flight, 1 client", unit: "records/s", goal: 6}, r.Produce.RecordsPerSecond)
		add(measure{name: "one record in flight, 1 client, p99", unit: "ms", less: true, goal: 0.15, decimal: 2}, r.Produce.Latency.P99)
	}},
	{"32 clients", bench.Config{Records: 30_000, Warmup: 3200, Size: 1024, Clients: 32, Sync: true}, func(r bench.Result, add func(measure, float64)) {
		add(measure{name: "one record in flight, 32 clients", unit: "records/s", goal: 3.3}, r.Produce.RecordsPerSecond)
		add(measure{name: "one record in flight, 32 clients, p99", unit: "ms", less: true, goal: 0.25, decimal: 2}, r.Produce.Latency.P99)
	}},
}

// measureLoad runs all loads on both clusters, which live through all rounds, and then looks at their memory.
func measureLoad(ctx context.Context, c *comparison) (err error) {
	var clusters [2]*cluster
	var pids [2][]int
	for _, s := range []side{kafka, ours} {
		cl, err := c.upAndEmpty(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		defer func() { err = errors.Join(err, cl.stop()) }()
		clusters[s] = cl
		if pids[s], err = listeners(cl.bootstrap); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	once := func(s side, config bench.Config) (bench.Result, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("longer than the limit of %v", c.limit))
		defer cancel()
		config.Bootstrap, config.Servers = clusters[s].bootstrap, pids[s]
		config.Partitions, config.Replication, config.Acks = logsPerNode, nodes, -1
		return bench.Run(ctx, config, nil)
	}
	if c.warmup > 0 {
		if err := alternate(ctx, 1, func(_ int, s side) error {
			began := time.Now()
			r, err := once(s, bench.Config{Records: c.warmup, Size: 1024, Clients: 1})
			if err != nil {
				return fmt.Errorf("%s: warm-up: %w", s, err)
			}
			fmt.Fprintf(c.table.progress, "  %-8s  warm-up of %d records in %.0f s, %.0f MB/s\n", s, c.warmup, time.Since(began).Seconds(), r.Produce.MBPerSecond)
			return nil
		}); err != nil {
			return err
		}
	}
	var failed []error
	for _, l := range loads {
		l.config.Records = max(int64(float64(l.config.Records)*c.scale), int64(l.config.Clients))
		failed = append(failed, alternate(ctx, c.rounds, func(_ int, s side) error {
			r, err := once(s, l.config)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s, l.name, err)
			}
			l.figures(r, func(m measure, v float64) { c.table.add(m, s, v) })
			return nil
		}))
	}
	for _, s := range []side{kafka, ours} {
		m := measure{name: "peak memory of the largest node after all loads, 12 logs", unit: "MB", less: true, most: 100}
		failed = append(failed, c.addMemory(m, s, pids[s]))
	}
	return errors.Join(failed...)
}

// upAndEmpty starts a cluster that will only be loaded, and waits until all brokers are in.
func (c *comparison) upAndEmpty(ctx context.Context, s side) (_ *cluster, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("not up within the limit of %v", c.limit))
	defer cancel()
	cl, err := c.maker(s).start(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cl.stop())
		}
	}()
	a, err := newAdmin(cl.bootstrap)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return cl, a.awaitBrokers(ctx)
}
