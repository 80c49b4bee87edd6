package linearizability

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// tornDuel runs transactions over logs, takes records out of the logs, or leaves some of the last ones unread, and compares what is found with what was done.
var tornDuel = duel{name: "torn transactions", n: 3000, open: 2, kinds: map[model.Anomaly]int{model.TornTxn: 20, model.LostAcked: 20, model.DirtyRead: 500},
	fight: func(t testing.TB, r *rand.Rand, s *score) error {
		events, want, open := randomLogs(r)
		a, err := CheckTransactions(histories.Events(events), TransactionOptions{Versions: Logs, Claims: []model.Claim{model.Atomicity}})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[model.Anomaly]int64)
		for _, x := range a.Claims[0].Anomalies {
			got[x.Kind] = x.Count
			s.kinds[x.Kind] += x.Count
		}
		verdict := model.Held
		switch {
		case len(want) > 0:
			verdict = model.Violated
		case open:
			verdict = model.Undecided
		}
		s.asked("", len(want) == 0, verdict == model.Undecided)
		if !maps.Equal(got, want) || a.Claims[0].Verdict != verdict && a.Claims[0].Verdict != model.NotTested {
			return fmt.Errorf("%s with %v, want %s with %v:\n%s%s", a.Claims[0].Verdict, got, verdict, want, showTransactions(events), proofsOf(a))
		}
		return nil
	}}

func TestTornOracle(t *testing.T) { tornDuel.test(t) }
func FuzzTorn(f *testing.F)       { tornDuel.fuzz(f) }

// randomLogs makes a history of transactions over logs that are read at the end, with what is wrong in it, and whether some records can be neither found nor ruled out.
func randomLogs(r *rand.Rand) (events []histories.Event, want map[model.Anomaly]int64, open bool) {
	type record struct {
		txn     int
		value   int64
		offset  int64
		gone    bool
		unknown bool // nobody looked
	}
	type txn struct {
		steps   []histories.Step
		outcome histories.Type
		early   bool // a record of it was read before the end
	}
	var s script
	logs := map[string][]*record{"p": nil, "q": nil, "r": nil}
	names := []string{"p", "q", "r"}
	var all []txn
	byTxn := make(map[int][]*record)
	object := func(process int32, asked, got []histories.Step, end histories.Type) {
		ev := s.event(histories.Event{Kind: histories.Object, Process: process, Steps: asked})
		s.event(histories.Event{Kind: histories.Object, Type: end, Op: ev.Op, Process: process, Steps: got})
	}
	poll := []histories.Step{{Offset: -1}}
	for i := range 1 + r.IntN(5) {
		x := txn{outcome: histories.OK}
		happened := true
		switch r.IntN(5) {
		case 0:
			x.outcome, happened = histories.Info, r.IntN(2) == 0
		case 1:
			x.outcome, happened = histories.Fail, false
		}
		for j := range 1 + r.IntN(3) {
			name, value := names[r.IntN(3)], int64(10*i+j)
			x.steps = append(x.steps, histories.Step{Do: histories.AppendTo, Key: name, Value: histories.IntDatum(value), Offset: -1})
			if !happened {
				continue
			}
			offset := int64(r.IntN(2)) // sometimes there is a gap below
			if n := len(logs[name]); n > 0 {
				offset += logs[name][n-1].offset + 1
			}
			rec := &record{txn: i, value: value, offset: offset}
			logs[name] = append(logs[name], rec)
			byTxn[i] = append(byTxn[i], rec)
			if x.outcome == histories.OK && r.IntN(3) > 0 {
				x.steps[j].Offset = offset
			}
		}
		asked := make([]histories.Step, len(x.steps))
		copy(asked, x.steps)
		for j := range asked {
			asked[j].Offset = -1
		}
		got := x.steps
		if x.outcome != histories.OK {
			got = nil
		}
		object(int32(100+i), asked, got, x.outcome)
		if happened && r.IntN(3) == 0 {
			rec := byTxn[i][r.IntN(len(byTxn[i]))]
			object(200, poll, []histories.Step{{Key: x.steps[0].Key, Offset: -1}, {Key: nameOf(x.steps, rec.value), Value: histories.IntDatum(rec.value), Offset: rec.offset}}, histories.OK)
			x.early = true
		}
		all = append(all, x)
	}
	s.phase("drain")
	for _, name := range names {
		log := logs[name]
		for _, rec := range log {
			rec.gone = r.IntN(5) == 0
		}
		short := 0
		if r.IntN(4) == 0 && len(log) > 0 {
			short = 1 + r.IntN(len(log)) // the last so many are not read
		}
		var found []histories.Step
		until := int64(-1) // the last offset that was found
		for _, rec := range log[:len(log)-short] {
			if !rec.gone {
				found = append(found, histories.Step{Key: name, Value: histories.IntDatum(rec.value), Offset: rec.offset})
				until = rec.offset
			}
		}
		if short == 0 {
			end := int64(0)
			if n := len(log); n > 0 {
				end = log[n-1].offset + 1
			}
			found = append(found, histories.Step{Key: name, Offset: end})
		} else {
			for _, rec := range log {
				placed := false // is its offset known to the checker
				for _, st := range all[rec.txn].steps {
					placed = placed || st.Value.Int == rec.value && st.Offset >= 0
				}
				for _, ev := range s.events {
					for _, st := range ev.Steps {
						placed = placed || st.Do == histories.Read && st.Value.Form == histories.Int && st.Value.Int == rec.value
					}
				}
				if rec.gone = rec.gone || rec.offset > until; rec.gone && !(placed && rec.offset < until) {
					rec.unknown = true
				}
			}
		}
		object(300, poll, found, histories.OK)
		if len(found) == 0 {
			s.events[len(s.events)-1].Steps = poll
		}
	}
	want = make(map[model.Anomaly]int64)
	for i, x := range all {
		var here, gone, unknown int
		for _, rec := range byTxn[i] {
			switch {
			case rec.unknown:
				unknown++
			case rec.gone:
				gone++
			default:
				here++
			}
		}
		committed := x.outcome == histories.OK || x.outcome == histories.Info && (x.early || here > 0)
		switch {
		case !committed:
		case here > 0 && gone > 0:
			want[model.TornTxn]++
		case unknown > 0:
			open = true
		case gone > 0 && x.outcome == histories.OK:
			want[model.LostAcked]++
		case gone > 0:
			want[model.DirtyRead]++
		}
	}
	return s.events, want, open
}

func nameOf(steps []histories.Step, value int64) string {
	for _, s := range steps {
		if s.Value.Int == value {
			return s.Key
		}
	}
	return ""
}

// TestTransactionsHostile feeds nonsense: whatever it is, there is an answer or a malformed history.
func TestTransactionsHostile(t *testing.T) {
	n := scaled(t, 5000)
	answers := 0
	for i := range n {
		r := rand.New(rand.NewPCG(6, uint64(i)))
		var s script
		var open []histories.Event
		steps := func() (out []histories.Step) {
			for range r.IntN(5) {
				st := histories.Step{Do: histories.Do(min(r.IntN(60), 3) % 4), Key: string(rune('a' + r.IntN(3))), Offset: int64(r.IntN(6) - 1)}
				if st.Do != histories.AppendTo && r.IntN(20) > 0 {
					st.Do = histories.Read
				}
				switch r.IntN(5) {
				case 0, 1:
					st.Value = histories.IntDatum(int64(r.IntN(8)))
				case 2:
					st.Value.Form = histories.List
					for range r.IntN(4) {
						st.Value.List = append(st.Value.List, int64(r.IntN(8)))
					}
				}
				if st.Do == histories.AppendTo {
					st.Value = histories.IntDatum(int64(s.process)*4 + int64(len(out)))
				}
				if r.IntN(50) == 0 {
					st.Value.Int, st.Offset = -1<<63, 1<<62
				}
				out = append(out, st)
			}
			return out
		}
		for range 2 + r.IntN(12) {
			if len(open) == 0 || r.IntN(2) == 0 {
				s.process++
				st := steps()
				for j := range st {
					if st[j].Do == histories.Read {
						st[j].Value = histories.Datum{}
					}
				}
				open = append(open, s.event(histories.Event{Kind: histories.Object, Process: s.process, Steps: st}))
				continue
			}
			j := r.IntN(len(open))
			ev := open[j]
			open = append(open[:j:j], open[j+1:]...)
			end := histories.Event{Kind: histories.Object, Type: histories.Type(1 + max(0, r.IntN(6)-3)), Op: ev.Op, Process: ev.Process}
			for _, st := range ev.Steps {
				if st.Do == histories.AppendTo && r.IntN(40) > 0 {
					st.Offset = int64(r.IntN(5) - 1)
					end.Steps = append(end.Steps, st)
				}
			}
			for _, st := range steps() {
				if st.Do != histories.AppendTo {
					end.Steps = append(end.Steps, st)
				}
			}
			s.event(end)
		}
		a, err := CheckTransactions(histories.Events(s.events), TransactionOptions{Level: Level(r.IntN(4)), Sessions: r.IntN(2) == 0, Versions: Versions(r.IntN(3)),
			Interleaved: r.IntN(3) == 0, WholeReads: r.IntN(3) == 0, AtomicReads: r.IntN(3) == 0, Claims: TransactionClaims()})
		switch {
		case err != nil && !errors.Is(err, histories.ErrMalformed):
			t.Fatalf("history %d: %v, want a malformed history", i, err)
		case err == nil:
			answers++
			_ = fmt.Sprint(proofsOf(a))
		}
	}
	if t.Logf("%d of %d were answered", answers, n); answers < n/10 {
		t.Errorf("only %d of %d were answered", answers, n)
	}
}
