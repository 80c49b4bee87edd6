package linearizability

import (
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

// TestOnlineAgrees: over legal and damaged histories under every configuration, what Online sees CheckLog finds too, and of the kinds that Online decides,
// wherever all that was known stayed, also the other way round.
func TestOnlineAgrees(t *testing.T) {
	sightings, silent := make(map[model.Anomaly]int), 0
	for i := range scaled(t, 4000) {
		r := rand.New(rand.NewPCG(11, uint64(i)))
		s := newCluster(r, configuration(i))
		s.run(200)
		switch i % 4 {
		case 1, 2:
			for range 1 + r.IntN(2) {
				spoil(r, s)
			}
		case 3:
			rewrite(r, s)
		}
		a, err := CheckLog(histories.Events(s.events), s.c, whole(), Options{Floors: model.HistoryFloors()})
		if err != nil {
			continue // spoilt beyond reading
		}
		seen := watch(&s.script, s.c)
		for _, x := range seen {
			sightings[x.Anomaly]++
			if a.Verdict() != model.Violated {
				t.Fatalf("history %d under %+v: online says %v, the check finds nothing", i, s.c, x)
			}
		}
		if len(seen) > 0 || s.c.Acks != -1 || s.c.Unclean {
			continue
		}
		if violated, _ := a.anomalies(); violated[model.LostAcked]+violated[model.DirtyRead]+violated[model.UnfillableGap] > 0 {
			continue // what was known did not stay, which is known at the end
		}
		silent++
		for _, claim := range a.Claims {
			for _, x := range claim.Anomalies {
				elsewhere := strings.Contains(x.Proof.Sentence, "but the log has it at") // an acknowledgement that names an offset of which nothing else is known
				if slices.Contains(onlineKinds, x.Kind) && !elsewhere {
					t.Fatalf("history %d under %+v: online says nothing, the check finds\n%s", i, s.c, proofs(a))
				}
			}
		}
	}
	if len(sightings) < 7 || silent < 100 {
		t.Fatalf("seen %v, and nothing in %d histories: they prove little", sightings, silent)
	}
	t.Logf("seen %v, and nothing in %d histories", sightings, silent)
}
