// Package sockets is the real world of clients: TCP, the machine's monotonic clock, and one random stream per client. Start reading at Env.
package sockets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"ackproof/workloads"
)

// Env carries one client; it implements workloads.Env.
type Env struct {
	hard  context.Context // when done, connections break at once
	stop  <-chan struct{}
	start time.Time
	rand  *rand.Rand
	dial  net.Dialer
}

// New makes the world of one client. Closing stop asks it to come to an end; the end of hard breaks its connections. Seed and client give
// its random stream.
func New(hard context.Context, stop <-chan struct{}, start time.Time, seed int64, client uint64) *Env {
	return &Env{hard: hard, stop: stop, start: start, rand: rand.New(rand.NewPCG(uint64(seed), client))}
}

// Through makes the client dial by d, which says where it dials from. Call it before the first dial. It returns the client itself.
func (e *Env) Through(d net.Dialer) *Env {
	e.dial = d
	return e
}

// Now is the time since the start of the run.
func (e *Env) Now() time.Duration { return time.Since(e.start) }

// Rand is the client's random stream.
func (e *Env) Rand() *rand.Rand { return e.rand }

// Stopped tells whether the client was asked to stop.
func (e *Env) Stopped() bool {
	select {
	case <-e.stop:
		return true
	case <-e.hard.Done():
		return true
	default:
		return false
	}
}

// Sleep waits for d or until the client is asked to stop.
func (e *Env) Sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.stop:
	case <-e.hard.Done():
	}
}

// Dial connects to a broker.
func (e *Env) Dial(addr string, timeout time.Duration) (workloads.Conn, error) {
	d := e.dial
	d.Timeout = timeout
	nc, err := d.DialContext(e.hard, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w: %w", addr, workloads.ErrNotSent, err)
	}
	c := &conn{nc: nc, addr: addr}
	c.release = context.AfterFunc(e.hard, func() { nc.Close() })
	return c, nil
}
