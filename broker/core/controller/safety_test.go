package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"ackproof/broker/fault"
)

// partitionWorld is one partition with abstract replicas under the real control plane. The replicas keep R1-R3, R8, R10, R14 in their simplest form and see the metadata
// late, each at its own pace. It asks the only question that matters of elections: does whoever may lead have every committed record?
type partitionWorld struct {
	lab       *lab
	choose    func(n int, what string) int
	history   []*Image // every image so far
	replicas  []*replica
	committed []record
	next      int
	late      []kmsg.Request // AlterPartition requests that are still under way
	minISR    int
	losses    int  // unclean stops that are still allowed, if they lose records
	lossy     bool // an unclean stop loses the end of the log
}

type record struct {
	epoch int32
	value int
}

type replica struct {
	id    int32
	log   []record
	view  int   // index into history: the metadata that it knows
	epoch int64 // of its registration

	// While it leads:
	leaderEpoch int32
	start       int // log end when it began to lead
	hw          int
	match       map[int32]progress // where the others fetched from in this epoch
	pending     []int32            // proposed ISR without a known answer
	pendingAt   int32              // the partition epoch that it was proposed with
}

// progress is what a leader knows of a follower, and of which incarnation: nothing of it holds for the next one (R19, KIP-903).
type progress struct {
	epoch int64
	end   int
}

func newPartitionWorld(t *testing.T, choose func(int, string) int, replicas, minISR int, lossy bool, bugs flags) *partitionWorld {
	w := &partitionWorld{lab: &lab{t: t, image: emptyImage(), incarnations: map[int32]byte{}, quick: true}, choose: choose, minISR: minISR, lossy: lossy, losses: minISR - 1}
	w.lab.flags = bugs
	l := w.lab
	assign := ""
	for i := range int32(replicas) {
		l.run(fmt.Sprintf("up %d", i))
		assign += fmt.Sprintf("%d,", i)
		w.replicas = append(w.replicas, &replica{id: i, epoch: l.image.Brokers[i].Epoch, leaderEpoch: none})
	}
	l.run(fmt.Sprintf("create t assign=%s min.insync.replicas=%d", assign, minISR))
	w.history = append(w.history, l.image)
	for _, r := range w.replicas {
		w.see(r, 0)
	}
	return w
}

func (w *partitionWorld) now() *Partition { return w.lab.image.Topics["t"].Partitions[0] }

func (w *partitionWorld) known(r *replica) *Partition {
	return w.history[r.view].Topics["t"].Partitions[0]
}

// serves tells whether the replica knows of its own registration; before that it is nobody (R19).
func (w *partitionWorld) serves(r *replica) bool {
	b := w.history[r.view].Brokers[r.id]
	return b != nil && b.Epoch == r.epoch
}

func (w *partitionWorld) leads(r *replica) bool { return w.serves(r) && w.known(r).Leader == r.id }

// see moves a replica's knowledge forward.
func (w *partitionWorld) see(r *replica, view int) {
	r.view = max(r.view, view)
	p := w.known(r)
	if !w.leads(r) {
		r.leaderEpoch = none
		return
	}
	if p.LeaderEpoch != r.leaderEpoch {
		r.leaderEpoch, r.start, r.match, r.pending = p.LeaderEpoch, len(r.log), map[int32]progress{}, nil
		r.hw = min(r.hw, len(r.log))
	}
	for id, m := range r.match {
		if b := w.history[r.view].Brokers[id]; b.Epoch != m.epoch {
			delete(r.match, id)
		}
	}
	if r.pending != nil && p.PartitionEpoch > r.pendingAt {
		r.pending = nil
	}
	w.advance(r)
}

func (w *partitionWorld) do(q kmsg.Request) kmsg.Response {
	resp := w.lab.do(q)
	w.history = append(w.history, w.lab.image)
	return resp
}

// advance is R1-R3: the high watermark is the smallest log end over the ISR, present and proposed, and stands still below min.insync.replicas.
func (w *partitionWorld) advance(r *replica) {
	p := w.known(r)
	if len(p.ISR) < w.minISR {
		return
	}
	hw := len(r.log)
	for _, id := range slices.Concat(p.ISR, r.pending) {
		if id != r.id {
			hw = min(hw, r.match[id].end)
		}
	}
	for r.hw = max(r.hw, hw); len(w.committed) < r.hw; {
		w.committed = append(w.committed, r.log[len(w.committed)])
	}
}

func (w *partitionWorld) step() {
	r := w.replicas[w.choose(len(w.replicas), "replica")]
	switch what := w.choose(48, "what"); {
	case what < 6:
		if w.leads(r) {
			w.next++
			r.log = append(r.log, record{r.leaderEpoch, w.next})
			w.advance(r)
		}
	case what < 24:
		w.fetch(r)
	case what < 32:
		w.see(r, min(r.view+1+w.choose(5, "images"), len(w.history)-1))
	case what < 39:
		w.alter(r)
	case what < 43:
		w.heartbeat(r, false)
	case what < 45:
		if len(w.late) > 0 {
			i := w.choose(len(w.late), "which")
			w.do(w.late[i])
			w.late = slices.Delete(w.late, i, i+1)
		}
	case what < 47:
		w.heartbeat(r, true)
	default:
		w.restart(r, w.choose(3, "cleanly") == 0)
	}
}

func (w *partitionWorld) heartbeat(r *replica, fence bool) {
	q := latest(kmsg.NewPtrBrokerHeartbeatRequest())
	q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset, q.WantFence = r.id, r.epoch, int64(w.history[r.view].Index), fence
	w.do(q)
}

func (w *partitionWorld) restart(r *replica, clean bool) {
	q := latest(kmsg.NewPtrBrokerRegistrationRequest())
	q.BrokerID, q.PreviousBrokerEpoch = r.id, -1
	if clean {
		q.PreviousBrokerEpoch = r.epoch
	} else if w.lossy {
		if len(w.now().ISR) == len(w.replicas) {
			w.losses = w.minISR - 1 // all have everything: it counts from here
		}
		if w.losses == 0 {
			return
		}
		w.losses--
		r.log = r.log[:w.choose(len(r.log)+1, "records left")]
	}
	w.lab.incarnations[r.id]++
	q.IncarnationID[0], q.IncarnationID[1] = w.lab.incarnations[r.id], byte(r.id)+1
	q.Listeners = append(q.Listeners, kmsg.NewBrokerRegistrationRequestListener())
	r.epoch = w.do(q).(*kmsg.BrokerRegistrationResponse).BrokerEpoch
	r.leaderEpoch, r.hw = none, min(r.hw, len(r.log))
}

// fetch: R10 (epochs equal, the incarnation is the registered one), R8 (cut where the logs part), R1 (the offset asked with counts).
func (w *partitionWorld) fetch(f *replica) {
	p := w.known(f)
	if !w.serves(f) || p.Leader == none || p.Leader == f.id {
		return
	}
	l := w.replicas[p.Leader]
	if b := w.history[l.view].Brokers[f.id]; !w.leads(l) || l.leaderEpoch != p.LeaderEpoch || b == nil || b.Epoch != f.epoch {
		return
	}
	same := 0
	for same < min(len(f.log), len(l.log)) && f.log[same] == l.log[same] {
		same++
	}
	if same < len(f.log) {
		f.log = f.log[:same]
		return
	}
	l.match[f.id] = progress{f.epoch, len(f.log)}
	w.advance(l)
	f.log = append(f.log, l.log[same:min(len(l.log), same+1+w.choose(3, "records"))]...)
	f.hw = min(l.hw, len(f.log))
}

// alter lets a leader take a follower in (R14) or out. The answer may be lost; then the proposal goes on counting (R2).
func (w *partitionWorld) alter(r *replica) {
	p := w.known(r)
	f := w.replicas[w.choose(len(w.replicas), "follower")]
	if !w.leads(r) || r.pending != nil || f == r {
		return
	}
	isr := without(p.ISR, f.id)
	if !slices.Contains(p.ISR, f.id) {
		m, ok := r.match[f.id]
		if !ok || m.end < r.hw || m.end < r.start {
			return
		}
		isr = append(isr, f.id)
	}
	q := latest(kmsg.NewPtrAlterPartitionRequest())
	q.BrokerID, q.BrokerEpoch = r.id, r.epoch
	qp := kmsg.NewAlterPartitionRequestTopicPartition()
	qp.LeaderEpoch, qp.PartitionEpoch = p.LeaderEpoch, p.PartitionEpoch
	for _, id := range isr {
		m := kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: -1}
		if id == r.id {
			m.BrokerEpoch = r.epoch
		} else if known, ok := r.match[id]; ok {
			m.BrokerEpoch = known.epoch
		}
		qp.NewEpochISR = append(qp.NewEpochISR, m)
	}
	q.Topics = append(q.Topics, kmsg.AlterPartitionRequestTopic{TopicID: w.lab.image.Topics["t"].ID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{qp}})
	r.pending, r.pendingAt = isr, p.PartitionEpoch
	switch w.choose(4, "fate of the request") {
	case 0: // it comes late, and nobody hears of the answer
		w.late = append(w.late, q)
		return
	case 1: // the answer is lost
		w.do(q)
		return
	}
	resp := w.do(q).(*kmsg.AlterPartitionResponse)
	if resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		r.pending = nil
		return
	}
	w.see(r, len(w.history)-1)
}

// check tells whether a committed record is missing where it must not be.
func (w *partitionWorld) check() error {
	p := w.now()
	for _, id := range slices.Concat(p.ISR, p.ELR) {
		log := w.replicas[id].log
		for i, c := range w.committed {
			if i >= len(log) || log[i] != c {
				return fmt.Errorf("record %d (%+v) is committed, but replica %d, which may lead, has only %v: %+v", i, c, id, log, p)
			}
		}
	}
	return nil
}

func (w *partitionWorld) run(steps int) error {
	for i := range steps {
		w.step()
		if err := w.check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// R17, R18: as long as unclean election is off, whoever is in the ISR or the ELR has every committed record: always if logs outlive unclean stops, and with up to
// min.insync.replicas − 1 of them if they do not (KIP-966).
func TestNothingCommittedIsLost(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		t.Run(fmt.Sprintf("lossy=%v", lossy), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				choose := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
				n := 2 + choose(3, "replicas")
				w := newPartitionWorld(t, choose, n, 1+choose(n, "min ISR"), lossy, 0)
				if err := w.run(100); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// The same at greater length, where elections come in numbers; and the proof that the question can be answered no: with each planted bug it is. (A switch of
// these bugs is a flag of the entries, so it works without the build tag.)
func TestLongLivesOfPartitions(t *testing.T) {
	try := func(seed uint64, lossy bool, bugs flags) (*partitionWorld, error) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 2 + rng.IntN(3)
		w := newPartitionWorld(t, func(n int, _ string) int { return rng.IntN(n) }, n, 1+rng.IntN(n), lossy, bugs)
		return w, w.run(1000)
	}
	committed, elections := 0, 0
	bugs := []struct {
		fault.Bug
		flag  flags
		lossy bool // it loses what an unclean stop has lost
		found int
	}{
		{fault.UncleanElection, electAnyReplica, false, 0}, {fault.RestartedStaysInSync, keepRestarted, true, 0},
		{fault.UncleanStopStaysEligible, keepLost, true, 0}, {fault.ELRNotEmptied, keepEligible, false, 0},
	}
	for seed := range 30 * *seeds {
		w, err := try(seed, seed%2 == 0, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		committed += len(w.committed)
		elections += int(w.now().LeaderEpoch)
		for i := range bugs {
			if _, err := try(seed, bugs[i].lossy, bugs[i].flag); err != nil {
				bugs[i].found++
			}
		}
	}
	t.Logf("%d records committed, %d elections", committed, elections)
	if uint64(committed) < 100**seeds || uint64(elections) < 200**seeds {
		t.Errorf("%d records committed and %d elections are too few to show anything", committed, elections)
	}
	for _, b := range bugs {
		t.Logf("with %s %s %d of %d runs lose records", b.ID, b.Name, b.found, 30**seeds)
		if b.found == 0 {
			t.Errorf("%s %s is not found", b.ID, b.Name)
		}
	}
}
