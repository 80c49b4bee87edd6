package node

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Property is one configuration key.
type Property struct {
	Name    string
	Default string
	Doc     string
	set     func(c *Config, value string) error
}

// Properties lists every key that LoadConfig knows. Keys that begin with "ackproof." are our own, and so is log.store; all others are Kafka's.
func Properties() []Property {
	return []Property{
		{"node.id", "", "this broker's id, one of controller.quorum.voters (required)", int32Of(func(c *Config) *int32 { return &c.NodeID }, 0)},
		{"listeners", "PLAINTEXT://127.0.0.1:9092", "the address to listen on, for clients and brokers; loopback unless told otherwise; port 0 takes a free one", func(c *Config, v string) (err error) {
			c.Listen, err = listener(v)
			return err
		}},
		{"advertised.listeners", "", "the address that clients are told, if another one", func(c *Config, v string) (err error) {
			if v != "" {
				c.Advertised, err = listener(v)
			}
			return err
		}},
		{"controller.quorum.voters", "", "id@host:port of every broker, separated by commas; this node uses these addresses for all traffic with the others (default: this node alone)", voters},
		{"log.dirs", "", "the folder for everything that is stored; one only (required)", func(c *Config, v string) error {
			if v == "" || strings.Contains(v, ",") {
				return errors.New("expected one folder")
			}
			c.LogDir = v
			return nil
		}},
		{"broker.rack", "", "told to clients", func(c *Config, v string) error { c.Rack = v; return nil }},

		{"num.partitions", "1", "partitions of a topic that is created without a number", int32Of(func(c *Config) *int32 { return &c.Partitions }, 1)},
		{"default.replication.factor", "1", "replicas of a topic that is created without a number", int16Of(func(c *Config) *int16 { return &c.ReplicationFactor })},
		{"min.insync.replicas", "1", "in-sync replicas that acks=all needs (R3, R4)", intOf(func(c *Config) *int { return &c.MinISR }, 1)},
		{"unclean.leader.election.enable", "false", "elect a replica that is not in sync rather than none: permits loss (R17)", boolOf(func(c *Config) *bool { return &c.Unclean })},
		{"auto.create.topics.enable", "true", "create a topic that a client asks the metadata of", boolOf(func(c *Config) *bool { return &c.AutoCreate })},
		{"message.max.bytes", "1048588", "largest record batch", int32Of(func(c *Config) *int32 { return &c.MaxMessageBytes }, 1)},
		{"log.flush.interval.messages", "9223372036854775807", "1 flushes each batch before it counts (S1); any other value leaves flushing to the system, as Kafka's default does", func(c *Config, v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 {
				return errors.New("expected a number of at least 1")
			}
			c.FlushEach = n == 1
			return nil
		}},
		{"log.store", storeSegment, "how partitions are stored: segment (Kafka's own layout) or wal (tidwall/wal); a folder keeps the one that it was made with", func(c *Config, v string) error {
			if v != storeWAL && v != storeSegment {
				return errors.New("expected segment or wal")
			}
			c.Store = v
			return nil
		}},
		{"log.segment.bytes", "0", "size of a log segment, at most 2147483647; 0 = what the store likes best", func(c *Config, v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n != 0 && n < 256 {
				return errors.New("expected 0, or a number from 256 to 2147483647")
			}
			c.SegmentBytes = n
			return nil
		}},
		{"log.index.interval.bytes", "4096", "bytes of a log per entry of its index, of store segment", int64Of(func(c *Config) *int64 { return &c.IndexBytes }, 1)},
		{"producer.id.expiration.ms", "86400000", "when an idle producer's sequence is forgotten (R29)", msOf(func(c *Config) *time.Duration { return &c.ProducerExpiry })},
		{"replica.high.watermark.checkpoint.interval.ms", "5000", "how often the high watermark is saved", msOf(func(c *Config) *time.Duration { return &c.CheckpointEach })},

		{"offsets.topic.num.partitions", "50", "partitions of __consumer_offsets, once it is made", int32Of(func(c *Config) *int32 { return &c.OffsetsPartitions }, 1)},
		{"offsets.topic.replication.factor", "3", "replicas of __consumer_offsets; at most one for each broker", int16Of(func(c *Config) *int16 { return &c.OffsetsReplication })},
		{"offset.metadata.max.bytes", "4096", "longest metadata of a committed offset", intOf(func(c *Config) *int { return &c.Groups.MaxMetadata }, 0)},
		{"offsets.commit.timeout.ms", "5000", "how long an answer about groups waits for its records to be committed", msOf(func(c *Config) *time.Duration { return &c.Groups.CommitTimeout })},
		{"offsets.retention.minutes", "10080", "offsets of a group without members are forgotten after this", func(c *Config, v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 1 {
				return errors.New("expected minutes, at least 1")
			}
			c.Groups.OffsetsRetention = time.Duration(n) * time.Minute
			return nil
		}},
		{"offsets.retention.check.interval.ms", "600000", "how often that is looked at", msOf(func(c *Config) *time.Duration { return &c.Groups.RetentionCheck })},
		{"ackproof.offsets.compact.bytes", "8388608", "bytes of a partition of __consumer_offsets after which it is written anew; 0 = never", intOf(func(c *Config) *int { return &c.Groups.CompactAfter }, 0)},
		{"group.initial.rebalance.delay.ms", "3000", "how long the first round of a group waits for more members", msOf(func(c *Config) *time.Duration { return &c.Groups.InitialRebalanceDelay })},
		{"group.min.session.timeout.ms", "6000", "shortest session that a member may ask for", msOf(func(c *Config) *time.Duration { return &c.Groups.MinSession })},
		{"group.max.session.timeout.ms", "1800000", "longest session that a member may ask for", msOf(func(c *Config) *time.Duration { return &c.Groups.MaxSession })},
		{"group.max.size", "10000", "members of a group, of either protocol", intOf(func(c *Config) *int { return &c.Groups.MaxSize }, 1)},
		{"group.consumer.session.timeout.ms", "45000", "session of members of the newer protocol (KIP-848)", msOf(func(c *Config) *time.Duration { return &c.Groups.ConsumerSession })},
		{"group.consumer.heartbeat.interval.ms", "5000", "how often they send a heartbeat", msOf(func(c *Config) *time.Duration { return &c.Groups.ConsumerHeartbeat })},

		{"replica.lag.time.max.ms", "30000", "how long a follower may not be caught up before it leaves the in-sync set (R15)", msOf(func(c *Config) *time.Duration { return &c.LagTime })},
		{"broker.session.timeout.ms", "9000", "a broker without heartbeats is fenced after this", msOf(func(c *Config) *time.Duration { return &c.SessionTimeout })},
		{"broker.heartbeat.interval.ms", "2000", "how often a broker says that it lives", msOf(func(c *Config) *time.Duration { return &c.HeartbeatEach })},
		{"replica.fetch.wait.max.ms", "500", "how long a follower's fetch waits for something new", msOf(func(c *Config) *time.Duration { return &c.FetchWait })},
		{"replica.fetch.max.bytes", "1048576", "bytes of a partition in one follower's fetch", int32Of(func(c *Config) *int32 { return &c.FetchMaxBytes }, 1)},
		{"replica.fetch.response.max.bytes", "1048576", "bytes of one follower's fetch; less than Kafka's 10485760, because what fits into a processor's cache is copied for less", int32Of(func(c *Config) *int32 { return &c.FetchResponseMaxBytes }, 1)},
		{"fetch.max.bytes", "57671680", "most bytes that one consumer's fetch is given", int32Of(func(c *Config) *int32 { return &c.ConsumerMaxBytes }, 1024)},
		{"request.timeout.ms", "30000", "how long a request to the controller is tried for a client", msOf(func(c *Config) *time.Duration { return &c.RequestTimeout })},
		{"leader.imbalance.check.interval.seconds", "300", "how often leadership goes back to the preferred replicas; 0 = never", func(c *Config, v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 0 {
				return errors.New("expected seconds")
			}
			c.ImbalanceEach = time.Duration(n) * time.Second
			return nil
		}},
		{"controller.quorum.election.timeout.ms", "1000", "how long the control plane does without its leader before it elects another one", msOf(func(c *Config) *time.Duration { return &c.ElectionTimeout })},

		{"socket.request.max.bytes", "104857600", "largest request", intOf(func(c *Config) *int { return &c.MaxFrameBytes }, 1024)},
		{"connections.max.idle.ms", "600000", "a silent connection is closed after this", msOf(func(c *Config) *time.Duration { return &c.ConnectionIdle })},
		{"max.connections", "10000", "most connections at a time", intOf(func(c *Config) *int { return &c.MaxConnections }, 1)},

		{"ackproof.cluster.id", "ackproof", "name of the cluster; nodes of another name are refused", func(c *Config, v string) error {
			if v == "" {
				return errors.New("expected a name")
			}
			c.Cluster = v
			return nil
		}},
		{"ackproof.allow.single.copy", "", "accept topics with one replica (default: only if there is one broker)", func(c *Config, v string) error {
			if v == "" {
				c.AllowSingleCopy = len(c.Voters) < 2
				return nil
			}
			return boolOf(func(c *Config) *bool { return &c.AllowSingleCopy })(c, v)
		}},
		{"ackproof.raft.tick.ms", "50", "raft's clock", msOf(func(c *Config) *time.Duration { return &c.RaftTick })},
		{"ackproof.controlled.shutdown.max.ms", "5000", "how long a stopping broker waits for the others to take over", msOf(func(c *Config) *time.Duration { return &c.ShutdownBound })},
		{"ackproof.listener.fd", "0", "use this inherited listening socket instead of opening one; 0 = none", func(c *Config, v string) error {
			n, err := strconv.ParseUint(v, 10, 16)
			c.ListenFD = uintptr(n)
			return err
		}},
		{"ackproof.exit.with.parent", "false", "stop when standard input ends", boolOf(func(c *Config) *bool { return &c.ExitWithParent })},
		{"ackproof.plant", "", "planted bugs, ids or names separated by commas; needs a binary built with -tags failpoints", func(c *Config, v string) error {
			c.Plant = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		}},
		{"ackproof.log.level", "info", "debug, info, warn or error", func(c *Config, v string) error { return c.LogLevel.UnmarshalText([]byte(v)) }},
		{"ackproof.pprof.listen", "", "serve Go profiles there, on loopback only", loopback},
		{"ackproof.memory.limit.bytes", "0", "soft limit of the heap, 0 = none", int64Of(func(c *Config) *int64 { return &c.MemoryLimit }, 0)},
	}
}

// listener reads one "PLAINTEXT://host:port" or "host:port".
func listener(v string) (string, error) {
	if strings.Contains(v, ",") {
		return "", errors.New("expected one listener, it serves clients and brokers")
	}
	if scheme, rest, found := strings.Cut(v, "://"); found {
		if !strings.EqualFold(scheme, "PLAINTEXT") {
			return "", fmt.Errorf("security protocol %q, only PLAINTEXT is served", scheme)
		}
		v = rest
	}
	if err := address(v); err != nil {
		return "", err
	}
	return v, nil
}

func address(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return fmt.Errorf("expected host:port: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q, expected 0 to 65535, got %d", port, n)
	}
	return nil
}

func voters(c *Config, v string) error {
	if v == "" {
		return nil
	}
	c.Voters = map[int32]string{}
	for _, one := range strings.Split(v, ",") {
		id, at, found := strings.Cut(strings.TrimSpace(one), "@")
		n, err := strconv.ParseInt(id, 10, 32)
		if !found || err != nil || n < 0 {
			return fmt.Errorf("%q: expected id@host:port", one)
		}
		if err := address(at); err != nil {
			return fmt.Errorf("%q: %w", one, err)
		}
		if _, twice := c.Voters[int32(n)]; twice {
			return fmt.Errorf("id %d stands there twice", n)
		}
		c.Voters[int32(n)] = at
	}
	return nil
}

func loopback(c *Config, v string) error {
	if v == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(v)
	if err != nil {
		return fmt.Errorf("expected host:port: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("expected a loopback address")
	}
	c.Pprof = v
	return nil
}

func int16Of(field func(*Config) *int16) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 16)
		if err != nil || n < 1 {
			return errors.New("expected a number from 1 to 32767")
		}
		*field(c) = int16(n)
		return nil
	}
}

func int32Of(field func(*Config) *int32, least int32) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || int32(n) < least {
			return fmt.Errorf("expected a number from %d to 2147483647", least)
		}
		*field(c) = int32(n)
		return nil
	}
}

func int64Of(field func(*Config) *int64, least int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			return fmt.Errorf("expected a number of at least %d", least)
		}
		*field(c) = n
		return nil
	}
}

func intOf(field func(*Config) *int, least int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || int(n) < least {
			return fmt.Errorf("expected a number from %d to 2147483647", least)
		}
		*field(c) = int(n)
		return nil
	}
}

func boolOf(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		switch strings.ToLower(v) {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return errors.New("expected true or false")
		}
		return nil
	}
}

func msOf(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n > int64(1<<62)/int64(time.Millisecond) {
			return errors.New("expected milliseconds")
		}
		*field(c) = time.Duration(n) * time.Millisecond
		return nil
	}
}
