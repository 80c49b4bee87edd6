package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// incrementalAlterConfigsAPI is IncrementalAlterConfigs.
//
// v0: KIP-339. v1: flexible.
func incrementalAlterConfigsAPI() API {
	return of[kmsg.IncrementalAlterConfigsRequest]("IncrementalAlterConfigs", 0, 1)
}
