// Package log is the workload that drives a partitioned, replicated log and records what every client saw: several producers, readers and
// pollers per partition, each a short loop of blocking calls. It knows no fault and no checker. Start reading at Workload; produce.go,
// read.go and poll.go are the three kinds of clients.
//
// A value tells by itself where it comes from: run, producer, sequence number, partition, checksum. A producer's number is the number of
// the logical process that wrote it. A client that left an operation open retires its number and goes on under a new one, as a new
// producer, because what it left behind may still come to be after everything that it does from then on.
package log

import (
	"sync/atomic"
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
)

// Journal is where clients report their operations; histories.Recorder is one. Both methods may be called from several goroutines.
type Journal interface {
	// Invoke records the beginning of an operation, before its first byte is sent, and returns the operation's number.
	Invoke(ev histories.Event) (op uint64)
	// Complete records the end of operation ev.Op, after its answer: ev.Type is OK, Fail or Info.
	Complete(ev histories.Event) (seq uint64)
}

// Config is one load.
type Config struct {
	Run        uint64 // the run's id, in every value
	Topic      string
	TopicID    [16]byte
	Partitions int
	Clients    int // numbered 1…Clients; each has links of its own
	Acks       int16
	Idempotent bool
	Rate       int // records per second of all producers together; 0: as many as the system takes
	Breaths    Breaths
	Deletes    bool // Deleters are at work: only they say where the log begins
	// Stretch is how many records a re-reader goes through at a time; 0: 8000. Whoever reads a follower begins a quarter of it below the end.
	Stretch int64
	// ReadBytes is how much a reader asks for at a time; 0: 1 MiB.
	ReadBytes int32
	StartMS   int64 // wall clock at the start of the run
	// RequestTimeout of writes: longer than it takes the system to notice a lagging replica, so that requests live through it.
	RequestTimeout time.Duration
	// Deadline of a write with all its attempts: longer than a failover, so that most writes learn their fate.
	Deadline time.Duration
	// DialTimeout also bounds a read's answer.
	DialTimeout time.Duration
}

// Origin is what values of the partition say of where they belong.
func (c Config) Origin(partition int32) histories.Origin {
	return histories.Origin{Run: c.Run, Topic: histories.TopicHash(c.Topic, c.TopicID), Partition: partition}
}

// Workload is one run's clients and what they share.
type Workload struct {
	cfg      Config
	journal  Journal
	counters *Counters
	process  atomic.Int32
	session  atomic.Int32
	// ends is the highest end of each partition that any client was told, a hint where re-readers may start.
	ends []atomic.Int64
}

// New prepares a load.
func New(cfg Config, journal Journal, counters *Counters) *Workload {
	if cfg.Stretch <= 0 {
		cfg.Stretch = 8_000
	}
	if cfg.ReadBytes <= 0 {
		cfg.ReadBytes = 1 << 20
	}
	return &Workload{cfg: cfg, journal: journal, counters: counters, ends: make([]atomic.Int64, cfg.Partitions)}
}

// NewProcess takes a number that no logical process of the run has had; the first is 1.
func (w *Workload) NewProcess() int32 { return w.process.Add(1) }

// NewSession takes a number for an assignment of a reader; the first is 1.
func (w *Workload) NewSession() int32 { return w.session.Add(1) }

// Worker is one sequential client.
type Worker struct {
	Name   string // "writer p0 a"
	Client int    // whose links it uses
	// Run lives until the environment asks to stop and the operation under way has ended.
	Run func(env workloads.Env, links map[int32]string)
}

// Workers lists the clients of the load. Every partition has two producers, of which one stays with the broker that it was given; a tailing
// reader of either kind, a reader that begins anew again and again, one that reads followers, and two that ask for the ends of the log.
func (w *Workload) Workers() []Worker { return w.workers(kinds) }

// Writers lists the producers of Workers, and one client per partition that asks for the ends of the log: the load of a workload that has readers of its own.
func (w *Workload) Writers() []Worker {
	return w.workers([]kind{kinds[0], kinds[1], kinds[len(kinds)-1]})
}

// kind is one kind of client.
type kind struct {
	name   string
	sticky bool
	work   func(c *client)
}

// kinds are all kinds, in the order in which they are dealt to the clients' links.
var kinds = []kind{
	{"writer", false, (*client).produce},
	{"sticky writer", true, (*client).produce},
	{"tail reader", false, (*client).tail},
	{"sticky tail reader", true, (*client).tail},
	{"re-reader", false, (*client).reread},
	{"follower reader", false, (*client).followers},
	{"poller", false, (*client).poll},
	{"sticky poller", true, (*client).poll},
}

func (w *Workload) workers(of []kind) []Worker {
	var out []Worker
	for p := range w.cfg.Partitions {
		for _, k := range of {
			out = append(out, Worker{Name: k.name, Client: len(out)%w.cfg.Clients + 1, Run: func(env workloads.Env, links map[int32]string) {
				c := &client{Workload: w, env: env, partition: int32(p), links: links, process: w.NewProcess()}
				defer c.close()
				c.open(k.sticky)
				k.work(c)
			}})
		}
	}
	return out
}

// client is what the loops of one worker share.
type client struct {
	*Workload
	env       workloads.Env
	partition int32
	process   int32
	links     map[int32]string
	kafka     *kafka.Client
}

func (c *client) open(sticky bool) {
	c.kafka = kafka.New(c.env, kafka.Config{
		Topic: c.cfg.Topic, Links: c.links, Sticky: sticky, Acks: c.cfg.Acks,
		RequestTimeout: c.cfg.RequestTimeout, DialTimeout: c.cfg.DialTimeout, StartMS: c.cfg.StartMS,
	})
}

func (c *client) close() {
	if c.kafka != nil {
		c.kafka.Close()
	}
}

// breathe waits out a breath of the partition.
func (c *client) breathe(reader bool) {
	for !c.env.Stopped() {
		d := c.cfg.Breaths.rest(c.partition, reader, c.env.Now())
		if d == 0 {
			return
		}
		c.env.Sleep(d)
	}
}

// between draws a duration from [from, to).
func (c *client) between(from, to time.Duration) time.Duration {
	return from + time.Duration(c.env.Rand().Int64N(int64(to-from)))
}
