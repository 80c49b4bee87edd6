package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// consumerGroupDescribeAPI is ConsumerGroupDescribe (KIP-848).
//
// v1: the type of each member.
func consumerGroupDescribeAPI() API {
	return of[kmsg.ConsumerGroupDescribeRequest]("ConsumerGroupDescribe", 0, 1)
}
