package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// describeGroupsAPI is DescribeGroups, for groups of the classic protocol.
//
// v3: authorized operations. v4: instance ids (KIP-345). v5: flexible. v6: an error for a group that is not there (KIP-1043).
func describeGroupsAPI() API { return of[kmsg.DescribeGroupsRequest]("DescribeGroups", 0, 6) }
