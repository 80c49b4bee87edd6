// Package program is the frame of a client program: a small command line round one Kafka client library, the same for all of them, so that one conductor
// can put any client through any scenario. A program does what it is told and reports what it saw, one JSON object a line; it judges nothing.
//
//	program produce|consume|seek|admin -bootstrap LIST -topic T [flags of Job]
//
// Programs in other languages (see ../clients) keep to the same: the flags of Job, the events of Event, and a line "stop" on standard input, or its end, to
// make a consumer commit, leave and end. Exit code 0 means that the job was done; otherwise the last line on standard error says why not.
package program

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Job is what a program is told to do.
type Job struct {
	Bootstrap []string
	Topic     string
	// Produce: values From to From+Count-1, each by Value, with the key Key, after each other Pace apart.
	From, Count int
	Pace        time.Duration
	Compression string // none, gzip, snappy, lz4, zstd
	Idempotent  bool
	// Consume: as a member of Group until Count records were taken (0: until told to stop), then commit and leave.
	Group    string
	Protocol string // classic, or consumer: that of KIP-848
	Assignor string // of the classic protocol: range, roundrobin, sticky, cooperative-sticky
	// Seek: from the first record at this time on, in every partition, without a group, until Count records were taken.
	Time time.Time
}

// Value is the value of record i: it names itself, and is long and repetitive enough that every codec makes it shorter.
func Value(i int) string { return fmt.Sprintf("v-%d-", i) + strings.Repeat("abcdefghij", 10) }

// Key is the key of record i.
func Key(i int) string { return fmt.Sprintf("k-%d", i) }

// Event is one thing that a program saw.
type Event struct {
	// Event is acked (a record, with its partition and offset), record (one was taken), assigned (all partitions that this member now holds), committed,
	// offset (what a seek found for a partition), admin (a call was answered as it should), or client (the library's version).
	Event      string  `json:"event"`
	Partition  int32   `json:"partition,omitempty"`
	Offset     int64   `json:"offset,omitempty"`
	Value      string  `json:"value,omitempty"`
	Partitions []int32 `json:"partitions,omitempty"`
}

// Client is a library in the frame. Each function does a job until it is done or ctx ends, which is how a consumer is told to stop: that is no error.
type Client struct {
	Version string // of the library
	Produce func(ctx context.Context, job Job) error
	Consume func(ctx context.Context, job Job) error
	Seek    func(ctx context.Context, job Job) error
	Admin   func(ctx context.Context, job Job) error
}

// Main runs the job of the command line and ends the process.
func Main(c Client) {
	if err := run(c, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(c Client, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected produce, consume, seek or admin")
	}
	jobs := map[string]func(context.Context, Job) error{"produce": c.Produce, "consume": c.Consume, "seek": c.Seek, "admin": c.Admin}
	do := jobs[args[0]]
	if do == nil {
		return fmt.Errorf("%q is nothing that this client can do", args[0])
	}
	var job Job
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	bootstrap := flags.String("bootstrap", "", "host:port,…")
	flags.StringVar(&job.Topic, "topic", "", "")
	flags.IntVar(&job.From, "from", 0, "")
	flags.IntVar(&job.Count, "count", 0, "")
	flags.DurationVar(&job.Pace, "pace", 0, "")
	flags.StringVar(&job.Compression, "compression", "none", "")
	flags.BoolVar(&job.Idempotent, "idempotent", false, "")
	flags.StringVar(&job.Group, "group", "", "")
	flags.StringVar(&job.Protocol, "protocol", "classic", "")
	flags.StringVar(&job.Assignor, "assignor", "range", "")
	at := flags.Int64("time", 0, "milliseconds since 1970")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	job.Bootstrap, job.Time = strings.Split(*bootstrap, ","), time.UnixMilli(*at)
	Emit(Event{Event: "client", Value: c.Version})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // "stop", or the end of the conductor
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() && lines.Text() != "stop" {
		}
		cancel()
	}()
	return do(ctx, job)
}

var output struct {
	sync.Mutex
	*json.Encoder
}

// Emit reports an event.
func Emit(e Event) {
	output.Lock()
	defer output.Unlock()
	if output.Encoder == nil {
		output.Encoder = json.NewEncoder(os.Stdout)
	}
	if err := output.Encode(e); err != nil { // nobody listens any more
		os.Exit(1)
	}
}

// Patiently tries again, for at most two minutes, what may fail while the cluster gets over the end of a broker. On a machine with nothing else to do that is a matter of seconds.
func Patiently(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
