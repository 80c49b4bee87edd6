package page

import (
	"maps"
	"slices"

	"ackproof/histories"
	"ackproof/report"
)

// pictureData is what the script has to know beside the operations. Times are µs of the run.
type pictureData struct {
	Operations int          `json:"operations"`
	End        int64        `json:"end"`
	Phases     []phase      `json:"phases"`
	Lanes      []lane       `json:"lanes"`
	LaneOf     []int        `json:"laneOf"`    // of a process
	Processes  []int32      `json:"processes"` // their numbers
	Faults     []faultBand  `json:"faults"`
	Leaders    []leaderBand `json:"leaders"`
	Proofs     []proofMark  `json:"proofs"`
	Kinds      []string     `json:"kinds"`
	Outcomes   []string     `json:"outcomes"`
	Remarks    []string     `json:"remarks"`
	Gaps       []gapBand    `json:"gaps"`
}

type faultBand struct {
	N         int    `json:"n"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Proof     string `json:"proof"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Effective bool   `json:"effective"`
}

type leaderBand struct {
	Partition int32      `json:"partition"`
	Spans     [][3]int64 `json:"spans"` // from, to, node
}

type proofMark struct {
	N   int      `json:"n"`
	Ops []uint64 `json:"ops"`
}

type gapBand struct {
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Why       string `json:"why"`
}

func picture(run *Run, c *collection) pictureData {
	out := pictureData{Operations: c.ops.n, End: c.end.Microseconds(), Phases: c.phases, Remarks: c.remarks,
		Faults: []faultBand{}, Leaders: []leaderBand{}, Proofs: []proofMark{}, Gaps: []gapBand{}}
	if out.Phases == nil {
		out.Phases = []phase{}
	}
	out.LaneOf, out.Lanes = c.lanes()
	if out.Lanes == nil {
		out.Lanes = []lane{}
	}
	for _, p := range c.processes {
		out.Processes = append(out.Processes, p.id)
	}
	faults := c.timed(run.Results.Faults)
	for _, f := range faults {
		if f.started {
			out.Faults = append(out.Faults, faultBand{f.index + 1, report.Visible(f.name()), report.Visible(f.Role), report.Visible(f.Proof), f.from.Microseconds(), f.to.Microseconds(), f.Effective})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(c.leaders)) {
		b := leaderBand{Partition: p, Spans: [][3]int64{}}
		for _, s := range c.leaders[p].spans {
			b.Spans = append(b.Spans, [3]int64{s.from.Microseconds(), s.to.Microseconds(), int64(s.node)})
		}
		out.Leaders = append(out.Leaders, b)
	}
	for i, p := range run.Proofs {
		m := proofMark{N: i + 1, Ops: []uint64{}}
		for _, o := range p.Operations {
			m.Ops = append(m.Ops, o.Op)
		}
		out.Proofs = append(out.Proofs, m)
	}
	_, _, all := c.available(faults)
	for _, g := range gapsOf(all) {
		out.Gaps = append(out.Gaps, gapBand{g.partition, g.from.Microseconds(), g.to.Microseconds(), report.Visible(g.why)})
	}
	for k := range histories.Fault {
		out.Kinds = append(out.Kinds, k.String())
	}
	for _, t := range []histories.Type{histories.Invoke, histories.OK, histories.Fail, histories.Info} {
		out.Outcomes = append(out.Outcomes, t.String())
	}
	return out
}
