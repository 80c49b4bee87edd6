package wire

import "github.com/twmb/franz-go/pkg/kmsg"

const produceKey = 0

// produceAPI is Produce.
//
// v3: record batches (KIP-98), transactional id. v5: log start in the response. v7: zstd. v8: error records (KIP-467). v9: flexible. v10: leader
// hints (KIP-951). v11, v12: transactions only (KIP-890). v13: topic ids (KIP-516).
//
// v0 to v2 carry message sets of before KIP-98 and are not served, but must be advertised: librdkafka up to 2.0 sends gzip, snappy and lz4
// uncompressed to a broker that does not name them (Kafka has the same special case: KAFKA-18659).
func produceAPI() API {
	a := of[kmsg.ProduceRequest]("Produce", 3, 13)
	a.Advertise = 0
	return a
}
