// Package bench loads a cluster that speaks Kafka's protocol, as fast as one machine's client can or with one record in flight per client, and measures throughput,
// latency, and what the servers' processes spent on it. It knows nothing of how the cluster was started and nothing of this project's broker: both sides of a
// comparison are measured by the same code. Start reading at Config and Run.
package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// batchBytes is the largest batch that is sent; Kafka's default max.message.bytes is 1,048,588.
	batchBytes = 1 << 20
	// linger is how long a client waits for a batch to fill.
	linger = 5 * time.Millisecond
	// bufferBytes is what all clients together hold back: enough that a full batch per partition waits while others are in flight.
	bufferBytes = 64 << 20
	// bufferRecords bounds the same by count, so that small records do not queue for seconds.
	bufferRecords = 100_000
	// MaxSize is the largest value that fits into one batch with its overhead.
	MaxSize = batchBytes - 1024
)

// Config says what load is made.
type Config struct {
	Bootstrap   []string // host:port of one or more brokers
	Topic       string   // "": a new topic, deleted afterwards; otherwise created if it is missing, and kept
	Partitions  int      // of a topic that is created
	Replication int      // of a topic that is created
	Records     int64    // measured records, over all clients
	Warmup      int64    // records sent before those; at least one per client, so that connections and producer ids stand
	Size        int      // bytes of a value, 1…MaxSize
	Acks        int      // 0, 1 or −1 (all); all is sent by idempotent producers, as Kafka's clients do by default
	Clients     int      // producers, and at most as many consumers
	Sync        bool     // one record in flight per client, without linger
	Consume     bool     // read the measured records back
	Servers     []int    // process ids of the brokers, to read what they spend; may be empty
}

// Validate tells the first senseless value and what was expected.
func (c Config) Validate() error {
	switch {
	case len(c.Bootstrap) == 0:
		return errors.New("no bootstrap address: expected host:port[,host:port…]")
	case c.Records < 1:
		return fmt.Errorf("records %d: expected at least 1", c.Records)
	case c.Warmup < 0:
		return fmt.Errorf("warm-up of %d records: expected 0 or more", c.Warmup)
	case c.Size < 1 || c.Size > MaxSize:
		return fmt.Errorf("size %d: expected 1 to %d bytes", c.Size, MaxSize)
	case c.Acks < -1 || c.Acks > 1:
		return fmt.Errorf("acks %d: expected 0, 1 or -1 (all)", c.Acks)
	case c.Clients < 1 || c.Clients > 1000:
		return fmt.Errorf("%d clients: expected 1 to 1000", c.Clients)
	case int64(c.Clients) > c.Records:
		return fmt.Errorf("%d clients for %d records: expected at least one record per client", c.Clients, c.Records)
	case c.Partitions < 1 || c.Partitions > math.MaxInt32:
		return fmt.Errorf("%d partitions: expected at least 1", c.Partitions)
	case c.Replication < 1 || c.Replication > math.MaxInt16:
		return fmt.Errorf("replication %d: expected at least 1", c.Replication)
	case c.Sync && c.Acks == 0:
		return errors.New("one record in flight needs an answer to wait for: expected acks 1 or all")
	case c.Consume && c.Acks == 0:
		return errors.New("without acknowledgements the end of what is to be read back is unknown: expected acks 1 or all")
	}
	return nil
}

// Progress is called now and then while a phase ("warm-up", "produce", "consume") runs. It must not block.
type Progress func(phase string, done, total int64)

// Run makes the load and measures it. An error means that there is no measurement: a server could not be reached, or refused or lost a record.
func Run(ctx context.Context, cfg Config, progress Progress) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	admin, err := kgo.NewClient(kgo.SeedBrokers(cfg.Bootstrap...), kgo.ClientID("ackproof-bench-admin"), kgo.MetadataMinAge(readyEach))
	if err != nil {
		return Result{}, fmt.Errorf("client for %v: %w", cfg.Bootstrap, err)
	}
	defer admin.Close()
	topic, err := prepareTopic(ctx, kadm.NewClient(admin), cfg)
	if err != nil {
		return Result{}, err
	}
	defer topic.remove()

	load, err := newProducers(cfg, topic.Name)
	if err != nil {
		return Result{}, err
	}
	defer load.close()
	if _, err := load.send(ctx, max(cfg.Warmup, int64(cfg.Clients)), phaseOf("warm-up", progress)); err != nil {
		return Result{}, fmt.Errorf("warm-up: %w", err)
	}

	res := Result{Version: 1, Bootstrap: cfg.Bootstrap, Topic: topic.Topic, Size: cfg.Size, Acks: acksName(cfg.Acks), Clients: cfg.Clients, Sync: cfg.Sync}
	from, err := topic.ends(ctx)
	if err != nil {
		return Result{}, err
	}
	if res.Produce, err = metered(cfg.Servers, func() (Phase, error) {
		return load.send(ctx, cfg.Records, phaseOf("produce", progress))
	}); err != nil {
		return Result{}, fmt.Errorf("produce: %w", err)
	}
	if cfg.Consume {
		to, err := topic.ends(ctx)
		if err != nil {
			return Result{}, err
		}
		phase, err := metered(cfg.Servers, func() (Phase, error) {
			return consume(ctx, cfg, topic.Name, from, to, phaseOf("consume", progress))
		})
		if err != nil {
			return Result{}, fmt.Errorf("consume: %w", err)
		}
		res.Consume = &phase
	}
	if res.Servers, err = peaks(cfg.Servers); err != nil {
		return Result{}, err
	}
	return res, nil
}

func phaseOf(name string, progress Progress) func(done, total int64) {
	if progress == nil {
		return func(int64, int64) {}
	}
	return func(done, total int64) { progress(name, done, total) }
}

func acksName(acks int) string {
	if acks == -1 {
		return "all"
	}
	return fmt.Sprint(acks)
}

// newTopicName is unique, so that no leftover of an earlier run is measured.
func newTopicName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "ackproof-bench-" + hex.EncodeToString(b[:])
}
