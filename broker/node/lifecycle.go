package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// registration is this broker's standing with the controller.
type registration struct {
	incarnation [16]byte
	epoch       int64 // broker epoch, −1 before the first answer
}

// fencedBeat is how often a broker that is not let in yet asks again: nothing else keeps it from serving.
const fencedBeat = 25 * time.Millisecond

// live registers this broker, waits until its image holds the registration, applies it, asks to be unfenced and says regularly that it lives, until
// ctx ends. previous is the broker epoch before a clean shutdown, −1 if the last one was not clean: the broker then keeps no seat in any ELR
// (KIP-966).
func (n *Node) live(ctx context.Context, previous int64) error {
	for {
		reg, err := n.register(ctx, previous)
		if err != nil {
			return err
		}
		n.registered.Store(reg)
		n.viewNews.broadcast()
		if err := n.heartbeats(ctx, reg); err != nil {
			return err
		}
		// The registration is no longer ours, or no longer true: begin anew as a broker that was not shut down cleanly (R19).
		previous = -1
	}
}

// register makes a new registration. Every start is a new incarnation, which the controller fences at once (R19).
func (n *Node) register(ctx context.Context, previous int64) (*registration, error) {
	reg := &registration{epoch: -1}
	if _, err := rand.Read(reg.incarnation[:]); err != nil {
		return nil, fmt.Errorf("draw an incarnation id: %w", err)
	}
	q := kmsg.NewPtrBrokerRegistrationRequest()
	q.Version, q.BrokerID, q.ClusterID, q.IncarnationID, q.PreviousBrokerEpoch = 3, n.cfg.NodeID, n.cfg.Cluster, reg.incarnation, previous
	host, port, err := net.SplitHostPort(n.advertised)
	if err != nil {
		return nil, fmt.Errorf("advertised address %q: %w", n.advertised, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("advertised address %q: %w", n.advertised, err)
	}
	l := kmsg.NewBrokerRegistrationRequestListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", host, uint16(number)
	q.Listeners = append(q.Listeners, l)
	if n.cfg.Rack != "" {
		q.Rack = &n.cfg.Rack
	}
	// Images of before the registration are not to be applied, whatever the answer says: it may be lost.
	n.incarnation.Store(&reg.incarnation)
	var wait backoff
	for {
		clone := *q // the controller owns what it is given
		resp, err := n.askController(ctx, &clone)
		if err != nil {
			return nil, err
		}
		r := resp.(*kmsg.BrokerRegistrationResponse)
		switch code := kerr.ErrorForCode(r.ErrorCode); {
		case code == nil:
			reg.epoch = r.BrokerEpoch
			n.log.Info("registered", "broker_epoch", reg.epoch, "previous", previous)
			return reg, nil
		case errors.Is(code, kerr.InconsistentClusterID):
			return nil, fmt.Errorf("register with the controller: this broker's ackproof.cluster.id is %q, the cluster's is another one: %w", n.cfg.Cluster, code)
		default:
			n.log.Debug("registration refused", "error", code)
		}
		if !sleep(ctx, wait.pause()) {
			return nil, ctx.Err()
		}
	}
}

// heartbeats keeps the registration alive until ctx ends (an error) or a new one is needed (nil).
func (n *Node) heartbeats(ctx context.Context, reg *registration) error {
	pause := time.Duration(0)
	fenced := true
	for {
		select {
		case <-time.After(pause):
		case <-n.registerAgain:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		if pause = fencedBeat; n.appliedEpoch.Load() < reg.epoch {
			// Not let in before the logs are open and the image has the registration. The session has begun all the same; a broker that needs longer
			// than the session to open its logs is fenced anyhow.
			fresh := n.viewNews.wait()
			if n.appliedEpoch.Load() < reg.epoch {
				select {
				case <-fresh:
				case <-time.After(n.cfg.HeartbeatEach):
				case <-ctx.Done():
					return ctx.Err()
				}
				pause = 0
				continue
			}
		}
		resp, err := n.beat(ctx, reg, false)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			n.log.Debug("heartbeat failed", "error", err)
		case resp.ErrorCode == kerr.StaleBrokerEpoch.Code:
			n.log.Warn("the controller knows another registration of this broker id; registering anew", "broker_epoch", reg.epoch)
			return nil
		case resp.ErrorCode != 0:
			n.log.Warn("heartbeat refused", "error", kerr.ErrorForCode(resp.ErrorCode))
		default:
			if resp.IsFenced != fenced {
				fenced = resp.IsFenced
				n.log.Info("fenced", "is", fenced)
			}
			if !fenced {
				pause = n.cfg.HeartbeatEach
			}
		}
	}
}

// beat sends one heartbeat, again and again within the time of one.
func (n *Node) beat(ctx context.Context, reg *registration, stop bool) (*kmsg.BrokerHeartbeatResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.HeartbeatEach+n.cfg.SessionTimeout/4)
	defer cancel()
	q := kmsg.NewPtrBrokerHeartbeatRequest()
	q.Version, q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset, q.WantShutdown = 1, n.cfg.NodeID, reg.epoch, int64(n.view.Load().Index), stop
	resp, err := n.askController(ctx, q)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.BrokerHeartbeatResponse), nil
}

// leave is the controlled shutdown: ask the controller to move the leaderships away until it says that all are gone, or the time is over.
func (n *Node) leave(ctx context.Context) {
	reg := n.registered.Load()
	if reg == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.ShutdownBound)
	defer cancel()
	alone := time.AfterFunc(2*n.cfg.ElectionTimeout, func() {
		if n.control.leader() < 0 {
			cancel() // nobody is left to take over, as when all brokers stop at once
		}
	})
	defer alone.Stop()
	for {
		resp, err := n.beat(ctx, reg, true)
		switch {
		case err != nil:
			n.log.Warn("controlled shutdown was not confirmed in time", "error", err)
			return
		case resp.ShouldShutdown:
			n.log.Info("controlled shutdown: leaderships have moved")
			return
		case resp.ErrorCode != 0:
			n.log.Warn("controlled shutdown refused", "error", kerr.ErrorForCode(resp.ErrorCode))
			return
		}
		if !sleep(ctx, fencedBeat) {
			n.log.Warn("controlled shutdown: leaderships did not move in time")
			return
		}
	}
}
