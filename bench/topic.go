package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// readyTimeout bounds the wait for a new topic's leaders and in-sync sets.
	readyTimeout = 30 * time.Second
	// readyEach is how often the cluster is asked for them.
	readyEach = 20 * time.Millisecond
)

// benchTopic is the topic that is loaded.
type benchTopic struct {
	Topic
	admin     *kadm.Client
	temporary bool
}

// prepareTopic finds or creates the topic and waits until each partition is led and has its full in-sync set: before that, clients measure the election.
func prepareTopic(ctx context.Context, admin *kadm.Client, cfg Config) (*benchTopic, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	t := &benchTopic{Topic: Topic{Name: cfg.Topic}, admin: admin, temporary: cfg.Topic == ""}
	if t.temporary {
		t.Name = newTopicName()
	}
	configs := map[string]*string{}
	if cfg.Replication >= 3 { // what acks=all means must not depend on the cluster's default
		configs["min.insync.replicas"] = kadm.StringPtr(strconv.Itoa(cfg.Replication - 1))
	}
	created, err := admin.CreateTopic(ctx, int32(cfg.Partitions), int16(cfg.Replication), configs, t.Name)
	if err == nil {
		err = created.Err
	}
	if err != nil && (t.temporary || !errors.Is(err, kerr.TopicAlreadyExists)) {
		return nil, fmt.Errorf("create topic %s with %d partitions and replication %d at %v: %w", t.Name, cfg.Partitions, cfg.Replication, cfg.Bootstrap, err)
	}
	var last error
	for {
		if last = t.look(ctx); last == nil {
			return t, nil
		}
		select {
		case <-ctx.Done():
			t.remove()
			return nil, fmt.Errorf("topic %s is not ready after %v: %w", t.Name, readyTimeout, last)
		case <-time.After(readyEach):
		}
	}
}

// look fills in what the topic is; an error says what is still missing.
func (t *benchTopic) look(ctx context.Context) error {
	meta, err := t.admin.Metadata(ctx, t.Name)
	if err != nil {
		return err
	}
	detail := meta.Topics[t.Name]
	if detail.Err != nil {
		return detail.Err
	}
	if len(detail.Partitions) == 0 {
		return errors.New("no partitions yet")
	}
	t.Brokers, t.Partitions = len(meta.Brokers), len(detail.Partitions)
	for _, p := range detail.Partitions.Sorted() {
		if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
			return fmt.Errorf("partition %d: leader %d, in-sync %v of %v", p.Partition, p.Leader, p.ISR, p.Replicas)
		}
		t.Replication = len(p.Replicas)
	}
	return nil
}

// ends gives the visible end of each partition.
func (t *benchTopic) ends(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	listed, err := t.admin.ListEndOffsets(ctx, t.Name)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end offsets of %s: %w", t.Name, err)
	}
	ends := make(map[int32]int64)
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

// remove deletes a topic that was made for this run only. A failure is of no consequence to the measurement.
func (t *benchTopic) remove() {
	if !t.temporary {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = t.admin.DeleteTopic(ctx, t.Name)
}
