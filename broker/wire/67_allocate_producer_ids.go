package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// allocateProducerIDsAPI is AllocateProducerIds: a block of producer ids for a broker to hand out (R30).
//
// v0: KIP-730.
func allocateProducerIDsAPI() API {
	return internal(of[kmsg.AllocateProducerIDsRequest]("AllocateProducerIDs", 0, 0))
}
