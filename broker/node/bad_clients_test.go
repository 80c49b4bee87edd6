package node

import (
	"encoding/binary"
	"net"
	"runtime"
	"testing"
	"time"

	"ackproof/broker/wire"
)

// TestClientsThatDoNotListen: clients that ask for much and read nothing, that stop in the middle of a request, or that announce one as large as may be and send nothing of it. They take
// bounded memory, and a client that behaves is served as if they were not there.
func TestClientsThatDoNotListen(t *testing.T) {
	const (
		each   = 20       // clients of each kind
		value  = 100_000  // bytes of a record
		values = 200      // 20 MB, far more than is kept in memory
		most   = 64 << 20 // bytes of heap while they are all there
	)
	c := newCluster(t, 1, "min.insync.replicas=1")
	c.create("t", 1, 1)
	id := c.nodes[0].view.Load().Topics["t"].ID
	fill := func(n int) {
		t.Helper()
		for range n {
			if p := c.ask(0, produceRequest(id, 0, 1, string(make([]byte, value)))); p == nil {
				t.Fatal("no answer")
			}
		}
	}
	fill(values / 2)
	before := heap()
	open := func(raw []byte) {
		t.Helper()
		conn, err := net.Dial("tcp", c.addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // it need not get rid of all
		conn.Write(raw)
	}
	for i := range each {
		// From near the end, where batches are served from memory, and from the beginning.
		var asks []byte
		for _, offset := range []int64{values/2 - 30, 0} {
			q := fetchRequest(12, "t", id, offset)
			q.MaxBytes, q.Topics[0].Partitions[0].PartitionMaxBytes = 50<<20, 50<<20
			for n := range int32(20) {
				asks = wire.AppendRequest(asks, n, "deaf", q)
			}
		}
		open(asks)
		produce := wire.AppendRequest(nil, 1, "half", produceRequest(id, 0, -1, string(make([]byte, value))))
		open(produce[:len(produce)/2])
		open(binary.BigEndian.AppendUint32(nil, 100<<20))
		if i%4 == 0 {
			fill(values / 8) // what is kept in memory changes, so that each holds something else
		}
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d clients that do not listen take %d MiB, expected at most %d", 3*each, grown>>20, most>>20)
	}
	cl := c.client()
	c.create("u", 1, 1)
	c.produce(cl, "u", 0, "v", 100)
	if got := c.consume("u", 0, 100); got[99] != "v-99" {
		t.Errorf("record 99 is %s", got[99])
	}
}

// heap is the memory that is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
