package node

import (
	"context"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"ackproof/broker/core/controller"
	"ackproof/broker/wire"
)

const (
	raftQueue    = 256
	raftBatch    = 64
	raftSendTime = time.Second // for one write; a connection that takes no more is given up
	raftDialTime = 500 * time.Millisecond
)

// raftLink sends raft's messages to one other voter, over a connection of its own. Messages that cannot be sent are lost; raft repeats what matters.
type raftLink struct {
	to      int32
	self    int32
	cluster string
	dial    func(context.Context) (*wire.Client, error)
	lost    func(controller.Input)
	log     *slog.Logger
	queue   chan *raftpb.Message
}

func (l *raftLink) send(m *raftpb.Message) {
	select {
	case l.queue <- m:
	default: // full: the other side takes nothing
	}
}

func (l *raftLink) run(ctx context.Context) {
	var conn *wire.Client
	var wait backoff
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for {
		batch := &wire.Raft{From: l.self, Cluster: l.cluster}
		select {
		case m := <-l.queue:
			batch.Messages = l.encode(batch.Messages, m)
		case <-ctx.Done():
			return
		}
	more:
		for len(batch.Messages) < raftBatch {
			select {
			case m := <-l.queue:
				batch.Messages = l.encode(batch.Messages, m)
			default:
				break more
			}
		}
		if conn == nil {
			c, err := l.connect(ctx)
			if err != nil {
				l.log.Debug("raft: no connection", "to", l.to, "error", err)
				l.lost(controller.Unreachable{Node: l.to})
				if !sleep(ctx, wait.pause()) {
					return
				}
				continue
			}
			wait.reset()
			conn = c
		}
		if err := l.write(ctx, conn, batch); err != nil {
			l.log.Debug("raft: connection lost", "to", l.to, "error", err)
			l.lost(controller.Unreachable{Node: l.to})
			conn.Close()
			conn = nil
		}
	}
}

func (l *raftLink) encode(to [][]byte, m *raftpb.Message) [][]byte {
	raw, err := proto.Marshal(m)
	if err != nil {
		l.log.Error("raft: message does not encode", "to", l.to, "error", err)
		return to
	}
	return append(to, raw)
}

func (l *raftLink) connect(ctx context.Context) (*wire.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, raftDialTime)
	defer cancel()
	return l.dial(ctx)
}

func (l *raftLink) write(ctx context.Context, conn *wire.Client, batch *wire.Raft) error {
	if len(batch.Messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, raftSendTime)
	defer cancel()
	return conn.Send(ctx, batch)
}

// handleRaft takes raft's messages of another voter. Those of another cluster, or of nobody known, are dropped: without an answer there is nothing to
// say to them.
func (n *Node) handleRaft(q *wire.Raft) {
	_, known := n.cfg.Voters[q.From]
	if q.Cluster != n.cfg.Cluster || !known || q.From == n.cfg.NodeID {
		n.log.Warn("raft: messages of a stranger dropped", "from", q.From, "cluster", q.Cluster)
		return
	}
	for _, raw := range q.Messages {
		m := &raftpb.Message{}
		if err := proto.Unmarshal(raw, m); err != nil {
			n.log.Warn("raft: message does not decode", "from", q.From, "error", err)
			return
		}
		n.control.offer(controller.Message{Message: m})
	}
}
