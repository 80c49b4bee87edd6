package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/report"
)

// view is what the template shows. Every text of it may come from outside: the template escapes, and write makes visible what does not print.
type view struct {
	*Run
	Verdict    string // in capitals
	Meaning    string // of the exit code
	Facts      []string
	ClaimRows  []claimRow
	Proofs     []proofView
	Grids      []grid
	Faults     []faultRow
	LoadFrom   time.Duration
	LoadTo     time.Duration
	Available  []availability
	Gaps       []gap
	MoreGaps   int
	GapLeast   string
	Latencies  []latencyRow
	Comparison *Comparison
	Bound      string
	Untested   []string
	Permitted  []permitted
	Operations int
	NotDrawn   string
	DataBytes  string
	BytesPerOp string
}

type claimRow struct {
	ID, Plain, Promise, Verdict, Mark, Evidence, Reason string
	Anomalies                                           []anomalyRow
}

type anomalyRow struct {
	Kind, Count, Where string
	Proof              int // number of the proof on the page, 0 if there is none
}

type permitted struct{ Kind, Count, Because, Claim string }

type proofView struct {
	N                                         int
	Anomaly, Claim, About, Sentence           string
	Operations                                []proofOp
	Drawing                                   *drawing
	JSON, Verify                              string
	Path, Porcupine, NoPorcupine, Certificate string
}

type proofOp struct {
	Role, Text, Times string
	Op                uint64
}

type faultRow struct {
	N                    int
	What, Role, Proof    string
	From, To             string
	Effective, Unstarted bool
}

// Marks of the verdicts: a sign beside the word, so that nobody needs the colour.
var marks = map[model.Verdict]string{model.Held: "✔", model.Violated: "✘", model.Undecided: "?", model.NotTested: "–"}

// boundLeast is the least number of runs from which it is worth telling how often a violation may still occur.
const boundLeast = 3

// newView puts into words what was collected.
func newView(run *Run, c *collection, size int) *view {
	res := &run.Results
	v := &view{Run: run, Verdict: strings.ToUpper(string(res.Verdict)), Meaning: report.Meaning(res.Exit), GapLeast: span(gapLeast), Operations: c.ops.n}
	faults := c.timed(res.Faults)
	v.Faults = faultRows(faults)
	v.Facts = headFacts(res)
	if run.Planted != "" {
		v.Facts = append(v.Facts, "with the bug "+run.Planted+" planted on purpose")
	}
	v.claims(run)
	for i := range run.Proofs {
		v.Proofs = append(v.Proofs, newProofView(i+1, &run.Proofs[i], run.Dir))
	}
	v.LoadFrom, v.LoadTo, v.Available = c.available(faults)
	v.Gaps = gapsOf(v.Available)
	const shown = 20
	if len(v.Gaps) > shown {
		v.MoreGaps = len(v.Gaps) - shown
		v.Gaps = v.Gaps[:shown]
	}
	v.Latencies = c.latencies.rows()
	if p := run.Series.Previous; p != nil {
		cmp := Compare(p.Results, *res)
		v.Comparison = &cmp
	}
	if n := run.Series.Runs; n >= boundLeast && run.Series.Violated == 0 {
		v.Bound = fmt.Sprintf("No violation in %s of this test in this store: fewer than %.2g %% of such runs violate anything, at 95 %% confidence, under this workload and mix of faults.",
			plural(n, "decided run"), 100*bound(n))
	}
	v.Untested = untested(run, faults)
	if c.left > 0 {
		v.NotDrawn = fmt.Sprintf("The run has %s operations. The first %s are here, up to %s; the others are counted everywhere else on this page but not drawn.",
			number(int64(c.ops.n)+c.left), number(c.ops.n), moment(c.leftAt))
	}
	v.DataBytes = fmt.Sprintf("%.1f MB", float64(size)*4/3/1e6)
	if c.ops.n > 0 {
		v.BytesPerOp = fmt.Sprintf("%.1f", float64(size)*4/3/float64(c.ops.n))
	}
	return v
}

func headFacts(res *model.Results) []string {
	hit, kinds := 0, map[string]int{}
	for _, f := range res.Faults {
		if f.Effective {
			hit++
			kinds[f.Kind]++
		}
	}
	var names []string
	for k, n := range kinds {
		names = append(names, fmt.Sprintf("%s × %d", k, n))
	}
	slices.Sort(names)
	faults := "no faults"
	if len(res.Faults) > 0 {
		faults = fmt.Sprintf("%d of %s had an effect", hit, plural(len(res.Faults), "fault"))
		if len(names) > 0 {
			faults += " (" + strings.Join(names, ", ") + ")"
		}
	}
	t := res.Seconds
	return []string{
		fmt.Sprintf("%s operations: %s ok, %s failed, %s unknown", number(res.Operations.OK+res.Operations.Fail+res.Operations.Info),
			number(res.Operations.OK), number(res.Operations.Fail), number(res.Operations.Info)),
		fmt.Sprintf("%s records acknowledged", number(res.Records.Acked)),
		faults,
		plural(res.LeaderChanges, "leader change"),
		fmt.Sprintf("%.1f s of load, %.1f s in all", t.Load, t.Setup+t.Load+t.Heal+t.Drain+t.Check),
	}
}

func (v *view) claims(run *Run) {
	n := 0
	for _, c := range run.Results.Claims {
		row := claimRow{ID: string(c.ID), Plain: report.Plain(c.ID), Verdict: string(c.Verdict), Mark: marks[c.Verdict],
			Evidence: report.Evidence(c.Evidence), Reason: c.Reason}
		if p, ok := run.Contract.Promise(c.ID); ok {
			row.Promise = p.Text
		}
		for _, a := range c.Anomalies {
			r := anomalyRow{Kind: string(a.Kind), Count: number(a.Count), Where: strings.Join(a.Where[:min(5, len(a.Where))], ", ")}
			if a.Count > 5 && len(a.Where) > 0 {
				r.Where += ", …"
			}
			if n < len(run.Proofs) && run.Proofs[n].Path == a.Certificate && a.Certificate != "" {
				n++
				r.Proof = n
			}
			row.Anomalies = append(row.Anomalies, r)
		}
		for _, p := range c.Permitted {
			v.Permitted = append(v.Permitted, permitted{string(p.Kind), number(p.Count), p.Because, row.ID})
		}
		v.ClaimRows = append(v.ClaimRows, row)
	}
}

func newProofView(n int, p *Proof, dir string) proofView {
	out := proofView{N: n, Anomaly: string(p.Anomaly), Claim: string(p.Claim), Sentence: p.Sentence, Drawing: draw(&p.Certificate),
		Path: p.Path, Porcupine: p.Porcupine, NoPorcupine: p.NoPorcupine, Verify: "ackproof verify " + quoted(dir+"/"+p.Path)}
	switch {
	case p.Object != "":
		out.About = p.Object
	case p.Partition >= 0 && p.Offset >= 0:
		out.About = fmt.Sprintf("partition %d, offset %s", p.Partition, number(p.Offset))
	case p.Partition >= 0:
		out.About = fmt.Sprintf("partition %d", p.Partition)
	}
	for _, o := range p.Operations {
		out.Operations = append(out.Operations, proofOp{o.Role, o.Text, timesOf(o), o.Op})
	}
	raw, err := json.MarshalIndent(p.Certificate, "", "  ")
	if err != nil { // strings and integers always encode
		panic(err)
	}
	out.JSON = string(raw)
	return out
}

// quoted makes one word of a path for a shell.
func quoted(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=@,", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func faultRows(faults []fault) (rows []faultRow) {
	for _, f := range faults {
		r := faultRow{N: f.index + 1, What: f.name(), Role: f.Role, Proof: f.Proof, Effective: f.Effective, Unstarted: !f.started}
		if f.started {
			r.From, r.To = moment(f.from), moment(f.to)
		}
		rows = append(rows, r)
	}
	return rows
}

// untested says what this run does not show.
func untested(run *Run, faults []fault) (out []string) {
	res := &run.Results
	// Claims with one reason share a line.
	type group struct {
		verdict model.Verdict
		reason  string
	}
	var order []group
	members := map[group][]string{}
	for _, c := range res.Claims {
		if c.Verdict != model.NotTested && c.Verdict != model.Undecided {
			continue
		}
		g := group{c.Verdict, c.Reason}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], string(c.ID))
	}
	for _, g := range order {
		out = append(out, fmt.Sprintf("%s: %s: %s", g.verdict, strings.Join(members[g], ", "), g.reason))
	}
	idle := 0
	for _, f := range faults {
		switch {
		case !f.started:
			idle++
		case !f.Effective:
			out = append(out, fmt.Sprintf("fault %d, %s, had no effect: %s", f.index+1, f.name(), f.Proof))
		}
	}
	if idle > 0 {
		out = append(out, fmt.Sprintf("%s of %d never started, because the load ended first or nothing fitted", plural(idle, "fault"), len(faults)))
	}
	if len(run.FaultsNotAsked) > 0 {
		out = append(out, "kinds of faults that this run was not asked for: "+strings.Join(run.FaultsNotAsked, ", "))
	}
	if run.Contract.Replication > 0 && !run.Contract.FlushEach {
		out = append(out, "the loss of power: nodes were killed, but what they had written stayed in the operating system's memory (no flush before the ack)")
	}
	if !res.Drain.Complete {
		out = append(out, "the end of the log: "+join("the final read is not complete", run.Facts.DrainReason))
	}
	if res.Seconds.Load > 0 {
		out = append(out, fmt.Sprintf("what takes longer than %.0f s to show, and every other order of events: this is one run with one seed", res.Seconds.Load))
	}
	return out
}
