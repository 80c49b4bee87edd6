package linearizability

import (
	"runtime"
	"testing"
	"unsafe"

	"ackproof/histories"
	"ackproof/model"
)

// TestMonitorMemory: what a monitor keeps does not grow with the run, though every message, commit and record of the run is new.
func TestMonitorMemory(t *testing.T) {
	const rounds = 4000
	next := histories.Step{Do: histories.Dequeue}
	runs := map[string]func(s *script, n int64){
		"commits": func(s *script, n int64) {
			s.commit("g/0", n, n, 1+n/100)
			s.steps(histories.Step{Do: histories.Committed, Key: "g/0"})(histories.OK, committedAs("g/0", n, n))
		},
		"fifo": func(s *script, n int64) {
			open := s.steps(next)
			s.sent(sendAs(n, n, n))
			open(histories.OK, take(n))
			s.took()
		},
		"queue": func(s *script, n int64) {
			s.sent(send(n))
			s.handled(-2, lease(n, 5))
			s.handled(-2, about(histories.Extend, n, 9))
			s.handled(-2, about(histories.Nack, n, 0))
			s.handled(-3, lease(n, 5))
			s.handled(-3, about(histories.Ack, n, 0))
		},
		"groups": func(s *script, n int64) {
			if n%100 == 1 {
				s.as(-2, histories.Step{Do: histories.Revoked, Key: "g/0"})(histories.OK)
				s.assigned(-2, (n-1)*3, 1+n/100)
			}
			s.given(-2, (n-1)*3, 3)
			s.commits(-2, n*3, 1+n/100)
		},
	}
	for name, round := range runs {
		m := groupCheckers[name].monitor(MonitorOptions{Floors: model.Floors{}, Claims: groupCheckers[name].all, Window: 50 * ms})
		s := &script{}
		fed, at := 0, int32(0)
		heap := func(until int64) uint64 {
			for n := int64(at) + 1; n <= until; n++ {
				s.process = int32(n) * 10
				round(s, n)
				for ; fed < len(s.events); fed++ {
					if c, err := m.Step(&s.events[fed]); err != nil || c != nil {
						t.Fatalf("%s: %v, %+v", name, err, c)
					}
				}
			}
			at = int32(until)
			numbers := len(s.events) // the script's own memory does not count
			s.events = make([]histories.Event, numbers)
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc - uint64(numbers)*uint64(unsafe.Sizeof(histories.Event{}))
		}
		early := heap(rounds / 4)
		late := heap(rounds)
		if late > early+64<<10 {
			t.Errorf("%s: %d bytes after %d rounds, %d after %d, want no growth", name, early, rounds/4, late, rounds)
		}
		if a := m.Finish(model.Facts{}); a.Verdict() != model.Held {
			t.Errorf("%s is %s, want held", name, a.Verdict())
		}
		runtime.KeepAlive(s)
	}
}
