//go:build failpoints

package host

import (
	"errors"
	"testing"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/partition"
	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// broken is a log that nothing can be written to.
type broken struct{ storage.Log }

var errDisk = errors.New("no space left")

func (broken) Append([]record.Batch, bool) error { return errDisk }
func (broken) Flush() error                      { return errDisk }
func (broken) Bounds() storage.Bounds            { return storage.Bounds{} }

// S1, S3, S4: what a log could not do is no success. With B13 a failed append is one, with B42 a failed flush, with B12 one that was left undone.
func TestPlantsOfFailedWrites(t *testing.T) {
	batch := record.Build(record.Spec{Values: make([][]byte, 2)})
	write, flush := partition.Append{Batches: []record.Batch{batch}}, partition.Flush{}
	for _, c := range []struct {
		bug  fault.Bug
		work partition.Effect
		with partition.Input
	}{
		{fault.SwallowWriteError, write, partition.Appended{End: 2}},
		{fault.FlushErrorForgotten, flush, partition.Flushed{}},
		{fault.AckBeforeFsync, flush, partition.Flushed{}},
	} {
		in := CarryOut(broken{}, []partition.Effect{c.work}, nil)
		if failed, ok := in[0].(partition.StorageFailed); len(in) != 1 || !ok || !errors.Is(failed.Err, errDisk) {
			t.Errorf("without %s: %+v, expected StorageFailed", c.bug.Name, in)
		}
		if err := fault.Plant(c.bug); err != nil {
			t.Fatal(err)
		}
		in = CarryOut(broken{}, []partition.Effect{c.work}, nil)
		fault.Uproot(c.bug)
		if len(in) != 1 || in[0] != c.with {
			t.Errorf("with %s: %+v, expected %+v", c.bug.Name, in, c.with)
		}
	}
}

// R24: a log belongs to the topic of its id, not to whoever has the name now. With B30 it does not matter.
func TestPlantOfTheRecreatedTopic(t *testing.T) {
	topic := &controller.Topic{Name: "t", ID: [16]byte{2}}
	before := [16]byte{1}
	if Owns(topic, before) || !Owns(topic, topic.ID) {
		t.Error("without the bug: a log of another id belongs to the topic, or its own does not")
	}
	if err := fault.Plant(fault.RecreateReusesLog); err != nil {
		t.Fatal(err)
	}
	defer fault.Uproot(fault.RecreateReusesLog)
	if !Owns(topic, before) {
		t.Error("with the bug: a log of another id does not belong to the topic")
	}
}
