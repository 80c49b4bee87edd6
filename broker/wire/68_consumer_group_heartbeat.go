package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// consumerGroupHeartbeatAPI is ConsumerGroupHeartbeat (KIP-848).
//
// v1: member ids made by the client (KIP-1082), regular expressions that the broker resolves.
func consumerGroupHeartbeatAPI() API {
	return of[kmsg.ConsumerGroupHeartbeatRequest]("ConsumerGroupHeartbeat", 0, 1)
}
