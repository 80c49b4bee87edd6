package wire

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// RaftKey is the api key of Raft, outside of the range that Kafka uses.
const RaftKey int16 = 10001

// raftAPI carries the control plane's raft messages between voters, one way: there is no response, and loss is allowed. Our own; Kafka's KRaft pulls
// with Fetch instead.
//
// v0: sender, cluster id, messages.
func raftAPI() API { return internal(of[Raft]("Raft", 0, 0)) }

// Raft is a run of raft messages of one voter to another. It is a kmsg.Request, without a response.
type Raft struct {
	Version  int16
	From     int32
	Cluster  string
	Messages [][]byte // raftpb.Message, encoded
}

// The methods of kmsg.Request.

func (*Raft) Key() int16                  { return RaftKey }
func (*Raft) MaxVersion() int16           { return 0 }
func (r *Raft) SetVersion(v int16)        { r.Version = v }
func (r *Raft) GetVersion() int16         { return r.Version }
func (*Raft) IsFlexible() bool            { return false }
func (*Raft) ResponseKind() kmsg.Response { return nil }

func (r *Raft) AppendTo(dst []byte) []byte {
	dst = kbin.AppendInt32(dst, r.From)
	dst = kbin.AppendString(dst, r.Cluster)
	dst = kbin.AppendArrayLen(dst, len(r.Messages))
	for _, m := range r.Messages {
		dst = kbin.AppendBytes(dst, m)
	}
	return dst
}

func (r *Raft) ReadFrom(src []byte) error {
	b := kbin.Reader{Src: src}
	r.From, r.Cluster = b.Int32(), b.String()
	r.Messages = nil
	for n := b.ArrayLen(); n > 0 && b.Ok(); n-- {
		r.Messages = append(r.Messages, b.Bytes())
	}
	return b.Complete()
}
