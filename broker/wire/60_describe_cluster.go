package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// describeClusterAPI is DescribeCluster.
//
// v0: KIP-700. v1: endpoint type (KIP-919). v2: fenced brokers (KIP-1073).
func describeClusterAPI() API { return of[kmsg.DescribeClusterRequest]("DescribeCluster", 0, 2) }
