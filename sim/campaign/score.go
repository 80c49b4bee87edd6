package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ackproof/broker/fault"
)

// Score is what a harness is worth: which planted bugs it finds, how soon, and how often it cries wolf. JSON.
type Score struct {
	Plants []PlantScore `json:"plants"`
	// FalseAlarms are the controls that were violated: the same cases without the bug.
	FalseAlarms int  `json:"false_alarms"`
	Controls    int  `json:"controls"`
	Made        Made `json:"made"`
	// ControlsOpen are the controls that were undecided, not tested, or failed.
	ControlsOpen int `json:"controls_open"`
}

// Made says how a score came to be.
type Made struct {
	Command string  `json:"command"`
	Date    string  `json:"date"` // day, UTC
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
	// Share of the processors that the cases got which they asked for; well below 1 the machine was busy with other things. CPU times suffer little by that. 0: not known.
	Share float64 `json:"share"`
}

// PlantScore is how one bug fared in one world. Figures are medians over the campaigns; a campaign without a finding counts as worse than any with one.
type PlantScore struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	World     string `json:"world"` // "sim", "real" or "store"
	Found     bool   `json:"found"` // by at least half of the campaigns
	FoundBy   int    `json:"found_by"`
	Campaigns int    `json:"campaigns"`
	// Inside are the findings that an invariant of the simulator showed before any client could see something.
	Inside int `json:"inside,omitempty"`
	// Anomaly is the one that was reported most often, of those of a finding the one that was expected first; "invariant" if clients never saw anything, also when
	// the run went on after an invariant did not hold.
	Anomaly    string   `json:"anomaly,omitempty"`
	Expected   []string `json:"expected"`
	AsExpected int      `json:"as_expected"` // findings that report an anomaly that was expected
	// Until it was found, with everything that was run without finding it. Zero if it was not found.
	Seeds          int     `json:"seeds_to_find"`
	VirtualSeconds float64 `json:"virtual_seconds,omitempty"`
	Events         uint64  `json:"events,omitempty"`
	CPUSeconds     float64 `json:"cpu_seconds"` // real: seconds
	// The schedule, made small; of the findings that were shrunk.
	Shrunk           int `json:"shrunk,omitempty"`
	ShrunkFaults     int `json:"shrunk_faults"`
	ShrunkExecutions int `json:"shrunk_executions,omitempty"`
}

// Inside stands for an anomaly where only an invariant of the simulator shows that something is wrong.
const Inside = "invariant"

// Finding is how one campaign of any world ended.
type Finding struct {
	Found     bool
	Anomalies []string // in the order of the claims
	Inside    bool     // an invariant showed it first
	Seeds     int
	VirtualMS int64
	Events    uint64
	Seconds   float64
}

// Finding is the trail's end.
func (t Trail) Finding() Finding {
	f := Finding{Found: t.Found != nil, Seeds: t.Seeds, VirtualMS: t.VirtualMS, Events: t.Events, Seconds: t.CPU}
	if t.Found != nil {
		f.Inside = len(t.Found.Broken) > 0
		for _, a := range t.Found.Anomalies {
			f.Anomalies = append(f.Anomalies, string(a))
		}
	}
	return f
}

// NewPlantScore sums up the campaigns that looked for a bug.
func NewPlantScore(q fault.Entry, world string, findings []Finding) PlantScore {
	p := PlantScore{ID: q.ID, Name: q.Name, World: world, Campaigns: len(findings), Expected: q.Anomalies}
	named := map[string]int{}
	for _, f := range findings {
		if !f.Found {
			continue
		}
		p.FoundBy++
		if f.Inside {
			p.Inside++
		}
		name := Inside
		if len(f.Anomalies) > 0 {
			name = f.Anomalies[0]
		}
		if i := slices.IndexFunc(q.Anomalies, func(a string) bool { return slices.Contains(f.Anomalies, a) }); i >= 0 {
			name = q.Anomalies[i]
			p.AsExpected++
		}
		named[name]++
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if named[name] > named[p.Anomaly] {
			p.Anomaly = name
		}
	}
	if p.Found = p.Campaigns > 0 && 2*p.FoundBy >= p.Campaigns; p.Found {
		p.Seeds = median(findings, func(f Finding) int { return f.Seeds })
		p.VirtualSeconds = median(findings, func(f Finding) float64 { return float64(f.VirtualMS) / 1000 })
		p.Events = median(findings, func(f Finding) uint64 { return f.Events })
		p.CPUSeconds = median(findings, func(f Finding) float64 { return f.Seconds })
	}
	return p
}

// TakeShrunk adds how small the findings became.
func (p *PlantScore) TakeShrunk(all []Shrunk) {
	if len(all) == 0 {
		return
	}
	p.Shrunk = len(all)
	var faults, executions []int
	for _, s := range all {
		faults = append(faults, len(s.Summary.Case.Schedule.Faults))
		executions = append(executions, s.Executions)
	}
	slices.Sort(faults)
	slices.Sort(executions)
	p.ShrunkFaults, p.ShrunkExecutions = faults[len(faults)/2], executions[len(executions)/2]
}

// median of what the campaigns took; those without a finding are the largest. With an even number it is the larger one of the two in the middle, unless that one
// found nothing.
func median[T cmp.Ordered](findings []Finding, of func(Finding) T) T {
	var found []T
	for _, f := range findings {
		if f.Found {
			found = append(found, of(f))
		}
	}
	slices.Sort(found)
	return found[min(len(findings)/2, len(found)-1)]
}

// Missing are the bugs that were not found.
func (s Score) Missing() (ids []string) {
	for _, p := range s.Plants {
		if !p.Found {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// header of the table, in plain text and in Markdown.
var header = []string{"bug", "name", "world", "found", "inside first", "anomaly", "as expected", "seeds", "virtual s", "events", "CPU s", "shrunk to", "executions"}

func (p PlantScore) row() []string {
	row := []string{p.ID, p.Name, p.World, fmt.Sprintf("%d of %d", p.FoundBy, p.Campaigns), dash(float64(p.Inside), "%.0f"), cmp.Or(p.Anomaly, "–"), fmt.Sprintf("%d of %d", p.AsExpected, p.FoundBy)}
	if !p.Found {
		return append(row, "–", "–", "–", "–", "–", "–")
	}
	row = append(row, fmt.Sprint(p.Seeds), dash(p.VirtualSeconds, "%.0f"), dash(float64(p.Events), "%.0f"), fmt.Sprintf("%.1f", p.CPUSeconds))
	if p.Shrunk == 0 {
		return append(row, "–", "–")
	}
	return append(row, fmt.Sprintf("%d faults", p.ShrunkFaults), fmt.Sprint(p.ShrunkExecutions))
}

func dash(v float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// Text is the table for a terminal.
func (s Score) Text() string {
	rows := [][]string{header}
	for _, p := range s.Plants {
		rows = append(rows, p.row())
	}
	wide := make([]int, len(header))
	for _, r := range rows {
		for i, cell := range r {
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			line.WriteString(cell + strings.Repeat(" ", wide[i]-len([]rune(cell))+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String() + "\n" + s.conclusion() + "\n"
}

// Markdown is the same table, with how it was made.
func (s Score) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Made on %s by `%s`, with %d processors, in %.0f s%s.\n\n",
		s.Made.Date, s.Made.Command, s.Made.CPUs, s.Made.Seconds, s.Made.busy())
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	b.WriteString("|" + strings.Repeat("---|", len(header)) + "\n")
	for _, p := range s.Plants {
		r := p.row()
		r[1] = "`" + r[1] + "`"
		line(r)
	}
	return b.String() + "\n" + s.conclusion() + "\n"
}

func (m Made) busy() string {
	switch {
	case m.Share == 0:
		return ""
	case m.Share < 0.75:
		return fmt.Sprintf("; the machine was busy with other things, the cases got %.0f%% of the processors that they asked for", 100*m.Share)
	}
	return "; the machine had nothing else to do"
}

func (s Score) conclusion() string {
	missing := s.Missing()
	text := fmt.Sprintf("%d of %d bugs found", len(s.Plants)-len(missing), len(s.Plants))
	if len(missing) > 0 {
		text += ", not " + strings.Join(missing, ", ")
	}
	text += fmt.Sprintf(". %d controls, the same cases without the bug: %d false alarms", s.Controls, s.FalseAlarms)
	if s.ControlsOpen > 0 {
		text += fmt.Sprintf(", %d undecided or not tested", s.ControlsOpen)
	}
	return text + "."
}
