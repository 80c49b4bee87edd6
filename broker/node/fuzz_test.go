package node

import (
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/wire"
)

var frames = flag.Int("frames", 20_000, "garbage requests that TestGarbage sends")

// TestGarbage sends garbage to a broker that holds data: random bodies for every API and version, and valid requests with a few bytes changed. The
// broker must answer or close, must not allocate out of proportion, and what was stored must stay as it was.
func TestGarbage(t *testing.T) {
	c := newCluster(t, 1, "auto.create.topics.enable=false", "request.timeout.ms=200", "socket.request.max.bytes=1000000")
	c.create("t", 1, 1)
	c.produce(c.client(), "t", 0, "v", 100)
	id := c.nodes[0].view.Load().Topics["t"].ID
	before := fetched(c.ask(0, fetchRequest(12, "t", id, 0))).RecordBatches

	seed := [32]byte{7}
	random := rand.NewChaCha8(seed)
	r := rand.New(random)
	apis := wire.APIs()
	valid := validFrames(id)
	var sent int
	var then runtime.MemStats
	runtime.ReadMemStats(&then)
	conn := &garbageConn{t: t, address: c.addrs[0]}
	defer conn.close()
	for i := range *frames {
		var frame []byte
		if i%3 == 0 {
			which := 2 + r.IntN(len(valid)-2)
			if r.IntN(20) == 0 {
				which = r.IntN(2) // Produce: for a topic that is not known (yet) it waits a moment, so it gets fewer frames
			}
			frame = bytes.Clone(valid[which])
			for range 1 + r.IntN(4) {
				frame[4+r.IntN(len(frame)-4)] = byte(r.Uint32())
			}
		} else {
			a := apis[r.IntN(len(apis))]
			if q := a.New(); (a.Internal || forwarded(q)) && r.IntN(30) > 0 {
				a = apis[r.IntN(6)] // what ends in the control plane's log costs a flush, so it gets fewer frames
			}
			body := make([]byte, r.IntN(300))
			random.Read(body)
			if r.IntN(2) == 0 {
				for j := range body { // small numbers get further: they are lengths that fit
					body[j] &= 3
				}
			}
			frame = binary.BigEndian.AppendUint32(nil, uint32(len(body)+10))
			frame = binary.BigEndian.AppendUint16(frame, uint16(a.Key))
			frame = binary.BigEndian.AppendUint16(frame, uint16(a.Min+int16(r.IntN(int(a.Max-a.Min)+1))))
			frame = append(frame, 0, 0, 0, 1, 0xff, 0xff)
			frame = append(frame, body...)
		}
		sent += len(frame)
		conn.send(frame)
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	// Each frame costs its connection too: two goroutines, buffers, log lines. 64 KiB a frame is far above that and far below what one trusted length
	// prefix could ask for.
	if got, most := (now.TotalAlloc-then.TotalAlloc)/uint64(*frames), uint64(64<<10); got > most {
		t.Errorf("%d bytes allocated for each frame of %d bytes on average, expected at most %d", got, sent / *frames, most)
	}
	if n := c.nodes[0].server.Counters(); int(n.Requests+n.Malformed+n.Version+n.UnknownAPI) < *frames {
		t.Errorf("%+v: fewer than the %d frames that were sent", n, *frames)
	}
	t.Logf("%d frames, %d of them waited for in vain", *frames, conn.slow)
	after := fetched(c.ask(0, fetchRequest(12, "t", id, 0))).RecordBatches
	if !bytes.HasPrefix(after, before) {
		t.Error("what was stored before has changed")
	}
	c.produce(c.client(), "t", 0, "w", 10)
}

// validFrames are requests about the topic that only read, or that a checksum protects.
func validFrames(id [16]byte) [][]byte {
	list := kmsg.NewPtrListOffsetsRequest()
	list.Version, list.ReplicaID = 7, -1
	list.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	epoch := kmsg.NewPtrOffsetForLeaderEpochRequest()
	epoch.Version, epoch.ReplicaID = 4, -1
	epoch.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1}}}}
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	metadata.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}}
	var out [][]byte
	for _, q := range []kmsg.Request{produceRequest(id, 0, 1, "garbage"), produceRequest(id, 0, -1, "garbage"), fetchRequest(18, "", id, 0), fetchRequest(11, "t", id, 3), list, epoch, metadata} {
		out = append(out, wire.AppendRequest(nil, 1, "fuzz", q))
	}
	return out
}

// garbageConn is a connection that is made anew whenever the broker closes it.
type garbageConn struct {
	t       *testing.T
	address string
	conn    net.Conn
	marker  []byte
	slow    int // frames that were waited for in vain
}

// send writes one frame and a request behind it that is always answered, and waits for that answer or the end of the connection: so each frame has
// been dealt with.
func (g *garbageConn) send(frame []byte) {
	if g.conn == nil {
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			g.t.Fatalf("the broker is gone: %v", err)
		}
		g.conn = conn
		g.marker = wire.AppendRequest(nil, 1<<30, "marker", kmsg.NewPtrApiVersionsRequest())
	}
	g.conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := g.conn.Write(append(frame, g.marker...)); err != nil {
		g.close()
		return
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(g.conn, head[:]); err != nil {
			if os.IsTimeout(err) {
				g.slow++ // a fetch with a long wait
			}
			g.close()
			return
		}
		if _, err := io.CopyN(io.Discard, g.conn, int64(binary.BigEndian.Uint32(head[:]))-4); err != nil {
			g.close()
			return
		}
		if binary.BigEndian.Uint32(head[4:]) == 1<<30 {
			return
		}
	}
}

func (g *garbageConn) close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}
