package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// offsetDeleteAPI is OffsetDelete (KIP-496).
func offsetDeleteAPI() API { return of[kmsg.OffsetDeleteRequest]("OffsetDelete", 0, 0) }
