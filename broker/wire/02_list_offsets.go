package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// listOffsetsAPI is ListOffsets.
//
// v1: one offset with its timestamp. v2: isolation level. v4: leader epochs (KIP-320). v6: flexible. v7: max timestamp (KIP-734). v8: earliest local
// (KIP-405). v9: last tiered. v10: timeout. v11: earliest pending upload.
func listOffsetsAPI() API { return of[kmsg.ListOffsetsRequest]("ListOffsets", 1, 11) }
