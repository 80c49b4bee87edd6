package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// deleteTopicsAPI is DeleteTopics.
//
// v4: flexible. v5: error messages. v6: topics by id (KIP-516).
func deleteTopicsAPI() API { return of[kmsg.DeleteTopicsRequest]("DeleteTopics", 1, 6) }
