package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// describeTopicPartitionsAPI is DescribeTopicPartitions: Metadata in pages, with the eligible leader replicas (KIP-966).
func describeTopicPartitionsAPI() API {
	return of[kmsg.DescribeTopicPartitionsRequest]("DescribeTopicPartitions", 0, 0)
}
