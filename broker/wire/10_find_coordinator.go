package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// findCoordinatorAPI is FindCoordinator.
//
// v1: transactional ids. v3: flexible. v4: several keys at a time (KIP-699). v5: transactions only (KIP-890). v6: share groups (KIP-932).
//
// It is served from v0 on: librdkafka sends lz4 uncompressed to a broker that does not name v0.
func findCoordinatorAPI() API {
	return of[kmsg.FindCoordinatorRequest]("FindCoordinator", 0, 6)
}
