package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// offsetForLeaderEpochAPI is OffsetForLeaderEpoch.
//
// v0: KIP-101. v1: the epoch in the response (KIP-279). v2: the asker's current epoch (KIP-320). v3: replica id. v4: flexible.
func offsetForLeaderEpochAPI() API {
	return of[kmsg.OffsetForLeaderEpochRequest]("OffsetForLeaderEpoch", 2, 4)
}
