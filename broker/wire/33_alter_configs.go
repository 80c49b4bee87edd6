package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// alterConfigsAPI is AlterConfigs, which replaces all that was set: superseded by IncrementalAlterConfigs (KIP-339), but the only one that kafkajs knows.
//
// v2: flexible.
func alterConfigsAPI() API { return of[kmsg.AlterConfigsRequest]("AlterConfigs", 0, 2) }
