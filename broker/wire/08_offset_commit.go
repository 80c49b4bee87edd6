package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// offsetCommitAPI is OffsetCommit.
//
// v1: generation and member. v2 to v4: a retention time of its own. v5: without it (KIP-211). v6: leader epoch (KIP-320). v7: static members (KIP-345). v8: flexible.
// v9: member epoch (KIP-848). v10: topic ids.
func offsetCommitAPI() API { return of[kmsg.OffsetCommitRequest]("OffsetCommit", 0, 10) }
