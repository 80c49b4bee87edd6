package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// offsetFetchAPI is OffsetFetch.
//
// v2: all offsets by null, an error of the whole. v5: leader epoch (KIP-320). v6: flexible. v7: stable offsets only (KIP-447), which all are without transactions. v8: several
// groups (KIP-709). v9: member epoch (KIP-848). v10: topic ids.
func offsetFetchAPI() API { return of[kmsg.OffsetFetchRequest]("OffsetFetch", 0, 10) }
