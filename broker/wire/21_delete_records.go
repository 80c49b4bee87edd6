package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// deleteRecordsAPI is DeleteRecords.
//
// v0: KIP-107. v2: flexible.
func deleteRecordsAPI() API { return of[kmsg.DeleteRecordsRequest]("DeleteRecords", 0, 2) }
