package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// listGroupsAPI is ListGroups: the groups of this broker's partitions.
//
// v3: flexible. v4: states (KIP-518). v5: types (KIP-848).
func listGroupsAPI() API { return of[kmsg.ListGroupsRequest]("ListGroups", 0, 5) }
