package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/histories"
	"ackproof/sim/world"
	"ackproof/systems"
	"ackproof/workloads/log"
)

// An administrator takes the topic away and makes it anew while a node is down that has a copy: what that node finds on its disk when it is back has the topic's name, and
// is not of this topic (R24).

// absentAtLeast and absentAtMost bound how long the node stays down after the load has begun: until then the new log has to have grown past the old one.
const (
	absentAtLeast = 300 * time.Millisecond
	absentAtMost  = 1500 * time.Millisecond
	// firstLife is how many records the first topic of the name holds per partition.
	firstLife = 6
)

// recreate gives the topic, which was just made, a life of its own, and then makes it anew while a node is down. The journal knows nothing of the first life.
func (r *run) recreate(t *world.Task, id [16]byte) (again [16]byte, err error) {
	config := r.config(id)
	config.Acks, config.Idempotent = -1, false
	past := log.New(config, deafJournal{}, log.NewCounters(r.c.Partitions))
	for p := range int32(r.c.Partitions) {
		v := past.Visit(r.visitorEnv(t, 1<<10+int(p)), p, r.links())
		for range firstLife {
			if what := v.WriteAndRead(setUpBound); what != "" {
				v.Close()
				return again, fmt.Errorf("the first topic of the name: %s", what)
			}
		}
		v.Close()
	}
	e := r.visitorEnv(t, 1<<11)
	r.absent = 1 + e.rand.IntN(r.c.Nodes)
	if roles, err := r.cluster.Roles(); err == nil && roles.Controller == r.absent { // whoever asks is answered at once
		r.absent = 1 + r.absent%r.c.Nodes
	}
	r.cluster.Node(r.absent).Kill()
	r.cluster.Only = id // the invariants look at one life, and then at the other
	if err := r.deleteTopic(e); err != nil {
		return again, err
	}
	again, err = r.createTopic(e)
	r.invariants.forget()
	r.cluster.Only = again
	return again, err
}

// ledWithout waits until the absent node's session is over and every partition is led without it: a node that died may be elected as long as its session lasts, and the load would wait.
func (r *run) ledWithout(t *world.Task) error {
	t.Sleep(r.c.Scale().Session * 3 / 2)
	for end := t.Now() + setUpBound; t.Now() < end; t.Sleep(50 * time.Millisecond) {
		roles, err := r.cluster.Roles()
		if err == nil && len(roles.Partitions) == r.c.Partitions && !slices.ContainsFunc(roles.Partitions, func(p systems.PartitionRoles) bool { return p.Leader == 0 || slices.Contains(p.ISR, r.absent) }) {
			return nil
		}
	}
	return fmt.Errorf("without n%d not every partition is led after %v", r.absent, setUpBound)
}

// present lets the absent node, if there is one, start again some time after the load has begun, unless a fault holds it down then, and will start it.
func (r *run) present() {
	if r.absent == 0 {
		return
	}
	d := absentAtLeast + time.Duration(r.w.Rand(5).Int64N(int64(absentAtMost-absentAtLeast)))
	r.w.After(d, r.self, func() {
		n := r.cluster.Node(r.absent)
		if n.Up() || r.nemesis.otherKill(nil, r.absent) {
			return
		}
		if err := n.Start(); err != nil {
			r.endings = append(r.endings, err.Error())
		}
		r.turn(-1, "%s, which was down when the topic was made anew, starts", n.Name())
	})
}

func (r *run) deleteTopic(e *env) error {
	return r.admin(e, "deleted", func() kmsg.Request {
		q := kmsg.NewPtrDeleteTopicsRequest()
		q.Version = 6
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		q.Topics = append(q.Topics, t)
		return q
	}, func(resp kmsg.Response) error {
		if code := resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode; code != 0 && code != unknownTopic {
			return fmt.Errorf("error code %d", code)
		}
		return nil
	})
}

// unknownTopic is Kafka's UNKNOWN_TOPIC_OR_PARTITION: an earlier attempt has taken it away.
const unknownTopic = 3

// deafJournal records nothing.
type deafJournal struct{}

func (deafJournal) Invoke(histories.Event) uint64   { return 0 }
func (deafJournal) Complete(histories.Event) uint64 { return 0 }
