package reference

import (
	"strings"
	"testing"

	"ackproof/systems"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, spoil := range []func(*systems.Options){
		func(o *systems.Options) { o.Dir = "" },
		func(o *systems.Options) { o.Nodes = 0 },
		func(o *systems.Options) { o.Topic = "" },
		func(o *systems.Options) { o.Partitions = 0 },
		func(o *systems.Options) { o.Replication = 0 },
		func(o *systems.Options) { o.Replication = 4 },
		func(o *systems.Options) { o.MinISR = 4 },
		func(o *systems.Options) { o.MinISR = 0 },
		func(o *systems.Options) { o.Acks = 2 },
	} {
		o := options(t.TempDir())
		spoil(&o)
		if _, err := New(o, executable); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%+v gives %v, expected an error that says what was expected", o, err)
		}
	}
}
