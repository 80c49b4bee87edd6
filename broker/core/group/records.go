package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// The kinds of records, by the number that begins the key. They are Kafka's, so that its tools read this log.
const (
	kindOffset          = 1 // 0 is an older form of the same
	kindClassic         = 2 // a classic group with its members
	kindConsumer        = 3 // epoch of a KIP-848 group
	kindMember          = 5 // a member and its subscription
	kindTargetEpoch     = 6
	kindTarget          = 7 // what a member shall have
	kindCurrent         = 8 // what a member has
	valueVersion        = 0 // of the values of kinds 3 to 8
	classicValueVersion = 3
	offsetValueVersion  = 3 // 1 if the offset has a time of its own to expire
)

// entry is one record: a nil value deletes the key.
type entry struct{ key, value []byte }

// errRecord: a record of the internal topic is not one that this broker or Kafka writes.
var errRecord = errors.New("record of " + Topic + " does not parse")

// encode makes a batch of records.
func encode(now time.Time, entries []entry) record.Batch {
	var body []byte
	for i, e := range entries {
		var one []byte
		one = append(one, 0)                     // attributes
		one = binary.AppendVarint(one, 0)        // timestamp delta
		one = binary.AppendVarint(one, int64(i)) // offset delta
		one = appendVarintBytes(one, e.key)      //
		one = appendVarintBytes(one, e.value)    //
		one = binary.AppendVarint(one, 0)        // headers
		body = binary.AppendVarint(body, int64(len(one)))
		body = append(body, one...)
	}
	return record.Wrap(record.Spec{ProducerID: record.NoProducer, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1, Timestamp: now.UnixMilli()}, len(entries), body)
}

func appendVarintBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// decode calls visit for each record of a batch.
func decode(b record.Batch, visit func(e entry) error) error {
	if b.Codec() != 0 || b.Control() {
		return fmt.Errorf("%w: offset %d has attributes %#x, expected no compression and no marker", errRecord, b.BaseOffset, b.Attributes)
	}
	rest := b.Bytes()[record.HeaderBytes:]
	for range b.Count {
		length, n := binary.Varint(rest)
		if n <= 0 || length < 0 || length > int64(len(rest)-n) {
			return fmt.Errorf("%w: a length in the batch at offset %d", errRecord, b.BaseOffset)
		}
		var one kmsg.Record
		if err := one.ReadFrom(rest[:n+int(length)]); err != nil {
			return fmt.Errorf("%w: in the batch at offset %d: %v", errRecord, b.BaseOffset, err)
		}
		rest = rest[n+int(length):]
		if err := visit(entry{one.Key, one.Value}); err != nil {
			return err
		}
	}
	return nil
}

// part is a partition of a topic, by the topic's id.
type part struct {
	topic [16]byte
	index int32
}

func offsetEntry(group, topic string, partition int32, o *offset) entry {
	k := kmsg.OffsetCommitKey{Version: kindOffset, Group: group, Topic: topic, Partition: partition}
	if o == nil {
		return entry{key: k.AppendTo(nil)}
	}
	v := kmsg.OffsetCommitValue{Version: offsetValueVersion, Offset: o.offset, LeaderEpoch: o.leaderEpoch, Metadata: o.metadata, CommitTimestamp: o.committed, ExpireTimestamp: -1}
	if o.expires >= 0 {
		v.Version, v.ExpireTimestamp = 1, o.expires
	}
	return entry{k.AppendTo(nil), v.AppendTo(nil)}
}

func classicKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: kindClassic, Group: group}
	return k.AppendTo(nil)
}

// consumerKey is the key of kinds 3 to 8; member is empty for those without one.
func consumerKey(kind int16, group, member string) []byte {
	k := kbin.AppendString(kbin.AppendInt16(nil, kind), group)
	if kind == kindMember || kind == kindTarget || kind == kindCurrent {
		k = kbin.AppendString(k, member)
	}
	return k
}

// metadataHashTag is the tag of the hash of the subscribed topics in the value of kind 3 (Kafka 4.1).
const metadataHashTag = 0

func consumerEntry(g *group) entry {
	v := kbin.AppendInt32(kbin.AppendInt16(nil, valueVersion), g.consumer.epoch)
	v = kbin.AppendUvarint(v, 1)
	v = kbin.AppendUvarint(kbin.AppendUvarint(v, metadataHashTag), 8)
	v = kbin.AppendInt64(v, g.consumer.topicsHash)
	return entry{consumerKey(kindConsumer, g.id, ""), v}
}

func targetEpochEntry(g *group) entry {
	v := kbin.AppendInt32(kbin.AppendInt16(nil, valueVersion), g.consumer.targetEpoch)
	return entry{consumerKey(kindTargetEpoch, g.id, ""), noTags(v)}
}

func targetEntry(group, member string, target parts) entry {
	return entry{consumerKey(kindTarget, group, member), noTags(appendParts(kbin.AppendInt16(nil, valueVersion), target))}
}

func currentEntry(group string, m *consumerMember) entry {
	v := kbin.AppendInt16(nil, valueVersion)
	v = kbin.AppendInt32(kbin.AppendInt32(v, m.epoch), m.previousEpoch)
	v = kbin.AppendInt8(v, int8(m.state))
	v = appendParts(appendParts(v, m.assigned), m.revoking)
	return entry{consumerKey(kindCurrent, group, m.id), noTags(v)}
}

func memberEntry(group string, m *consumerMember) entry {
	v := kbin.AppendInt16(nil, valueVersion)
	v = kbin.AppendCompactNullableString(v, m.instance)
	v = kbin.AppendCompactNullableString(v, m.rack)
	v = kbin.AppendCompactString(v, m.clientID)
	v = kbin.AppendCompactString(v, m.host)
	v = kbin.AppendCompactArrayLen(v, len(m.topics))
	for _, t := range m.topics {
		v = kbin.AppendCompactString(v, t)
	}
	v = kbin.AppendCompactNullableString(v, m.regex)
	v = kbin.AppendInt32(v, int32(m.rebalanceTimeout.Milliseconds()))
	v = kbin.AppendCompactNullableString(v, m.assignor)
	return entry{consumerKey(kindMember, group, m.id), noTags(v)}
}

func noTags(v []byte) []byte { return append(v, 0) }

// appendParts writes partitions grouped by topic, as a compact array.
func appendParts(dst []byte, ps parts) []byte {
	topics := ps.byTopic()
	dst = kbin.AppendCompactArrayLen(dst, len(topics))
	for _, t := range topics {
		dst = kbin.AppendUuid(dst, t.id)
		dst = kbin.AppendCompactArrayLen(dst, len(t.indexes))
		for _, i := range t.indexes {
			dst = kbin.AppendInt32(dst, i)
		}
		dst = noTags(dst)
	}
	return dst
}

func readParts(r *kbin.Reader) parts {
	var out parts
	for range r.CompactArrayLen() {
		id := r.Uuid()
		for range r.CompactArrayLen() {
			out = append(out, part{id, r.Int32()})
		}
		kmsg.SkipTags(r)
		if !r.Ok() {
			return nil
		}
	}
	return out.sorted()
}

// readMember reads a value of kind 5.
func readMember(id string, value []byte) (*consumerMember, error) {
	r := kbin.Reader{Src: value}
	r.Int16()
	m := &consumerMember{id: id, instance: r.CompactNullableString(), rack: r.CompactNullableString(), clientID: r.CompactString(), host: r.CompactString()}
	for range r.CompactArrayLen() {
		m.topics = append(m.topics, r.CompactString())
		if !r.Ok() {
			break
		}
	}
	m.regex = r.CompactNullableString()
	m.rebalanceTimeout = time.Duration(r.Int32()) * time.Millisecond
	m.assignor = r.CompactNullableString()
	return m, r.Complete()
}

// readConsumer reads a value of kind 3.
func readConsumer(value []byte) (epoch int32, hash int64, err error) {
	r := kbin.Reader{Src: value}
	r.Int16()
	epoch = r.Int32()
	for range r.Uvarint() {
		tag, size := r.Uvarint(), r.Uvarint()
		if !r.Ok() {
			break
		}
		if field := r.Span(int(size)); tag == metadataHashTag && len(field) == 8 {
			hash = int64(binary.BigEndian.Uint64(field))
		}
	}
	return epoch, hash, r.Complete()
}
