package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/wire"
)

const (
	dialTimeout  = time.Second
	idlePerPeer  = 2 // connections that are kept for the next request
	retryAtFirst = 10 * time.Millisecond
	retryAtMost  = 100 * time.Millisecond // faults heal suddenly
)

// peers holds connections to the other brokers for requests to the controller, one request at a time on each. Addresses are this node's own view
// (controller.quorum.voters).
type peers struct {
	self     string // client id
	address  map[int32]string
	maxFrame int

	mu   sync.Mutex
	idle map[int32][]*wire.Client
	gone bool
}

// errNotSent: the request has certainly not reached the other side.
type errNotSent struct{ error }

func (e errNotSent) Unwrap() error { return e.error }

// do sends a request and waits for its answer.
func (p *peers) do(ctx context.Context, to int32, q kmsg.Request) (kmsg.Response, error) {
	c := p.take(to)
	if c == nil {
		var err error
		if c, err = p.dial(ctx, to); err != nil {
			return nil, errNotSent{err}
		}
	}
	resp, err := c.Do(ctx, q)
	if err != nil {
		c.Close()
		return nil, err
	}
	p.give(to, c)
	return resp, nil
}

func (p *peers) dial(ctx context.Context, to int32) (*wire.Client, error) {
	at, known := p.address[to]
	if !known {
		return nil, fmt.Errorf("broker %d is not among controller.quorum.voters", to)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := wire.Dial(ctx, at, p.self, p.maxFrame)
	if err != nil {
		return nil, fmt.Errorf("connect to broker %d: %w", to, err)
	}
	return c, nil
}

func (p *peers) take(to int32) *wire.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[to]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	p.idle[to] = list[:len(list)-1]
	return c
}

func (p *peers) give(to int32, c *wire.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || len(p.idle[to]) >= idlePerPeer {
		c.Close()
		return
	}
	if p.idle == nil {
		p.idle = map[int32][]*wire.Client{}
	}
	p.idle[to] = append(p.idle[to], c)
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, list := range p.idle {
		for _, c := range list {
			c.Close()
		}
	}
	p.idle = nil
}
