// Package workloads is the small world in which clients live: dial, round trip, sleep, clock and randomness. Clients are plain blocking code over
// an Env, so that they run unchanged on real sockets (package sockets) and as coroutines of a simulator; they start no goroutine and read no clock
// of their own. The package knows no system, no history and no checker. Start reading at Env.
package workloads

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrNotSent is wrapped by errors of operations of which no byte can have reached the broker: they provably had no effect.
var ErrNotSent = errors.New("nothing was sent")

// Env is what one client has of the world. It belongs to that client alone.
type Env interface {
	// Dial connects to a broker. Errors wrap ErrNotSent.
	Dial(addr string, timeout time.Duration) (Conn, error)
	// Now is the monotonic time since the start of the run.
	Now() time.Duration
	// Sleep returns after d, or sooner when the run asks its clients to stop.
	Sleep(d time.Duration)
	// Rand is the client's own randomness, drawn from the seed of the run.
	Rand() *rand.Rand
	// Stopped tells that no new operation may be started; operations under way are carried to their end.
	Stopped() bool
}

// Conn is one connection to a broker; one request at a time.
type Conn interface {
	// RoundTrip sends the request and waits for its response. After any error the connection is of no more use: a late answer would be
	// taken for that of the next request. The response of a Produce request with acks=0, which brokers do not answer, is nil.
	RoundTrip(req kmsg.Request, timeout time.Duration) (kmsg.Response, error)
	Close()
}

// Pipeline is a Conn that can have several requests under way. Answers come in the order of the requests.
type Pipeline interface {
	Conn
	// Send sends a request and does not wait. An error leaves it open what arrived.
	Send(req kmsg.Request) error
	// Receive waits for the next answer. After any error the connection is of no more use.
	Receive(timeout time.Duration) (kmsg.Response, error)
}
