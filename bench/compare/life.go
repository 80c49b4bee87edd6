package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/bench"
)

const (
	logsPerNode    = 12 // partitions, each on every node
	manyPartitions = 1000
	shortSession   = 2 * time.Second
	// beforeKill is how many records one after the other a cluster has taken when its leader is killed.
	beforeKill = 500
	// most repeats of a part that starts a cluster each time: they differ little
	mostStarts = 3
)

// withCluster runs use with a new cluster and its administrator, within the limit of a part.
func (c *comparison) withCluster(ctx context.Context, s side, session time.Duration, use func(ctx context.Context, began time.Time, cl *cluster, a *admin) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("longer than the limit of %v", c.limit))
	defer cancel()
	began := time.Now()
	cl, err := c.maker(s).start(ctx, session)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	defer func() { err = errors.Join(err, cl.stop()) }()
	a, err := newAdmin(cl.bootstrap)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	defer a.close()
	if err := use(ctx, began, cl, a); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

func (c *comparison) maker(s side) maker {
	if s == kafka {
		return c.peer
	}
	return c.ours
}

// alternate calls do for both sides, round by round, and goes on with the other side when one fails.
func alternate(ctx context.Context, rounds int, do func(round int, s side) error) error {
	var failed [2]error
	for round := range rounds {
		for i := range 2 {
			s := side((round + i) % 2)
			if failed[s] == nil && ctx.Err() == nil {
				failed[s] = do(round, s)
			}
		}
	}
	return errors.Join(failed[:]...)
}

// measureStart is the time from the first command until every partition of a topic, made as soon as that is possible, is led and in sync.
func measureStart(ctx context.Context, c *comparison) error {
	m := measure{name: "from nothing to 12 partitions led and in sync", unit: "s", less: true, most: 0.5, decimal: 2}
	return alternate(ctx, min(c.rounds, mostStarts), func(_ int, s side) error {
		return c.withCluster(ctx, s, defaultSession, func(ctx context.Context, began time.Time, _ *cluster, a *admin) error {
			if err := a.create(ctx, logsPerNode); err != nil {
				return err
			}
			if _, err := a.await(ctx, logsPerNode, inSync); err != nil {
				return err
			}
			c.table.add(m, s, time.Since(began).Seconds())
			return nil
		})
	})
}

// measureFailover kills the leader of a partition and sends a record: the time from the kill to its acknowledgement.
func measureFailover(ctx context.Context, c *comparison) error {
	var failed []error
	for _, session := range []time.Duration{defaultSession, shortSession} {
		m := measure{
			name: fmt.Sprintf("kill -9 of a leader to the next ack, session %d s", session/time.Second), unit: "s", less: true,
			most: (session + time.Second/2).Seconds(), decimal: 2,
		}
		failed = append(failed, alternate(ctx, min(c.rounds, mostStarts), func(_ int, s side) error {
			return c.withCluster(ctx, s, session, func(ctx context.Context, _ time.Time, cl *cluster, a *admin) error {
				took, err := failover(ctx, cl, a)
				if err == nil {
					c.table.add(m, s, took.Seconds())
				}
				return err
			})
		}))
	}
	return errors.Join(failed...)
}

func failover(ctx context.Context, cl *cluster, a *admin) (time.Duration, error) {
	if err := a.create(ctx, 1); err != nil {
		return 0, err
	}
	found, err := a.await(ctx, 1, inSync)
	if err != nil {
		return 0, err
	}
	producer, err := impatient(cl.bootstrap, kgo.DefaultProduceTopic(topicName), kgo.ProducerLinger(0))
	if err != nil {
		return 0, err
	}
	defer producer.Close()
	send := func() error {
		return producer.ProduceSync(ctx, &kgo.Record{Value: bytes.Repeat([]byte{'x'}, 1024)}).FirstErr()
	}
	for range beforeKill {
		if err := send(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if _, err := killBroker(ctx, found, found.Topics[topicName].Partitions[0].Leader); err != nil {
		return 0, err
	}
	if err := send(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// killBroker kills a broker's process, and returns when it is gone: no acknowledgement comes from it any more.
func killBroker(ctx context.Context, m kadm.Metadata, broker int32) (pid int, err error) {
	at, err := addressOf(m, broker)
	if err != nil {
		return 0, err
	}
	if pid, err = listenerOf(at); err != nil {
		return 0, fmt.Errorf("process of broker %d at %s: %w", broker, at, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("kill pid %d of broker %d: %w", pid, broker, err)
	}
	for !gone(pid) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("pid %d of broker %d was killed and is still there: %w", pid, broker, context.Cause(ctx))
		}
	}
	return pid, nil
}

// gone tells whether a process is no more, or only waits for its parent to look.
func gone(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}

// measurePartitions is the life of many partitions: made, ready, one node of three killed, all led again.
func measurePartitions(ctx context.Context, c *comparison) error {
	ready := measure{name: "1,000 partitions on 3 nodes: created, led and in sync", unit: "s", less: true, goal: 0.5, decimal: 2}
	again := measure{name: "1,000 partitions: one node killed, all led again, session 2 s", unit: "s", less: true, goal: 0.5, decimal: 2}
	memory := measure{name: "1,000 partitions: peak memory of the largest node left", unit: "MB", less: true, goal: 0.5}
	return alternate(ctx, 1, func(_ int, s side) error {
		return c.withCluster(ctx, s, shortSession, func(ctx context.Context, _ time.Time, cl *cluster, a *admin) error {
			if err := a.awaitBrokers(ctx); err != nil {
				return err
			}
			began := time.Now()
			if err := a.create(ctx, manyPartitions); err != nil {
				return err
			}
			found, err := a.await(ctx, manyPartitions, inSync)
			if err != nil {
				return err
			}
			c.table.add(ready, s, time.Since(began).Seconds())
			pids, err := listeners(cl.bootstrap)
			if err != nil {
				return err
			}
			victim := found.Topics[topicName].Partitions[0].Leader
			began = time.Now()
			killed, err := killBroker(ctx, found, victim)
			if err != nil {
				return err
			}
			if _, err := a.await(ctx, manyPartitions, func(p kadm.PartitionDetail) error {
				if p.Leader < 0 || p.Leader == victim {
					return fmt.Errorf("leader %d", p.Leader)
				}
				return nil
			}); err != nil {
				return err
			}
			c.table.add(again, s, time.Since(began).Seconds())
			return c.addMemory(memory, s, slices.DeleteFunc(pids, func(pid int) bool { return pid == killed }))
		})
	})
}

// addMemory notes the peak memory of the largest of some processes.
func (c *comparison) addMemory(m measure, s side, pids []int) error {
	var largest int64
	for _, pid := range pids {
		peak, err := bench.PeakRSS(pid)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		largest = max(largest, peak)
	}
	c.table.add(m, s, float64(largest)/1e6)
	return nil
}
