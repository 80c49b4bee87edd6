package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/systems/kafkaproto"
)

// assertTopic compares what the cluster says that holds for the topic with what the contract was derived from: a setting may stand in one file and another file decide.
func (c *Cluster) assertTopic() error {
	want := map[string]string{
		minISR:                           fmt.Sprint(c.effectiveMinISR()),
		"unclean.leader.election.enable": fmt.Sprint(c.o.Unclean),
	}
	if c.o.FlushEach {
		want[flushEach] = "1"
	}
	q := kmsg.NewPtrDescribeConfigsRequest()
	q.Version = 4
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, c.o.Topic
	for name := range want {
		r.ConfigNames = append(r.ConfigNames, name)
	}
	q.Resources = append(q.Resources, r)
	for _, n := range c.asked.Nodes {
		resp, err := kafkaproto.Ask(n.Addr(), q, createTimeout)
		if err != nil {
			return fmt.Errorf("kafka: ask %s what holds for the topic: %w", n.Name(), err)
		}
		found := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
		for _, res := range resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := kerr.ErrorForCode(res.ErrorCode); err != nil {
				return fmt.Errorf("kafka: ask %s what holds for the topic: %w", n.Name(), err)
			}
			for _, v := range res.Configs {
				found[v.Name] = v
			}
		}
		for name, value := range want {
			v, ok := found[name]
			if !ok || v.Value == nil || *v.Value != value {
				got := "nothing"
				if ok && v.Value != nil {
					got = *v.Value
				}
				return fmt.Errorf("kafka: %s says that %s is %s for the topic (%v), expected %s, from which the contract was derived", n.Name(), name, got, v.Source, value)
			}
		}
	}
	return nil
}

// awaitProducerIDs returns when every broker gives out producer ids: each has to be given a block of them by the controller first.
func (c *Cluster) awaitProducerIDs(ctx context.Context) error {
	q := kmsg.NewPtrInitProducerIDRequest()
	q.Version = 4
	for _, n := range c.asked.Nodes {
		for {
			resp, err := kafkaproto.Ask(n.Addr(), q, createTimeout)
			if err == nil {
				err = kerr.ErrorForCode(resp.(*kmsg.InitProducerIDResponse).ErrorCode)
			}
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("kafka: ask %s for a producer id: %w", n.Name(), errors.Join(ctx.Err(), err))
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}
