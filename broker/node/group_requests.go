package node

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/wire"
)

// groupRequest is a request about groups under way: it has been given to one coordinator, or in parts to several.
type groupRequest struct {
	whole kmsg.Request
	parts []groupPart
}

// groupPart is what one coordinator was asked, and its answer if that is known without it.
type groupPart struct {
	call   *groupCall
	answer kmsg.Response
}

// handleGroup gives a request to the coordinators that it concerns, in order (R7).
func (n *Node) handleGroup(ctx context.Context, q wire.Request) wire.Pending {
	p := &groupRequest{whole: q.Body}
	began := time.Now()
	if _, all := q.Body.(*kmsg.ListGroupsRequest); all {
		n.groups.each(func(c *coordinator) { p.parts = append(p.parts, c.ask(q, q.Body)) })
		return p
	}
	for _, one := range group.Split(q.Body) {
		p.parts = append(p.parts, n.give(ctx, q, one, began))
	}
	return p
}

// give asks the coordinator of a group.
func (n *Node) give(ctx context.Context, q wire.Request, one group.OfGroup, began time.Time) groupPart {
	if code := one.Nameless(); code != 0 {
		return groupPart{answer: group.Refusal(one.Body, code)}
	}
	c := n.groups.soon(ctx, one.ID, began)
	if c == nil {
		return groupPart{answer: group.Refusal(one.Body, kerr.NotCoordinator.Code)}
	}
	return c.ask(q, one.Body)
}

// ask gives the coordinator a request.
func (c *coordinator) ask(q wire.Request, body kmsg.Request) groupPart {
	call := &groupCall{answer: make(chan kmsg.Response, 1)}
	if !c.put(group.Request{Token: call, Body: body, ClientID: q.ClientID, Host: q.Host}) {
		return groupPart{answer: group.Refusal(body, kerr.NotCoordinator.Code)}
	}
	return groupPart{call: call}
}

// Wait implements wire.Pending.
func (p *groupRequest) Wait(ctx context.Context) (any, error) {
	var whole kmsg.Response
	for _, part := range p.parts {
		if part.call != nil {
			select {
			case part.answer = <-part.call.answer:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if whole == nil {
			whole = part.answer
		} else {
			group.Merge(whole, part.answer)
		}
	}
	if whole == nil {
		whole = p.whole.ResponseKind() // of no group, or by a broker that leads none
	}
	return whole, nil
}
