package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/core/controller"
)

// raftStore keeps what the controller persists.
type raftStore interface {
	Save(controller.Persist) error
	Close() error
}

// control carries the controller: one goroutine owns it, feeds it and carries out its effects in order, so that nothing is sent before it is durable.
type control struct {
	log     *slog.Logger
	core    *controller.Controller
	store   raftStore
	every   time.Duration
	in      chan controller.Input
	send    func(to int32, m *raftpb.Message) // does not block; loss is allowed
	publish func(*controller.Image)           // does not block

	eager   bool // stand for election at once
	lead    atomic.Int32
	changed news // the leader
	first   []controller.Effect
}

const (
	eagerEach = 15 * time.Millisecond
	eagerFor  = 2 * time.Second
)

// queueLength of the controller's inputs. Raft's messages are dropped when it is full; requests wait.
const queueLength = 512

func newControl(cfg controller.Config, stored controller.Stored, store raftStore, log *slog.Logger) (*control, error) {
	core, first, err := controller.New(cfg, stored, time.Now())
	if err != nil {
		return nil, err
	}
	c := &control{log: log, core: core, store: store, every: cfg.TickEvery, in: make(chan controller.Input, queueLength), first: first, eager: cfg.Self == cfg.Voters[0]}
	c.lead.Store(-1)
	return c, nil
}

// leader is the broker that leads the control plane, −1 if unknown.
func (c *control) leader() int32 { return c.lead.Load() }

// run works until ctx ends. An error is the end of this broker: without its memory of votes and entries a voter must not go on.
func (c *control) run(ctx context.Context) error {
	if err := c.carryOut(c.first); err != nil {
		return err
	}
	c.first = nil
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	// Raft waits a random time before it elects. So that a new cluster is up at once, the voter with the lowest id does not.
	eager := time.NewTicker(eagerEach)
	defer eager.Stop()
	if !c.eager {
		eager.Stop()
	}
	started := time.Now()
	for {
		var in controller.Input
		select {
		case <-tick.C:
			in = controller.Tick{}
		case <-eager.C:
			if c.leader() >= 0 || time.Since(started) > eagerFor {
				eager.Stop()
				continue
			}
			in = controller.Campaign{}
		case in = <-c.in:
		case <-ctx.Done():
			return nil
		}
		if err := c.carryOut(c.core.Step(time.Now(), in)); err != nil {
			return err
		}
	}
}

func (c *control) carryOut(effects []controller.Effect) error {
	for _, e := range effects {
		switch e := e.(type) {
		case controller.Persist:
			if err := c.store.Save(e); err != nil {
				return fmt.Errorf("the control plane's log: %w", err)
			}
		case controller.Send:
			c.send(e.To, e.Message)
		case controller.Reply:
			e.Token.(*controlCall).answer <- e.Response
		case controller.Publish:
			c.publish(e.Image)
		case controller.LeaderChanged:
			c.lead.Store(e.Leader)
			c.changed.broadcast()
			c.log.Info("control plane leader", "leader", e.Leader)
		case controller.Failed:
			return e.Err
		}
	}
	return nil
}

// offer hands in an input that may be lost.
func (c *control) offer(in controller.Input) {
	select {
	case c.in <- in:
	default:
	}
}

// controlCall is a request to the local controller; it is the token of its input.
type controlCall struct{ answer chan kmsg.Response }

// errNotController: this broker does not lead the control plane.
var errNotController = errors.New("this broker does not lead the control plane")

// call asks the local controller. The request belongs to the controller from here on.
func (c *control) call(ctx context.Context, q kmsg.Request) (kmsg.Response, error) {
	call := &controlCall{answer: make(chan kmsg.Response, 1)}
	select {
	case c.in <- controller.Request{Token: call, Request: q}:
	case <-ctx.Done():
		return nil, errNotSent{context.Cause(ctx)}
	}
	select {
	case resp := <-call.answer:
		if resp == nil {
			return nil, fmt.Errorf("api key %d is not a request to the controller", q.Key())
		}
		return resp, nil
	case <-ctx.Done():
		c.offer(controller.CancelRequest{Token: call})
		return nil, context.Cause(ctx)
	}
}

// attemptTime bounds one attempt to reach the controller. A cut network is silence, and silence must not use up the whole time of a request.
const attemptTime = 2 * time.Second

// askOnce sends a request to whoever leads the control plane, once. errNotSent tells that it has certainly had no effect.
func (n *Node) askOnce(ctx context.Context, q kmsg.Request) (kmsg.Response, error) {
	c := n.control
	changed := c.changed.wait()
	to := c.leader()
	if to < 0 {
		return nil, errNotSent{errors.New("the control plane has no leader")}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if to == n.cfg.NodeID {
		return c.call(ctx, q)
	}
	// An answer from a leader that has been replaced is not worth waiting for.
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		select {
		case <-changed:
			giveUp(fmt.Errorf("broker %d no longer leads the control plane", to))
		case <-ctx.Done():
		}
	}()
	return n.peers.do(ctx, to, q)
}

// askController sends a request to the controller, again and again until it is answered by one that leads. It is for requests that may be repeated:
// their effect is the same, or the answer to the repeat says what the first one did. Clients' requests go through forward.
func (n *Node) askController(ctx context.Context, q kmsg.Request) (kmsg.Response, error) {
	var wait backoff
	for {
		changed := n.control.changed.wait()
		resp, err := n.askOnce(ctx, q)
		if err == nil && !refusedByRole(resp) {
			return resp, nil
		}
		if err == nil {
			err = errNotController
		}
		t := time.NewTimer(wait.pause())
		select {
		case <-t.C:
		case <-changed:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w; last attempt: %w", context.Cause(ctx), err)
		}
	}
}

// refusedByRole tells whether an answer says only that the broker asked does not lead.
func refusedByRole(resp kmsg.Response) bool {
	code := int16(0)
	switch r := resp.(type) {
	case *kmsg.BrokerRegistrationResponse:
		code = r.ErrorCode
	case *kmsg.BrokerHeartbeatResponse:
		code = r.ErrorCode
	case *kmsg.AlterPartitionResponse:
		code = r.ErrorCode
	case *kmsg.AllocateProducerIDsResponse:
		code = r.ErrorCode
	case *kmsg.EnvelopeResponse:
		code = r.ErrorCode
	case *kmsg.ElectLeadersResponse:
		code = r.ErrorCode
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			code = max(code, onlyNotController(t.ErrorCode))
		}
	case *kmsg.DeleteTopicsResponse:
		for _, t := range r.Topics {
			code = max(code, onlyNotController(t.ErrorCode))
		}
	case *kmsg.CreatePartitionsResponse:
		for _, t := range r.Topics {
			code = max(code, onlyNotController(t.ErrorCode))
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, t := range r.Resources {
			code = max(code, onlyNotController(t.ErrorCode))
		}
	}
	return code == kerr.NotController.Code
}

func onlyNotController(code int16) int16 {
	if code == kerr.NotController.Code {
		return code
	}
	return 0
}
