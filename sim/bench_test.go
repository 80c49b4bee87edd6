package sim

import "testing"

// BenchmarkRun runs the default case; it prints events and virtual seconds per second of the clock.
func BenchmarkRun(b *testing.B) {
	var events uint64
	var virtual float64
	for i := range b.N {
		r, err := Run(Default(int64(i)).WithSchedule(nil), Options{})
		if err != nil {
			b.Fatal(err)
		}
		events += r.Events
		virtual += r.Virtual.Seconds()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(virtual/b.Elapsed().Seconds(), "×real")
}
