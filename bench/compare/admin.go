package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	topicName = "compare"
	// askEach is how often a cluster is asked whether it is ready.
	askEach = 20 * time.Millisecond
	// askTime bounds one question, so that a node that has just been killed is not waited for.
	askTime = 5 * time.Second
)

// admin asks a cluster about its topic.
type admin struct {
	client *kgo.Client
	*kadm.Client
}

// impatient makes a client that finds out at once what has changed. All that waits in it is the same for both clusters.
func impatient(bootstrap []string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap...), kgo.ClientID("ackproof-compare"), kgo.MetadataMinAge(askEach), kgo.DialTimeout(askTime),
		kgo.RetryBackoffFn(func(int) time.Duration { return askEach }),
	}, more...)...)
}

func newAdmin(bootstrap []string) (*admin, error) {
	client, err := impatient(bootstrap, kgo.RequestRetries(1))
	if err != nil {
		return nil, err
	}
	return &admin{client, kadm.NewClient(client)}, nil
}

func (a *admin) close() { a.client.Close() }

// awaitBrokers waits until the cluster tells of all its nodes.
func (a *admin) awaitBrokers(ctx context.Context) error {
	return until(ctx, func(ctx context.Context) error {
		q := kmsg.NewPtrMetadataRequest() // kadm's own question about brokers is answered from what the client remembers
		q.Topics = []kmsg.MetadataRequestTopic{}
		m, err := q.RequestWith(ctx, a.client)
		if err == nil && len(m.Brokers) < nodes {
			err = fmt.Errorf("%d of %d brokers", len(m.Brokers), nodes)
		}
		return err
	})
}

// create makes the topic, again and again until the cluster is far enough.
func (a *admin) create(ctx context.Context, partitions int32) error {
	minISR := map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}
	return until(ctx, func(ctx context.Context) error {
		made, err := a.CreateTopic(ctx, partitions, nodes, minISR, topicName)
		if err == nil {
			err = made.Err
		}
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return nil // an attempt that was not answered in time
		}
		return err
	})
}

// await waits until every partition of the topic is to the liking of ok, which says what is missing.
func (a *admin) await(ctx context.Context, partitions int, ok func(kadm.PartitionDetail) error) (found kadm.Metadata, err error) {
	err = until(ctx, func(ctx context.Context) error {
		var err error
		if found, err = a.Metadata(ctx, topicName); err != nil {
			return err
		}
		topic := found.Topics[topicName]
		if topic.Err != nil {
			return topic.Err
		}
		if len(topic.Partitions) != partitions {
			return fmt.Errorf("%d of %d partitions", len(topic.Partitions), partitions)
		}
		for _, p := range topic.Partitions {
			if err := ok(p); err != nil {
				return fmt.Errorf("partition %d: %w", p.Partition, err)
			}
		}
		return nil
	})
	return found, err
}

// inSync wants a leader and all replicas in sync.
func inSync(p kadm.PartitionDetail) error {
	if p.Leader < 0 || len(p.ISR) < nodes {
		return fmt.Errorf("leader %d, in sync %v of %v", p.Leader, p.ISR, p.Replicas)
	}
	return nil
}

// until calls ask until it gives no error.
func until(ctx context.Context, ask func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, askTime)
		err := ask(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), err)
		}
	}
}

// addressOf is where a broker listens.
func addressOf(m kadm.Metadata, broker int32) (string, error) {
	for _, b := range m.Brokers {
		if b.NodeID == broker {
			return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), nil
		}
	}
	return "", fmt.Errorf("broker %d is not among the %d brokers that the cluster tells of", broker, len(m.Brokers))
}
