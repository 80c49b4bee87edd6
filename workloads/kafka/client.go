// Package kafka is a raw client of Kafka's protocol that hides nothing: one request at a time, every error code shown, and retries only where they
// cannot blur what happened. It knows no history and no checker. Start reading at Client; outcome.go decides what error codes mean for a write.
package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// The versions of the protocol that this client speaks: every broker since Kafka 3.0 knows them, so nothing is negotiated. Fetch stays at 11: the
// lowest version that any replica answers (KIP-392), and below the flexible ones, for which kmsg writes a tag that real brokers refuse.
const (
	versionProduce        = 9
	versionFetch          = 11
	versionListOffsets    = 7
	versionMetadata       = 12
	versionInitProducerID = 4
)

// Config describes one client.
type Config struct {
	Topic string
	// Links maps node ids to the addresses under which this client reaches them.
	Links map[int32]string
	// Sticky clients stay with the broker that they were given: they ask it first when they need metadata, as a client does that is left on the
	// wrong side of a partition. Others ask a broker at random.
	Sticky bool
	// RequestTimeout is what the broker is given to answer a write; on the client's side DialTimeout is added.
	RequestTimeout time.Duration
	DialTimeout    time.Duration
	Acks           int16
	// StartMS is the wall clock at the start of the run, ms since the Unix epoch, for the time stamps of records.
	StartMS int64
}

// Leader is what a client believes of a partition.
type Leader struct {
	Node  int32
	Epoch int32
}

// View is one broker's answer about the partitions of the topic.
type View struct {
	Node       int32 // who answered
	Controller int32
	Partitions map[int32]PartitionView
}

// PartitionView is one broker's view of one partition.
type PartitionView struct {
	Leader
	Code     int16
	Replicas []int32
	ISR      []int32
}

// Client is one client. It is not safe for concurrent use: it lives in one worker.
type Client struct {
	env     workloads.Env
	cfg     Config
	conns   map[int32]workloads.Conn
	leaders map[int32]Leader
	home    int32 // the broker that answered last about metadata
	// coordinators are those that the client believes in, by group.
	coordinators map[string]int32
}

// New makes a client that has no connection yet.
func New(env workloads.Env, cfg Config) *Client {
	return &Client{env: env, cfg: cfg, conns: map[int32]workloads.Conn{}, leaders: map[int32]Leader{}, coordinators: map[string]int32{}}
}

// Close closes all connections.
func (c *Client) Close() {
	for _, node := range slices.Sorted(maps.Keys(c.conns)) {
		c.drop(node)
	}
}

func (c *Client) drop(node int32) {
	if conn, ok := c.conns[node]; ok {
		conn.Close()
		delete(c.conns, node)
	}
}

// Forget makes the client ask for metadata before it next uses the partition.
func (c *Client) Forget(partition int32) { delete(c.leaders, partition) }

// ask sends a request to a node over the client's one connection to it. Errors that provably left nothing at the broker wrap workloads.ErrNotSent.
func (c *Client) ask(node int32, req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	conn, ok := c.conns[node]
	if !ok {
		addr, known := c.cfg.Links[node]
		if !known {
			return nil, fmt.Errorf("node %d is none of the brokers of this test: %w", node, workloads.ErrNotSent)
		}
		var err error
		if conn, err = c.env.Dial(addr, c.cfg.DialTimeout); err != nil {
			return nil, err
		}
		// A proxy on the way accepts connections to a broker that is dead or cut off. The greeting that every client of Kafka begins with tells, before
		// anything is sent that could have an effect, so that such an attempt is known to have had none.
		if _, err := conn.RoundTrip(kmsg.NewPtrApiVersionsRequest(), c.cfg.DialTimeout); err != nil {
			conn.Close()
			return nil, fmt.Errorf("greet node %d: %w: %w", node, workloads.ErrNotSent, err)
		}
		c.conns[node] = conn
	}
	resp, err := conn.RoundTrip(req, timeout)
	if err != nil {
		c.drop(node)
	}
	return resp, err
}

// AskView asks one node for its view of the topic.
func (c *Client) AskView(node int32) (View, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = versionMetadata
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(c.cfg.Topic)
	req.Topics = append(req.Topics, topic)
	kresp, err := c.ask(node, req, c.cfg.DialTimeout)
	if err != nil {
		return View{}, err
	}
	resp := kresp.(*kmsg.MetadataResponse)
	view := View{Node: node, Controller: resp.ControllerID, Partitions: map[int32]PartitionView{}}
	for _, t := range resp.Topics {
		if t.Topic == nil || *t.Topic != c.cfg.Topic {
			continue
		}
		if t.ErrorCode != 0 {
			return view, fmt.Errorf("metadata of %s from node %d: error code %d", c.cfg.Topic, node, t.ErrorCode)
		}
		for _, p := range t.Partitions {
			view.Partitions[p.Partition] = PartitionView{
				Leader: Leader{Node: p.Leader, Epoch: p.LeaderEpoch}, Code: p.ErrorCode, Replicas: p.Replicas, ISR: p.ISR,
			}
		}
	}
	if len(view.Partitions) == 0 {
		return view, fmt.Errorf("metadata from node %d: no topic %s", node, c.cfg.Topic)
	}
	return view, nil
}

// refresh learns leaders from the first broker that answers. Like every client of Kafka it never goes back to an older leader epoch
// (KIP-320), except that an answer without an epoch is taken as it is.
func (c *Client) refresh() error {
	order := slices.Sorted(maps.Keys(c.cfg.Links))
	c.env.Rand().Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if c.cfg.Sticky && c.home != 0 {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(b2i(a != c.home), b2i(b != c.home)) })
	}
	var failures []error
	for _, node := range order {
		view, err := c.AskView(node)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		c.home = node
		for id, p := range view.Partitions {
			if old, ok := c.leaders[id]; ok && p.Epoch >= 0 && p.Epoch < old.Epoch {
				continue
			}
			if p.Node > 0 {
				c.leaders[id] = p.Leader
			} else {
				delete(c.leaders, id)
			}
		}
		return nil
	}
	return fmt.Errorf("no broker answered a metadata request: %w: %w", workloads.ErrNotSent, errors.Join(failures...))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Leader gives the leader that this client believes in; it asks a broker if it has none. Errors wrap workloads.ErrNotSent.
func (c *Client) Leader(partition int32) (Leader, error) {
	if l, ok := c.leaders[partition]; ok {
		return l, nil
	}
	if err := c.refresh(); err != nil {
		return Leader{}, err
	}
	if l, ok := c.leaders[partition]; ok {
		return l, nil
	}
	return Leader{}, fmt.Errorf("partition %d has no leader: %w", partition, workloads.ErrNotSent)
}
