package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// watch steps through a whole history and returns what was seen, the first of each event.
func watch(s *script, c model.Contract) (seen []*Sighting) {
	o := NewOnline(c)
	for i := range s.events {
		if x := o.Step(&s.events[i]); x != nil {
			seen = append(seen, x)
		}
	}
	if x := o.Finish(); x != nil {
		seen = append(seen, x)
	}
	return seen
}

// onlineKinds are what Online decides, whatever the rest of the history holds.
var onlineKinds = []model.Anomaly{model.ReorderedRealtime, model.FutureRead, model.Phantom, model.CorruptValue, model.ForeignRecord, model.Reordered, model.Duplicate,
	model.InconsistentOffset, model.NonmonotonicPoll, model.StaleEndOffset, model.StartOffsetBackwards, model.StartAboveHW}

// TestOnlinePlanted: of everything that is planted, Online sees what is certain during the run, and nothing that the check does not find.
func TestOnlinePlanted(t *testing.T) {
	for _, c := range planted {
		s := &script{}
		c.write(s)
		want := false
		var claims []model.Claim
		for _, claim := range decide(t, s, strong(), whole()).Claims {
			if claim.Verdict == model.Violated {
				claims = append(claims, claim.ID)
			}
			want = want || slices.ContainsFunc(claim.Anomalies, func(x model.AnomalyResult) bool { return slices.Contains(onlineKinds, x.Kind) })
		}
		seen := watch(s, strong())
		if want && len(seen) == 0 {
			t.Errorf("%s: nothing was seen online, the check finds %v violated", c.name, claims)
		}
		if len(seen) > 0 && !slices.Contains(claims, seen[0].Claim) {
			t.Errorf("%s: online %v, the check finds %v violated", c.name, seen[0], claims)
		}
	}
}

// onlineDuel: over legal and damaged histories under every configuration, what Online sees CheckLog finds too, and of the kinds that Online decides, wherever all
// that was known stayed, also the other way round.
var onlineDuel = duel{name: "log, online against offline", n: 4000, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	c := newCluster(r, configuration(r.IntN(len(configurations))))
	c.run(200)
	switch r.IntN(4) {
	case 1, 2:
		for range 1 + r.IntN(2) {
			spoil(r, c)
		}
	case 3:
		rewrite(r, c)
	}
	a, err := CheckLog(histories.Events(c.events), c.c, whole(), Options{Floors: model.HistoryFloors()})
	if err != nil {
		return nil // spoilt beyond reading
	}
	s.asked("", a.Verdict() != model.Violated, false)
	seen := watch(&c.script, c.c)
	for _, x := range seen {
		s.kinds[x.Anomaly]++
		if a.Verdict() != model.Violated {
			return fmt.Errorf("under %+v online says %v, the check finds nothing", c.c, x)
		}
	}
	if len(seen) > 0 || c.c.Acks != -1 || c.c.Unclean {
		return nil
	}
	if violated, _ := a.anomalies(); violated[model.LostAcked]+violated[model.DirtyRead]+violated[model.UnfillableGap]+violated[model.PollSkip] > 0 {
		return nil // what was known did not stay, or was passed over by a reader and taken for a hole: that is known at the end
	}
	s.notes["nothing seen where all stayed"]++
	for _, claim := range a.Claims {
		for _, x := range claim.Anomalies {
			elsewhere := strings.Contains(x.Proof.Sentence, "but the log has it at") // an acknowledgement that names an offset of which nothing else is known
			if slices.Contains(onlineKinds, x.Kind) && !elsewhere {
				return fmt.Errorf("under %+v online says nothing, the check finds\n%s", c.c, proofs(a))
			}
		}
	}
	return nil
}, kinds: map[model.Anomaly]int{model.CorruptValue: 40, model.InconsistentOffset: 20, model.NonmonotonicPoll: 100, model.Phantom: 20, model.ReorderedRealtime: 400, model.ReplicaDivergence: 20, model.StaleEndOffset: 100}}

func TestOnlineOracle(t *testing.T) { onlineDuel.test(t) }
func FuzzOnline(f *testing.F)       { onlineDuel.fuzz(f) }

// TestOnlineFarBehind: offsets that have left the window are compared in blocks, and memory does not grow with what was written.
func TestOnlineFarBehind(t *testing.T) {
	const blocks, batch = 64, 128
	c := strong()
	run := func(altered int64) (o *Online, seen *Sighting) {
		s := &script{}
		o = NewOnline(c)
		step := func() {
			for i := range s.events {
				if x := o.Step(&s.events[i]); x != nil && seen == nil {
					seen = x
				}
			}
			s.events = s.events[:0]
		}
		seq := uint64(0)
		number := func() { // script counts from the events that it holds
			for i := range s.events {
				seq++
				s.events[i].Seq = seq
				if s.events[i].Type == histories.Invoke {
					s.events[i].Op = seq
				} else {
					s.events[i].Op = seq - 1
				}
			}
			step()
		}
		for k := int64(0); k < blocks*onlineBlock; k += batch {
			s.acked(k, 1, k, batch)
			number()
			s.fetch(1, k)(at(k, 1, k, batch))
			number()
		}
		for k := int64(0); k < blocks*onlineBlock; k += batch { // another session reads it all again
			runs := []histories.Run{at(k, 1, k, batch)}
			if k <= altered && altered < k+batch {
				runs = nil
				for i := range int64(batch) {
					sequence := k + i
					if sequence == altered {
						sequence++
					}
					runs = histories.AppendRecord(runs, k+i, histories.Value{Producer: 1, Sequence: sequence}, histories.Sound)
				}
			}
			s.fetch(2, k)(runs...)
			number()
		}
		return o, seen
	}
	o, seen := run(-1)
	if seen != nil {
		t.Errorf("two readers that agree: %v", seen)
	}
	p, w := o.parts[0], o.writers[writerKey{1, 0}]
	if len(p.hashes) > blocks || len(p.slots) != onlineWindow || len(o.open) != 0 || len(w.unseen) != 0 || len(w.sent)+len(w.seen)+len(w.placed) != 3 {
		t.Errorf("kept: %d hashes, %d slots, %d open, %d unseen, %d stretches", len(p.hashes), len(p.slots), len(o.open), len(w.unseen), len(w.sent)+len(w.seen)+len(w.placed))
	}
	if _, seen := run(3*onlineBlock + 77); seen == nil || seen.Anomaly != model.InconsistentOffset || seen.Offset != 3*onlineBlock {
		t.Errorf("a record far behind is another: %v", seen)
	}
	if _, seen := run((blocks-2)*onlineBlock + 77); seen == nil || seen.Offset != (blocks-2)*onlineBlock+77 {
		t.Errorf("a record in the window is another: %v", seen)
	}
	for i := range int32(3 * sessionsKept) {
		o.sessions.get(readerKey{0, i, 0})
	}
	if n := len(o.sessions.young) + len(o.sessions.old); n > 2*sessionsKept {
		t.Errorf("%d sessions kept, expected at most %d", n, 2*sessionsKept)
	}
}

func BenchmarkOnline(b *testing.B) {
	const n = 1_000_000
	events := busy(n)
	for b.Loop() {
		o := NewOnline(strong())
		for i := range events {
			if x := o.Step(&events[i]); x != nil {
				b.Fatal(x)
			}
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}
