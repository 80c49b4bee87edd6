package controller

import (
	"strings"
	"testing"
)

// A snapshot that is not an image which the rules allow is refused, with the reason.
func TestBadImagesAreRefused(t *testing.T) {
	good := func() *Image {
		l := newLab(t)
		l.run("up 1 2 3")
		l.run("create t assign=1,2,3/2,3,1")
		l.run("create u assign=3,1 min.insync.replicas=2")
		l.run("isr u 0 isr=3")
		return l.image
	}
	part := func(im *Image) *Partition { return im.Topics["u"].Partitions[0] }
	for _, tc := range []struct {
		name string
		edit func(*Image)
		want string
	}{
		{"good", func(*Image) {}, ""},
		{"no topics", func(im *Image) { im.Topics = nil }, "missing"},
		{"broker under another id", func(im *Image) { im.Brokers[1].ID = 2 }, "broker 1"},
		{"registration of the future", func(im *Image) { im.Brokers[1].Epoch = 1000 }, "broker 1"},
		{"topic under another name", func(im *Image) { im.Topics["t"].Name = "u" }, `topic "t"`},
		{"no partitions", func(im *Image) { im.Topics["t"].Partitions = nil }, `topic "t"`},
		{"zero id", func(im *Image) { im.Topics["t"].ID = [16]byte{} }, "same id"},
		{"same id", func(im *Image) { im.Topics["t"].ID = im.Topics["u"].ID }, "same id"},
		{"partition missing", func(im *Image) { im.Topics["t"].Partitions[1] = nil }, "missing"},
		{"no replicas", func(im *Image) { part(im).Replicas = nil }, "no replicas"},
		{"a replica twice", func(im *Image) { part(im).Replicas = []int32{3, 1, 3} }, "twice"},
		{"a stranger in sync", func(im *Image) { part(im).ISR = []int32{3, 2} }, "no active replica"},
		{"a fenced broker in sync", func(im *Image) { im.Brokers[3].Fenced = true }, "no active replica"},
		{"in ISR and ELR", func(im *Image) { part(im).ELR = []int32{3} }, "in the ISR"},
		{"leader not in sync", func(im *Image) { part(im).Leader = 1 }, "not in the ISR"},
		{"no leader", func(im *Image) { part(im).Leader = none }, "no leader"},
		{"last leader beside a leader", func(im *Image) { part(im).LastKnownLeader = 1 }, "last known leader"},
		{"epochs", func(im *Image) { part(im).LeaderEpoch = 7 }, "epoch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			im := good()
			tc.edit(im)
			data, err := encodeImage(im)
			if err != nil {
				t.Fatal(err)
			}
			_, err = decodeImage(data)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	for _, data := range []string{"", "{}", `{"Version":2,"Image":{}}`, `{"Version":1,"Image":{"NoSuchField":1}}`} {
		if _, err := decodeImage([]byte(data)); err == nil {
			t.Errorf("%q is taken for an image", data)
		}
	}
}

// What the image says of a topic's configuration: its own value, the cluster's, Kafka's default.
func TestEffectiveConfig(t *testing.T) {
	l := newLab(t)
	l.run("defaults min.insync.replicas=2 retention.ms=5")
	l.run("up 1 2 3")
	l.run("create t rf=3 partitions=1 retention.ms=7")
	topic := l.image.Topics["t"]
	for key, want := range map[string]string{"retention.ms": "7", "min.insync.replicas": "2", "max.message.bytes": "1048588", "no.such.key": ""} {
		if got := l.image.Config(topic, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if l.image.MinISR(topic) != 2 {
		t.Errorf("MinISR %d, want 2", l.image.MinISR(topic))
	}
	keys := ConfigKeys()
	for i, k := range keys {
		if i > 0 && keys[i-1].Name >= k.Name {
			t.Errorf("%s comes after %s", k.Name, keys[i-1].Name)
		}
		if err := k.Check(k.Default); err != nil {
			t.Errorf("the default is refused: %v", err)
		}
	}
}
