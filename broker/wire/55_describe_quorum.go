package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// describeQuorumAPI is DescribeQuorum: who leads the control plane.
//
// v0: KIP-595. v1: timestamps (KIP-836). v2: nodes and error messages (KIP-853).
func describeQuorumAPI() API { return of[kmsg.DescribeQuorumRequest]("DescribeQuorum", 0, 2) }
