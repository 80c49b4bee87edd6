package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// createPartitionsAPI is CreatePartitions.
//
// v0: KIP-195. v2: flexible.
func createPartitionsAPI() API { return of[kmsg.CreatePartitionsRequest]("CreatePartitions", 0, 3) }
