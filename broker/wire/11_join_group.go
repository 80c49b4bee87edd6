package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// joinGroupAPI is JoinGroup.
//
// v1: rebalance timeout. v4: member id required (KIP-394). v5: static members (KIP-345). v6: flexible. v7: protocol type in the answer (KIP-559). v8: reason (KIP-800).
// v9: a leader that need not assign (KIP-814).
func joinGroupAPI() API { return of[kmsg.JoinGroupRequest]("JoinGroup", 0, 9) }
