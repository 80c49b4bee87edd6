package node

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"ackproof/broker/core/group"
)

// Config is one node's configuration: the properties of LoadConfig, parsed. Names and defaults are Kafka's where Kafka has the property; see
// Properties.
type Config struct {
	NodeID     int32
	Cluster    string
	Listen     string           // host:port of the one listener
	ListenFD   uintptr          // an inherited listening socket instead, 0 for none
	Advertised string           // host:port that clients are told; "" = where the node listens
	Voters     map[int32]string // address of every broker as this node reaches it, itself included
	LogDir     string
	Rack       string

	Partitions        int32
	ReplicationFactor int16
	MinISR            int
	Unclean           bool
	AutoCreate        bool
	AllowSingleCopy   bool
	MaxMessageBytes   int32
	FlushEach         bool   // log.flush.interval.messages=1: a batch counts after its flush (S1)
	Store             string // log.store: segment or wal
	SegmentBytes      int64
	IndexBytes        int64 // log.index.interval.bytes, of store segment
	ProducerExpiry    time.Duration
	CheckpointEach    time.Duration

	Groups             group.Config
	OffsetsPartitions  int32
	OffsetsReplication int16

	LagTime               time.Duration
	SessionTimeout        time.Duration
	HeartbeatEach         time.Duration
	FetchWait             time.Duration
	FetchMaxBytes         int32 // replica.fetch.max.bytes, per partition
	FetchResponseMaxBytes int32
	ConsumerMaxBytes      int32 // fetch.max.bytes: the most that one consumer fetch is given
	RequestTimeout        time.Duration
	ImbalanceEach         time.Duration
	ShutdownBound         time.Duration

	RaftTick        time.Duration
	ElectionTimeout time.Duration

	MaxFrameBytes  int
	ConnectionIdle time.Duration
	MaxConnections int

	ExitWithParent bool     // stop when standard input ends
	Plant          []string // planted bugs, by id or name
	LogLevel       slog.Level
	Pprof          string // loopback host:port, "" for none
	MemoryLimit    int64  // bytes, soft limit of the Go heap; 0 = none

	given        map[string]string // what was set, by key
	poisonFrames bool              // tests only, see wire.FramePool
}

// LoadConfig reads a .properties file (path "" for none) and then applies the overrides, each "key=value". Unknown keys and senseless values are
// errors that say where they stand and what was expected.
func LoadConfig(path string, sets []string) (Config, error) {
	values, where := map[string]string{}, map[string]string{}
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return Config{}, fmt.Errorf("read the configuration: %w", err)
		}
		loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		file, err := loader.LoadBytes(text)
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", path, err)
		}
		for _, key := range file.Keys() {
			values[key], _ = file.Get(key)
			where[key] = fmt.Sprintf("%s:%d", path, lineOf(string(text), key))
		}
	}
	for _, s := range sets {
		key, value, found := strings.Cut(s, "=")
		if key = strings.TrimSpace(key); !found || key == "" {
			return Config{}, fmt.Errorf("override %q: expected key=value", s)
		}
		values[key], where[key] = strings.TrimSpace(value), "override "+key
	}
	return parse(values, where)
}

func parse(values, where map[string]string) (Config, error) {
	var c Config
	known := Properties()
	var unknown []string
	for key := range values {
		if !slices.ContainsFunc(known, func(p Property) bool { return p.Name == key }) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	var errs []error
	for _, key := range unknown {
		errs = append(errs, fmt.Errorf("%s: unknown key %q, nearest known: %s", where[key], key, strings.Join(nearest(key, known), ", ")))
	}
	for _, p := range known {
		value, given := values[p.Name]
		place := where[p.Name]
		if !given {
			value, place = p.Default, "default"
		}
		if !given && value == "" && (p.Name == "node.id" || p.Name == "log.dirs") {
			errs = append(errs, fmt.Errorf("%s is missing: %s", p.Name, p.Doc))
			continue
		}
		if err := p.set(&c, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s = %q: %w", place, p.Name, value, err))
		}
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	c.given = values
	return c, c.check()
}

// check looks at values that must fit each other.
func (c *Config) check() error {
	if len(c.Voters) == 0 {
		c.Voters = map[int32]string{c.NodeID: c.Listen}
	}
	_, isVoter := c.Voters[c.NodeID]
	switch {
	case !isVoter:
		return fmt.Errorf("node.id = %d is not among controller.quorum.voters, and every broker is a voter", c.NodeID)
	case c.RaftTick <= 0 || c.ElectionTimeout < 3*c.RaftTick:
		return fmt.Errorf("controller.quorum.election.timeout.ms = %d must be at least three times ackproof.raft.tick.ms = %d", c.ElectionTimeout.Milliseconds(), c.RaftTick.Milliseconds())
	case c.HeartbeatEach <= 0 || c.SessionTimeout <= c.HeartbeatEach:
		return fmt.Errorf("broker.session.timeout.ms = %d must be above broker.heartbeat.interval.ms = %d", c.SessionTimeout.Milliseconds(), c.HeartbeatEach.Milliseconds())
	case c.LagTime <= c.FetchWait:
		return fmt.Errorf("replica.lag.time.max.ms = %d must be above replica.fetch.wait.max.ms = %d", c.LagTime.Milliseconds(), c.FetchWait.Milliseconds())
	case c.Groups.MinSession > c.Groups.MaxSession:
		return fmt.Errorf("group.min.session.timeout.ms = %d must not be above group.max.session.timeout.ms = %d", c.Groups.MinSession.Milliseconds(), c.Groups.MaxSession.Milliseconds())
	case c.Groups.MaxMetadata > math.MaxInt16:
		return fmt.Errorf("offset.metadata.max.bytes = %d must not be above %d", c.Groups.MaxMetadata, math.MaxInt16)
	case c.Groups.ConsumerSession <= c.Groups.ConsumerHeartbeat:
		return fmt.Errorf("group.consumer.session.timeout.ms = %d must be above group.consumer.heartbeat.interval.ms = %d", c.Groups.ConsumerSession.Milliseconds(), c.Groups.ConsumerHeartbeat.Milliseconds())
	}
	dir, err := filepath.Abs(c.LogDir)
	if err != nil {
		return fmt.Errorf("log.dirs = %q: %w", c.LogDir, err)
	}
	c.LogDir = dir
	return nil
}

// lineOf finds the last line that sets the key: that is the one that counts.
func lineOf(text, key string) int {
	found := 0
	for i, line := range strings.Split(text, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), key)
		if ok && (rest == "" || strings.ContainsAny(rest[:1], "=: \t\r")) {
			found = i + 1
		}
	}
	return found
}

// nearest gives the known keys that look most like key.
func nearest(key string, known []Property) []string {
	type scored struct {
		name string
		cost int
	}
	all := make([]scored, 0, len(known))
	for _, p := range known {
		all = append(all, scored{p.Name, distance(key, p.Name)})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return a.cost - b.cost })
	return []string{all[0].name, all[1].name, all[2].name}
}

// distance is Levenshtein's: how many letters must be changed, added or taken away.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = 1 + min(corner, row[j], row[j+1])
			}
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
