package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ackproof/model"
)

// Report is what many cases found together. JSON.
type Report struct {
	Seeds       int                     `json:"seeds"`
	Verdict     model.Verdict           `json:"verdict"`
	Exit        int                     `json:"exit"`
	Verdicts    map[model.Verdict]int   `json:"verdicts"` // seeds by verdict
	Violated    []Summary               `json:"violated"` // by seed
	Open        []Summary               `json:"open"`     // undecided or not tested, by seed, the first few
	Failed      []Summary               `json:"failed"`
	Permitted   map[model.Anomaly]int64 `json:"permitted"`
	Effective   map[string]int          `json:"effective"` // faults with an effect, by kind
	Faults      int                     `json:"faults"`
	Changes     int                     `json:"leader_changes"`
	Acked       int64                   `json:"acked"`
	Events      uint64                  `json:"events"`
	VirtualSecs float64                 `json:"virtual_seconds"`
	CPUSecs     float64                 `json:"cpu_seconds"`
	RealSecs    float64                 `json:"real_seconds"`
}

const openAtMost = 20

// NewReport is the report of nothing yet.
func NewReport() *Report {
	return &Report{Verdicts: map[model.Verdict]int{}, Permitted: map[model.Anomaly]int64{}, Effective: map[string]int{}, Violated: []Summary{}, Open: []Summary{}, Failed: []Summary{}}
}

// Add takes in one case.
func (r *Report) Add(s Summary) {
	r.Seeds++
	r.Events += s.Events
	r.VirtualSecs += float64(s.VirtualMS) / 1000
	r.CPUSecs += s.CPU
	if s.Failed != "" {
		r.Failed = append(r.Failed, s)
		return
	}
	r.Verdicts[s.Verdict]++
	switch s.Verdict {
	case model.Violated:
		r.Violated = append(r.Violated, s)
	case model.Held:
	default:
		r.Open = append(r.Open, s)
	}
	for k, n := range s.Permitted {
		r.Permitted[k] += n
	}
	for k, n := range s.Effective {
		r.Effective[k] += n
	}
	r.Faults += len(s.Results) + s.Effective[model.RebalanceStorm]
	r.Changes += s.Changes
	r.Acked += s.Acked
}

// Close decides. Nothing at all, or no fault with an effect, is not tested.
func (r *Report) Close(real time.Duration) {
	r.RealSecs = real.Seconds()
	bySeed := func(a, b Summary) int { return cmp.Compare(a.Seed(), b.Seed()) }
	slices.SortFunc(r.Violated, bySeed)
	slices.SortFunc(r.Open, bySeed)
	slices.SortFunc(r.Failed, bySeed)
	open := len(r.Open)
	r.Open = r.Open[:min(open, openAtMost)]
	switch {
	case len(r.Violated) > 0:
		r.Verdict = model.Violated
	case open > 0:
		r.Verdict = model.Undecided
	case len(r.Effective) == 0:
		r.Verdict = model.NotTested
	default:
		r.Verdict = model.Held
	}
	r.Exit = r.Verdict.Exit()
	if len(r.Failed) > 0 && r.Verdict != model.Violated {
		r.Exit = model.ExitCrash
	}
}

// Text is the report for people; replay gives the command that runs one seed again.
func (r *Report) Text(replay func(Summary) string) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("result", "%s", strings.ToUpper(string(r.Verdict)))
	var verdicts []string
	for _, v := range []model.Verdict{model.Held, model.Violated, model.Undecided, model.NotTested} {
		if n := r.Verdicts[v]; n > 0 {
			verdicts = append(verdicts, fmt.Sprintf("%d %s", n, v))
		}
	}
	line("seeds", "%d: %s", r.Seeds, strings.Join(verdicts, ", "))
	line("work", "%d records acknowledged, %d leader changes", r.Acked, r.Changes)
	var kinds []string
	n := 0
	for _, k := range slices.Sorted(maps.Keys(r.Effective)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, r.Effective[k]))
		n += r.Effective[k]
	}
	line("faults", "%d of %d with an effect: %s", n, r.Faults, strings.Join(kinds, ", "))
	for _, k := range slices.Sorted(maps.Keys(r.Permitted)) {
		line("permitted", "%d %s, by what the configuration of their seeds allows", r.Permitted[k], k)
	}
	if r.CPUSecs > 0 && r.RealSecs > 0 {
		line("speed", "%.0f virtual seconds in %.1f s: %.0f × real time per core; %.2f M events/s per core", r.VirtualSecs, r.RealSecs, r.VirtualSecs/r.CPUSecs, float64(r.Events)/r.CPUSecs/1e6)
	}
	for _, s := range r.Violated {
		fmt.Fprintf(&b, "\nVIOLATED   seed %d: %s\n", s.Seed(), Line(s))
		if s.Sighting != "" {
			fmt.Fprintf(&b, "           %s\n", s.Sighting)
		}
		fmt.Fprintf(&b, "           %s\n", replay(s))
	}
	for _, s := range r.Open {
		fmt.Fprintf(&b, "\n%-10s seed %d: %s\n           %s\n", strings.ToUpper(string(s.Verdict)), s.Seed(), strings.Join(s.Open, "; "), replay(s))
	}
	for _, s := range r.Failed {
		fmt.Fprintf(&b, "\nFAILED     seed %d: %s\n           %s\n", s.Seed(), s.Failed, replay(s))
	}
	return b.String()
}

// Line says in one line what is wrong with a violated or failed case.
func Line(s Summary) string {
	if s.Failed != "" {
		return "failed: " + strings.SplitN(s.Failed, "\n", 2)[0]
	}
	var what []string
	for _, a := range s.Anomalies {
		what = append(what, string(a))
	}
	if len(s.Broken) > 0 {
		what = append(what, "inside: "+s.Broken[0])
	}
	return strings.Join(what, ", ")
}
