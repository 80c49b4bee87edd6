package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// describeConfigsAPI is DescribeConfigs.
//
// v1: sources and synonyms (KIP-226). v3: types and documentation (KIP-569). v4: flexible.
func describeConfigsAPI() API { return of[kmsg.DescribeConfigsRequest]("DescribeConfigs", 1, 4) }
