package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// heartbeatAPI is Heartbeat.
//
// v3: static members (KIP-345). v4: flexible.
func heartbeatAPI() API { return of[kmsg.HeartbeatRequest]("Heartbeat", 0, 4) }
