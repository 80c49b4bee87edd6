package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// syncGroupAPI is SyncGroup.
//
// v3: static members (KIP-345). v4: flexible. v5: protocol type and name, checked (KIP-559).
func syncGroupAPI() API { return of[kmsg.SyncGroupRequest]("SyncGroup", 0, 5) }
