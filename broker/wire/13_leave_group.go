package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// leaveGroupAPI is LeaveGroup.
//
// v3: several members, static ones too (KIP-345). v4: flexible. v5: reason (KIP-800).
func leaveGroupAPI() API { return of[kmsg.LeaveGroupRequest]("LeaveGroup", 0, 5) }
