package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/model"
	"ackproof/systems"
	"ackproof/systems/kafkaproto"
)

// Running is a cluster that ran before the test and will run after it. The test makes a topic of its own and removes it at the end; the nodes are not its to stop, and their
// links to each other are out of its hands. It implements systems.System and systems.Prober.
type Running struct {
	o     systems.Options
	brief Cluster // for what is asked of a cluster, whoever started it; it has no nodes of its own
	nodes []systems.Node
	times systems.Timers

	mu   sync.Mutex
	made bool
}

var (
	_ systems.System   = (*Running)(nil)
	_ systems.Prober   = (*Running)(nil)
	_ systems.Unlinked = (*Running)(nil)
)

// join asks the cluster who its brokers are and what their time-outs are.
func join(o systems.Options, set Settings) (*Running, error) {
	r := &Running{o: o, brief: Cluster{o: o, set: set}}
	if err := r.discover(); err != nil {
		return nil, err
	}
	if len(r.nodes) != o.Nodes {
		return nil, fmt.Errorf("kafka: the cluster at %s has %d brokers and %d nodes are asked for, expected --nodes %d", strings.Join(set.Bootstrap, ","), len(r.nodes), o.Nodes, len(r.nodes))
	}
	r.brief.asked.Nodes, r.brief.asked.Topic, r.brief.asked.Partitions, r.brief.asked.Replication = r.nodes, o.Topic, o.Partitions, o.Replication
	r.brief.asked.Patience, r.brief.asked.Attempt = viewTimeout, createTimeout
	return r, r.readTimers()
}

// discover finds the brokers.
func (r *Running) discover() error {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	q.Topics = []kmsg.MetadataRequestTopic{} // none: brokers alone
	var errs []error
	for _, addr := range r.brief.set.Bootstrap {
		resp, err := kafkaproto.Ask(addr, q, createTimeout)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		for _, b := range resp.(*kmsg.MetadataResponse).Brokers {
			r.nodes = append(r.nodes, &foreign{id: int(b.NodeID), addr: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))})
		}
		slices.SortFunc(r.nodes, func(a, b systems.Node) int { return a.ID() - b.ID() })
		return nil
	}
	return fmt.Errorf("kafka: no broker answers, expected the address of a running cluster: %w", errors.Join(errs...))
}

// readTimers asks a broker for its time-outs; those that it does not tell are Kafka's defaults.
func (r *Running) readTimers() error {
	standard := timerSets[len(timerSets)-1]
	r.times = systems.Timers{Session: standard.session, Lag: standard.lag, Fetch: standard.fetchWait, Election: standard.election, GroupSession: standard.group, Start: startBound}
	names := map[string]*time.Duration{"broker.session.timeout.ms": &r.times.Session, "replica.lag.time.max.ms": &r.times.Lag, "replica.fetch.wait.max.ms": &r.times.Fetch,
		"group.consumer.session.timeout.ms": &r.times.GroupSession}
	q := kmsg.NewPtrDescribeConfigsRequest()
	q.Version = 4
	res := kmsg.NewDescribeConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(r.nodes[0].ID())
	for name := range names {
		res.ConfigNames = append(res.ConfigNames, name)
	}
	slices.Sort(res.ConfigNames)
	q.Resources = append(q.Resources, res)
	resp, err := kafkaproto.Ask(r.nodes[0].Addr(), q, createTimeout)
	if err != nil {
		return fmt.Errorf("kafka: ask %s for its time-outs: %w", r.nodes[0].Name(), err)
	}
	for _, one := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		for _, v := range one.Configs {
			if at := names[v.Name]; at != nil && v.Value != nil {
				if n, err := strconv.ParseInt(*v.Value, 10, 64); err == nil && n > 0 {
					*at = time.Duration(n) * time.Millisecond
				}
			}
		}
	}
	return nil
}

// Info implements systems.System. A cluster does not tell its version.
func (r *Running) Info() model.SystemInfo {
	return model.SystemInfo{Name: "kafka", Version: "running at " + strings.Join(r.brief.set.Bootstrap, ",")}
}

// Start implements systems.System: it makes the topic.
func (r *Running) Start(ctx context.Context) error {
	r.mu.Lock()
	r.made = true
	r.mu.Unlock()
	if err := r.brief.asked.CreateTopic(ctx, r.brief.topicSettings()...); err != nil {
		return err
	}
	if err := r.brief.asked.AwaitReady(ctx); err != nil {
		return err
	}
	if err := r.brief.assertTopic(); err != nil {
		return err
	}
	if r.o.Idempotent {
		return r.brief.awaitProducerIDs(ctx)
	}
	return nil
}

// Nodes implements systems.System.
func (r *Running) Nodes() []systems.Node { return slices.Clone(r.nodes) }

// Roles implements systems.System.
func (r *Running) Roles(ctx context.Context) (systems.Roles, error) { return r.brief.asked.Roles(ctx) }

// Timers implements systems.System.
func (r *Running) Timers() systems.Timers { return r.times }

// Contract implements systems.System.
func (r *Running) Contract() model.Contract { return r.brief.Contract() }

// TopicID implements systems.System.
func (r *Running) TopicID() [16]byte { return r.brief.asked.TopicID() }

// Unlinked implements systems.Unlinked.
func (r *Running) Unlinked() bool { return true }

// Ping implements systems.Prober.
func (r *Running) Ping(conn net.Conn) error { return kafkaproto.Ping(conn) }

// Stop implements systems.System: it removes the topic.
func (r *Running) Stop() error {
	r.brief.asked.Close()
	r.mu.Lock()
	made := r.made
	r.made = false
	r.mu.Unlock()
	if !made {
		return nil
	}
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.Version, q.TimeoutMillis, q.TopicNames = 5, int32(createTimeout.Milliseconds()), []string{r.o.Topic}
	var errs []error
	for _, n := range r.nodes {
		resp, err := kafkaproto.Ask(n.Addr(), q, createTimeout)
		if err == nil {
			for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
				err = kerr.ErrorForCode(t.ErrorCode)
			}
		}
		if err == nil || errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("kafka: remove the topic %s of the test: %w", r.o.Topic, errors.Join(errs...))
}

// foreign is a broker that is not the run's. It implements systems.Node.
type foreign struct {
	id   int
	addr string
}

var errForeign = errors.New("the cluster ran before the test, expected to leave its nodes alone")

// ID implements systems.Node.
func (f *foreign) ID() int { return f.id }

// Name implements systems.Node.
func (f *foreign) Name() string { return fmt.Sprintf("n%d", f.id) }

// Addr implements systems.Node: what the broker advertises.
func (f *foreign) Addr() string { return f.addr }

// PID implements systems.Node: none is known.
func (f *foreign) PID() int { return 0 }

// Data implements systems.Node.
func (f *foreign) Data() string { return "" }

// Kill implements systems.Node.
func (f *foreign) Kill() error { return fmt.Errorf("kill %s: %w", f.Name(), errForeign) }

// Start implements systems.Node.
func (f *foreign) Start(context.Context) error {
	return fmt.Errorf("start %s: %w", f.Name(), errForeign)
}

// Pause implements systems.Node.
func (f *foreign) Pause() error { return fmt.Errorf("pause %s: %w", f.Name(), errForeign) }

// Resume implements systems.Node.
func (f *foreign) Resume() error { return fmt.Errorf("resume %s: %w", f.Name(), errForeign) }

// Alive implements systems.Node. Whether it answers is another question.
func (f *foreign) Alive() (bool, error) { return true, nil }

// LogTail implements systems.Node.
func (f *foreign) LogTail(int) string { return elsewhere }

// Log implements systems.Node.
func (f *foreign) Log() (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(elsewhere + "\n")), nil
}

const elsewhere = "the cluster ran before the test: its logs are where it keeps them"
