package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// alterPartitionAPI is AlterPartition: a leader asks the controller for another in-sync set (R16).
//
// v0: KIP-497. v2: topic ids. v3: broker epochs of the members (KIP-903), without which a member's restart goes unseen; so nothing older is served.
func alterPartitionAPI() API { return internal(of[kmsg.AlterPartitionRequest]("AlterPartition", 3, 3)) }
