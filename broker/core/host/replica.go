package host

import (
	"slices"
	"strconv"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/partition"
	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// OpenReplica makes the replica that lives on a log: from its checkpoint, and from the headers of the batches that the checkpoint does not cover (R12, R29).
func OpenReplica(cfg partition.Config, log storage.Log) (*partition.Replica, error) {
	cp, bounds := log.Checkpoint(), log.Bounds()
	var headers []record.Header
	err := log.Headers(partition.ReplayFrom(cp, bounds), func(h record.Header) error {
		headers = append(headers, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return partition.New(cfg, cp, bounds, headers)
}

// Batches takes records apart and gives them back to the log.
func Batches(r storage.Records) ([]record.Batch, error) {
	defer r.Release()
	raw, err := r.Bytes()
	if err != nil {
		return nil, err
	}
	return record.ParseAll(raw)
}

// CountsOn tells whether the partition counts on the copy of this broker: it leads, led last, or is eligible. If its log was made and is missing, it was lost.
func CountsOn(p *controller.Partition, self int32) bool {
	return p.LeaderEpoch > 0 && (p.Leader == self || p.LastKnownLeader == self || slices.Contains(p.ELR, self))
}

// Owns tells whether a log that was stored under a topic's name and this id belongs to the topic: names come again, ids do not (R24).
func Owns(t *controller.Topic, stored [16]byte) bool {
	return stored == t.ID || fault.On(fault.RecreateReusesLog)
}

// StateOf is the partition's state as its replica wants it.
func StateOf(im *controller.Image, t *controller.Topic, p *controller.Partition) partition.State {
	s := partition.State{
		Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
		Replicas: slices.Clone(p.Replicas), ISR: slices.Clone(p.ISR),
		BrokerEpochs: map[int32]int64{}, MinISR: im.MinISR(t), MaxBytes: 1048588,
	}
	for _, id := range p.Replicas {
		if im.Active(id) {
			s.BrokerEpochs[id] = im.Brokers[id].Epoch
		}
	}
	if max, err := strconv.ParseInt(im.Config(t, "max.message.bytes"), 10, 32); err == nil {
		s.MaxBytes = int32(max)
	}
	return s
}
