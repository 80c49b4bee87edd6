package wire

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/storage"
)

// fetchAPI is Fetch.
//
// v4: isolation level, record batches (KIP-98). v5: log start. v7: sessions (KIP-227). v9: leader epoch (KIP-320). v11: rack, reads from followers
// (KIP-392). v12: flexible, last fetched epoch and diverging epochs (KIP-595). v13: topic ids (KIP-516). v15: replica state instead of replica id
// (KIP-903). v16: leader hints (KIP-951). v17: directory ids (KIP-853). v18: the follower's high watermark (KIP-1166).
//
// Every answer has session id 0, which tells the client to send full fetches.
func fetchAPI() API { return of[kmsg.FetchRequest]("Fetch", 4, 18) }

// FetchResponse is kmsg's FetchResponse with runs of batches in place of record bytes, so that they are sent from where they are.
type FetchResponse struct {
	Version   int16
	ErrorCode int16
	Topics    []FetchTopic
	Brokers   []kmsg.FetchResponseBroker // addresses of hinted leaders, v16+
}

// FetchTopic is one topic of a FetchResponse.
type FetchTopic struct {
	Name       string   // up to v12
	ID         [16]byte // v13+
	Partitions []FetchPartition
}

// FetchPartition is one partition of a FetchResponse.
type FetchPartition struct {
	Partition           int32
	ErrorCode           int16
	HighWatermark       int64 // also the last stable offset: there are no transactions yet
	LogStart            int64
	Diverging           *storage.EpochStart // Start holds the end offset (R11)
	Leader, LeaderEpoch int32               // hints, both −1 for none (KIP-951)
	NullAborted         bool                // there is no list of aborted transactions, instead of an empty one: the reader did not ask for committed records only
	Records             storage.Records     // released by Release
}

// Release gives back every run. The response must not be sent after it.
func (f *FetchResponse) Release() {
	for i := range f.Topics {
		for j := range f.Topics[i].Partitions {
			f.Topics[i].Partitions[j].Records.Release()
		}
	}
}

// flexible tells whether this version has compact lengths and tags.
func (f *FetchResponse) flexible() bool { return f.Version >= 12 }

// appendFrame lays the frame out: everything but the records goes to o's memory, the records by reference.
func (f *FetchResponse) appendFrame(o *outgoing, correlation int32) {
	flexible := f.flexible()
	b := append(o.scratch[:0], 0, 0, 0, 0)
	b = appendResponseHeader(b, correlation, 1, flexible)
	b = kbin.AppendInt32(b, 0) // throttle time
	if f.Version >= 7 {
		b = kbin.AppendInt16(b, f.ErrorCode)
		b = kbin.AppendInt32(b, 0) // session id
	}
	b = appendLen(b, len(f.Topics), flexible)
	for i := range f.Topics {
		t := &f.Topics[i]
		switch {
		case f.Version >= 13:
			b = kbin.AppendUuid(b, t.ID)
		case flexible:
			b = kbin.AppendCompactString(b, t.Name)
		default:
			b = kbin.AppendString(b, t.Name)
		}
		b = appendLen(b, len(t.Partitions), flexible)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			b = f.appendPartition(b, p)
			if p.Records.Len() > 0 {
				o.cut(len(b), p.Records.Chunks())
			}
			if flexible {
				b = f.appendTags(b, p)
			}
		}
		if flexible {
			b = append(b, 0)
		}
	}
	if flexible {
		b = f.appendBrokers(b)
	}
	o.finish(b)
}

// appendPartition appends the fields up to the length of the records.
func (f *FetchResponse) appendPartition(b []byte, p *FetchPartition) []byte {
	b = kbin.AppendInt32(b, p.Partition)
	b = kbin.AppendInt16(b, p.ErrorCode)
	b = kbin.AppendInt64(b, p.HighWatermark)
	b = kbin.AppendInt64(b, p.HighWatermark)
	if f.Version >= 5 {
		b = kbin.AppendInt64(b, p.LogStart)
	}
	aborted := 0 // there are no transactions yet
	if p.NullAborted {
		aborted = null
	}
	b = appendLen(b, aborted, f.flexible())
	if f.Version >= 11 {
		b = kbin.AppendInt32(b, -1) // preferred read replica
	}
	return appendLen(b, p.Records.Len(), f.flexible()) // empty, not null, as Kafka does
}

// appendTags appends a partition's tagged fields: 0 diverging epoch, 1 current leader.
func (f *FetchResponse) appendTags(b []byte, p *FetchPartition) []byte {
	hint := f.Version >= 12 && (p.Leader != -1 || p.LeaderEpoch != -1)
	n := byte(0)
	if p.Diverging != nil {
		n++
	}
	if hint {
		n++
	}
	b = append(b, n)
	if d := p.Diverging; d != nil {
		b = append(b, 0, 4+8+1)
		b = kbin.AppendInt32(b, d.Epoch)
		b = kbin.AppendInt64(b, d.Start)
		b = append(b, 0)
	}
	if hint {
		b = append(b, 1, 4+4+1)
		b = kbin.AppendInt32(b, p.Leader)
		b = kbin.AppendInt32(b, p.LeaderEpoch)
		b = append(b, 0)
	}
	return b
}

// appendBrokers appends the response's own tags: 0 addresses of hinted leaders.
func (f *FetchResponse) appendBrokers(b []byte) []byte {
	if len(f.Brokers) == 0 || f.Version < 16 {
		return append(b, 0)
	}
	field := kbin.AppendCompactArrayLen(nil, len(f.Brokers))
	for _, n := range f.Brokers {
		field = kbin.AppendInt32(field, n.NodeID)
		field = kbin.AppendCompactString(field, n.Host)
		field = kbin.AppendInt32(field, n.Port)
		field = kbin.AppendCompactNullableString(field, n.Rack)
		field = append(field, 0)
	}
	b = append(b, 1, 0)
	b = kbin.AppendUvarint(b, uint32(len(field)))
	return append(b, field...)
}

// null is the length of an array that is not there.
const null = -1

// appendLen appends the length of an array or of bytes.
func appendLen(b []byte, n int, flexible bool) []byte {
	if flexible {
		return kbin.AppendUvarint(b, uint32(n)+1)
	}
	return kbin.AppendInt32(b, int32(n))
}
