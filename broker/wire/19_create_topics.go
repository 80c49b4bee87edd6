package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// createTopicsAPI is CreateTopics.
//
// v1: validate only, error messages. v4: broker defaults by -1 (KIP-464). v5: flexible, what was made (KIP-525). v7: topic ids (KIP-516).
func createTopicsAPI() API { return of[kmsg.CreateTopicsRequest]("CreateTopics", 2, 7) }
