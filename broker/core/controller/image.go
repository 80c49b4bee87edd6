package controller

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Limits of the whole cluster; they bound the image, its snapshots and the work of one entry.
const (
	MaxTopics             = 10_000
	MaxPartitionsPerTopic = 10_000
	MaxPartitions         = 100_000
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func emptyImage() *Image {
	return &Image{Index: 1, Brokers: map[int32]*Broker{}, Topics: map[string]*Topic{}, Defaults: map[string]string{}}
}

// at returns the same metadata after an entry that changed nothing.
func (im *Image) at(index uint64) *Image {
	next := *im
	next.Index = index
	return &next
}

// Active tells whether a broker may lead and be in sync: registered, unfenced, and not about to shut down.
func (im *Image) Active(id int32) bool {
	b := im.Brokers[id]
	return b != nil && !b.Fenced && !b.ShuttingDown
}

// TopicByID finds a topic by its id (KIP-516), nil if there is none.
func (im *Image) TopicByID(id [16]byte) *Topic {
	//order-free: ids are unique
	for _, t := range im.Topics {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (im *Image) partitions() (n int) {
	//order-free: a sum
	for _, t := range im.Topics {
		n += len(t.Partitions)
	}
	return n
}

// Check finds what no image may be (R16-R18): it is asserted after every entry in tests, and of every snapshot that is read.
func (im *Image) Check() error {
	if im.Brokers == nil || im.Topics == nil || im.Defaults == nil {
		return errors.New("metadata image: brokers, topics or defaults missing")
	}
	for _, id := range sortedKeys(im.Brokers) {
		if b := im.Brokers[id]; b == nil || b.ID != id || b.Epoch < 1 || uint64(b.Epoch) > im.Index {
			return fmt.Errorf("metadata image at %d: broker %d: bad registration %+v", im.Index, id, b)
		}
	}
	ids := map[[16]byte]string{{}: "the zero id"}
	for _, name := range sortedKeys(im.Topics) {
		t := im.Topics[name]
		if t == nil || t.Name != name || t.Configs == nil || len(t.Partitions) == 0 {
			return fmt.Errorf("metadata image at %d: topic %q: bad registration %+v", im.Index, name, t)
		}
		if other, ok := ids[t.ID]; ok {
			return fmt.Errorf("metadata image at %d: topics %q and %q have the same id", im.Index, name, other)
		}
		ids[t.ID] = name
		for i, p := range t.Partitions {
			if err := im.checkPartition(p); err != nil {
				return fmt.Errorf("metadata image at %d: partition %s-%d: %w: %+v", im.Index, name, i, err, p)
			}
		}
	}
	return nil
}

func (im *Image) checkPartition(p *Partition) error {
	if p == nil {
		return errors.New("missing")
	}
	isReplica := func(id int32) bool { return slices.Contains(p.Replicas, id) }
	switch {
	case len(p.Replicas) == 0 || repeats(p.Replicas) || repeats(p.ISR) || repeats(p.ELR):
		return errors.New("no replicas, or a broker twice in one list")
	case slices.ContainsFunc(p.ISR, func(id int32) bool { return !isReplica(id) || !im.Active(id) }):
		return errors.New("in the ISR, but no active replica")
	case slices.ContainsFunc(p.ELR, func(id int32) bool { return !isReplica(id) || slices.Contains(p.ISR, id) }):
		return errors.New("in the ELR, but no replica or in the ISR")
	case repeats(p.Lost) || slices.ContainsFunc(p.Lost, func(id int32) bool { return !isReplica(id) || slices.Contains(p.ISR, id) || slices.Contains(p.ELR, id) }):
		return errors.New("lost, but no replica, or in sync or eligible")
	case p.Leader != none && !slices.Contains(p.ISR, p.Leader):
		return errors.New("the leader is not in the ISR")
	case p.Leader == none && len(p.ISR) > 0:
		return errors.New("in sync, but no leader")
	case p.LastKnownLeader != none && (p.Leader != none || !isReplica(p.LastKnownLeader)):
		return errors.New("a last known leader beside a leader, or not a replica")
	case p.LeaderEpoch < 0 || p.PartitionEpoch < p.LeaderEpoch:
		return errors.New("negative epoch, or more leaders than changes")
	}
	return nil
}

func repeats(ids []int32) bool {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return true
		}
	}
	return false
}

// snapshotFile is an image as the raft snapshot holds it: JSON, whose keys come in order, so that equal images have equal bytes.
type snapshotFile struct {
	Version int
	Image   *Image
}

func encodeImage(im *Image) ([]byte, error) { return json.Marshal(snapshotFile{1, im}) }

func decodeImage(data []byte) (*Image, error) {
	var f snapshotFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("metadata image of %d bytes: %w", len(data), err)
	}
	if f.Version != 1 || f.Image == nil {
		return nil, fmt.Errorf("metadata image of %d bytes: version %d, want 1 and an image", len(data), f.Version)
	}
	return f.Image, f.Image.Check()
}
