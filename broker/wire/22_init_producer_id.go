package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// initProducerIDAPI is InitProducerId.
//
// v0: KIP-98. v2: flexible. v3: the producer's present id and epoch (KIP-360). v5: transactions only (KIP-890).
func initProducerIDAPI() API { return of[kmsg.InitProducerIDRequest]("InitProducerID", 0, 5) }
