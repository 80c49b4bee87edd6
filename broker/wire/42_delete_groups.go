package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// deleteGroupsAPI is DeleteGroups (KIP-229).
//
// v2: flexible. v3: error messages.
func deleteGroupsAPI() API { return of[kmsg.DeleteGroupsRequest]("DeleteGroups", 0, 3) }
