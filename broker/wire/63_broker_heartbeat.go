package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// brokerHeartbeatAPI is BrokerHeartbeat.
//
// v0: KIP-631. v1: offline log directories (KIP-858).
func brokerHeartbeatAPI() API {
	return internal(of[kmsg.BrokerHeartbeatRequest]("BrokerHeartbeat", 0, 1))
}
