package host

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// FetchPartition is one partition of a follower's fetch; maxBytes is replica.fetch.max.bytes.
func FetchPartition(index int32, s partition.FollowState, maxBytes int32) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch = index, s.LeaderEpoch, s.Offset, s.LastFetchedEpoch
	p.LogStartOffset, p.PartitionMaxBytes, p.HighWatermark = s.LogStart, maxBytes, s.HighWatermark
	return p
}

// Answered turns the leader's answer to FetchPartition into the follower's input. The batches alias the answer. An error (S8, R13) means that the
// answer was damaged or is none to this question: nothing of it may be taken.
func Answered(s partition.FollowState, p *kmsg.FetchResponseTopicPartition) (partition.Fetched, error) {
	in := partition.Fetched{
		LeaderEpoch: s.LeaderEpoch, Offset: s.Offset, Code: p.ErrorCode,
		HighWatermark: p.HighWatermark, LogStart: p.LogStartOffset,
	}
	if d := p.DivergingEpoch; d.Epoch != -1 || d.EndOffset != -1 {
		in.Diverging = &storage.EpochStart{Epoch: d.Epoch, Start: d.EndOffset}
	}
	var err error
	in.Batches, err = batches(p.RecordBatches, s)
	return in, err
}

// batches checks what came. A batch of a later epoch than the one asked with means that the answer was read from the log of a former leader that is
// being rewritten: it is no answer to this question.
func batches(raw []byte, s partition.FollowState) ([]record.Batch, error) {
	batches, err := record.ParseAll(raw)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if b.LeaderEpoch > s.LeaderEpoch {
			return nil, fmt.Errorf("batch at offset %d has leader epoch %d, asked was epoch %d", b.BaseOffset, b.LeaderEpoch, s.LeaderEpoch)
		}
	}
	return batches, nil
}
