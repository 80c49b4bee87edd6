package linearizability

import (
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// script writes a history by hand. Every event takes one millisecond.
type script struct {
	events  []histories.Event
	process int32
	tie     func() bool // tells that the next event comes at the same time as the one before; nil: never
}

func (s *script) event(ev histories.Event) histories.Event {
	ev.Seq = uint64(len(s.events) + 1)
	if n := len(s.events); s.tie == nil {
		ev.Time = time.Duration(ev.Seq) * time.Millisecond
	} else if n > 0 {
		if ev.Time = s.events[n-1].Time; !s.tie() {
			ev.Time += time.Millisecond
		}
	}
	if ev.Op == 0 {
		ev.Op = ev.Seq
	}
	s.events = append(s.events, ev)
	return ev
}

// begin invokes an operation on a process of its own; the returned function completes it.
func (s *script) begin(ev histories.Event) func(end histories.Event) {
	s.process++
	ev.Process = s.process
	ev = s.event(ev)
	return func(end histories.Event) {
		end.Kind, end.Op, end.Process, end.Partition, end.Session, end.Node = ev.Kind, ev.Op, ev.Process, ev.Partition, ev.Session, ev.Node
		if end.Type == histories.Invoke {
			end.Type = histories.OK
		}
		s.event(end)
	}
}

func values(producer int32, seq int64, n int32) []histories.Run {
	return []histories.Run{{Producer: producer, Sequence: seq, Count: n}}
}

func at(offset int64, producer int32, seq int64, n int32) histories.Run {
	return histories.Run{Offset: offset, Producer: producer, Sequence: seq, Count: n}
}

func (s *script) send(producer int32, seq int64, n int32) func(histories.Event) {
	return s.begin(histories.Event{Kind: histories.Append, Runs: values(producer, seq, n)})
}

// acked is a whole append.
func (s *script) acked(offset int64, producer int32, seq int64, n int32) {
	s.send(producer, seq, n)(histories.Event{Offset: offset})
}

func (s *script) fetch(session int32, from int64) func(...histories.Run) {
	end := s.begin(histories.Event{Kind: histories.Fetch, Session: session, Offset: from})
	return func(runs ...histories.Run) { end(histories.Event{Runs: runs, HighWatermark: -1, Offset: from}) }
}

func (s *script) copyRead(node int32, from int64, runs ...histories.Run) {
	s.begin(histories.Event{Kind: histories.CopyRead, Node: node, Offset: from})(histories.Event{Runs: runs, HighWatermark: -1, Offset: from})
}

func (s *script) answer(k histories.Kind, offset int64, epoch int32) {
	s.begin(histories.Event{Kind: k})(histories.Event{Offset: offset, LeaderEpoch: epoch})
}

func (s *script) phase(name string) {
	s.event(histories.Event{Kind: histories.Phase, Type: histories.Info, Note: name})
}

// drain reads everything with fresh assignment up to an empty read.
func (s *script) drain(session int32, end int64, runs ...histories.Run) {
	s.phase("drain")
	s.fetch(session, 0)(runs...)
	s.fetch(session, end)()
}

// strong is a contract of full durability.
func strong() model.Contract {
	return model.LogContract(model.Contract{System: "test", Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true})
}

func whole() model.Facts {
	return model.Facts{DrainComplete: true, Liveness: model.Recovery{Checked: true}}
}

// decide checks a script with the floors of a bare history.
func decide(t testing.TB, s *script, c model.Contract, f model.Facts, more ...model.Claim) *Answer {
	t.Helper()
	var claims []model.Claim
	for _, p := range c.Promises {
		claims = append(claims, p.Claim)
	}
	a, err := CheckLog(histories.Events(s.events), c, f, Options{Claims: append(claims, more...), Floors: model.HistoryFloors()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// anomalies lists what was found against the contract, and the permitted ones.
func (a *Answer) anomalies() (violated, permitted map[model.Anomaly]int64) {
	violated, permitted = make(map[model.Anomaly]int64), make(map[model.Anomaly]int64)
	for _, c := range a.Claims {
		for _, x := range c.Anomalies {
			violated[x.Kind] += x.Count
		}
		for _, x := range c.Permitted {
			permitted[x.Kind] += x.Count
		}
	}
	return violated, permitted
}

func (a *Answer) claim(id model.Claim) model.ClaimResult {
	for _, c := range a.Claims {
		if c.ID == id {
			return c
		}
	}
	return model.ClaimResult{}
}
