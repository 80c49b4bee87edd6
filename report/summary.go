package report

import (
	"fmt"
	"slices"
	"strings"

	"ackproof/model"
)

// Run is what a summary tells about beside the results.
type Run struct {
	Results model.Results
	// Opinion says in words how far the second opinion reached, "" if there is nothing to add.
	Opinion string
	// Notes are remarkable things of which no claim speaks, such as a node that ended by itself.
	Notes  []string
	Dir    string // the run directory
	Report string // the page of the run, "" if there is none
	Replay string // the command that repeats the run
}

// Summary is the text at the end of a run: the answer first, then why, then what was not shown.
func Summary(r Run) string {
	var out strings.Builder
	res := r.Results
	out.WriteString(fmt.Sprintf("seed %d  (repeat with: %s)\n", res.Seed, r.Replay))
	out.WriteString(wrap("verdict    ", fmt.Sprintf("%s  (%s %s, workload %s)",
		strings.ToUpper(string(res.Verdict)), res.System.Name, res.System.Version, res.Workload)))
	out.WriteString(wrap("operations ", operations(res)))
	out.WriteString("\n" + claims(res.Claims))
	if proof, where := firstProof(res.Claims); proof != nil {
		out.WriteString("\n" + proofText(*proof, where))
	}
	if p := permitted(res.Claims); p != "" {
		out.WriteString("\n" + p)
	}
	if u := unshown(res.Claims); u != "" {
		out.WriteString("\n" + u)
	}
	for _, n := range r.Notes {
		out.WriteString("\n" + note(n))
	}
	out.WriteString("\n" + faults(res))
	out.WriteString("\n" + closing(r))
	return out.String()
}

func operations(res model.Results) string {
	text := fmt.Sprintf("%s ok, %s failed, %s unknown", number(res.Operations.OK), number(res.Operations.Fail), number(res.Operations.Info))
	if res.Records == (model.Records{}) {
		return text
	}
	return text + fmt.Sprintf("; records: %s acknowledged, %s unknown, %s read", number(res.Records.Acked), number(res.Records.Indeterminate), number(res.Records.Read))
}

// note keeps the lines of a log as they are.
func note(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	out := wrap("!          ", first)
	if rest != "" {
		out += Visible(rest) + "\n"
	}
	return out
}

// claims is the table of the claims, one line each.
func claims(list []model.ClaimResult) string {
	var out strings.Builder
	for _, c := range list {
		out.WriteString(fmt.Sprintf("%-11s %-16s %s\n", mark(c.Verdict), c.ID, plain(c.ID)))
		detail := evidence(c.Evidence)
		for _, a := range c.Anomalies {
			detail = strings.TrimPrefix(detail+"; ", "; ") + fmt.Sprintf("%s × %s", a.Kind, number(a.Count))
			if len(a.Where) > 0 {
				detail += " (" + strings.Join(a.Where[:min(3, len(a.Where))], ", ") + ")"
			}
		}
		if detail != "" {
			out.WriteString(wrap("            ", detail))
		}
	}
	return out.String()
}

func mark(v model.Verdict) string {
	if v == model.Violated {
		return "VIOLATED"
	}
	return string(v)
}

// firstProof finds the certificate of the first violated claim in the order of the report.
func firstProof(list []model.ClaimResult) (*model.Certificate, string) {
	for _, c := range list {
		for _, a := range c.Anomalies {
			if c.Verdict == model.Violated && a.Proof != nil {
				return a.Proof, a.Certificate
			}
		}
	}
	return nil, ""
}

func proofText(c model.Certificate, where string) string {
	var out strings.Builder
	about := ""
	switch {
	case c.Object != "":
		about = ", " + c.Object
	case c.Partition >= 0:
		about = fmt.Sprintf(", partition %d", c.Partition)
	}
	out.WriteString(wrap("proof      ", fmt.Sprintf("%s%s: %s", c.Anomaly, about, c.Sentence)))
	out.WriteString(drawing(c.Operations))
	for _, op := range c.Operations {
		out.WriteString(wrap("           · ", fmt.Sprintf("%s: %s", op.Role, op.Text)))
	}
	if where != "" {
		out.WriteString(wrap("           ", where))
	}
	return out.String()
}

// faults is the table of what was done to the system, a line each; the whole proofs are in the results. Faults without an effect share a line if they share the reason.
func faults(res model.Results) string {
	if len(res.Faults) == 0 {
		return "faults     none\n"
	}
	effective := 0
	var rows strings.Builder
	var reasons []string
	idle := map[string][]string{}
	for _, f := range res.Faults {
		what := strings.TrimSpace(fmt.Sprintf("%s %s", f.Kind, strings.Join(f.Targets, " ")))
		switch {
		case f.Role != "" && len(f.Targets) > 0:
			what += ", " + f.Role
		case f.Role != "":
			what += " " + f.Role
		}
		if !f.Effective {
			if _, ok := idle[f.Proof]; !ok {
				reasons = append(reasons, f.Proof)
			}
			idle[f.Proof] = append(idle[f.Proof], what)
			continue
		}
		effective++
		head := fmt.Sprintf("%5.1f–%-5.1f", float64(f.FromMS)/1000, float64(f.ToMS)/1000)
		rows.WriteString(shorten(strings.ReplaceAll(fmt.Sprintf("%s%s: %s", head, what, f.Proof), "\n", " "), width) + "\n")
	}
	for _, reason := range reasons {
		rows.WriteString(wrap("no effect  ", strings.Join(idle[reason], "; ")+": "+reason))
	}
	unavailable := ""
	if ms, ok := res.UnavailableMS["max"]; ok {
		unavailable = fmt.Sprintf("; longest time without an acknowledged record %.1f s", float64(ms)/1000)
	}
	head := wrap("faults     ", fmt.Sprintf("%d of %d had an effect; %s%s", effective, len(res.Faults), plural(res.LeaderChanges, "leader change"), unavailable))
	return head + rows.String()
}

// permitted lists losses that the contract allows: they are no violation, and they are not hidden.
func permitted(list []model.ClaimResult) string {
	var out strings.Builder
	for _, c := range list {
		for _, p := range c.Permitted {
			out.WriteString(wrap("permitted  ", fmt.Sprintf("%s × %s, because of %s (under %s)", p.Kind, number(p.Count), p.Because, c.ID)))
		}
	}
	return out.String()
}

// unshown says why claims are neither held nor violated; claims with one reason share a line.
func unshown(list []model.ClaimResult) string {
	var out strings.Builder
	type group struct {
		verdict model.Verdict
		reason  string
	}
	var order []group
	members := map[group][]string{}
	for _, c := range list {
		if c.Verdict != model.Undecided && c.Verdict != model.NotTested {
			continue
		}
		g := group{c.Verdict, c.Reason}
		if !slices.Contains(order, g) {
			order = append(order, g)
		}
		members[g] = append(members[g], string(c.ID))
	}
	for _, g := range order {
		out.WriteString(wrap(fmt.Sprintf("%-11s", g.verdict), strings.Join(members[g], ", ")+": "+g.reason))
	}
	return out.String()
}

func closing(r Run) string {
	res := r.Results
	var out strings.Builder
	out.WriteString(secondOpinion(res.SecondOpinion, r.Opinion))
	complete := "complete"
	if !res.Drain.Complete {
		complete = "not complete"
	}
	out.WriteString(wrap("drain      ", fmt.Sprintf("%s: %s, %s read to the end", complete, plural(res.Drain.Partitions, "partition"), copies(res.Drain.ReplicasRead))))
	t := res.Seconds
	out.WriteString(wrap("seconds    ", fmt.Sprintf("set-up %.1f, load %.1f, heal %.1f, drain %.1f, check %.1f", t.Setup, t.Load, t.Heal, t.Drain, t.Check)))
	if r.Dir != "" {
		out.WriteString("run        " + Visible(r.Dir) + "\n")
	}
	if r.Report != "" {
		out.WriteString("report     " + Visible(r.Report) + "\n")
	}
	out.WriteString(wrap("exit       ", fmt.Sprintf("%d: %s", res.Exit, meaning(res.Exit))))
	return out.String()
}

func secondOpinion(s model.SecondOpinion, more string) string {
	agreed := "agrees"
	if !s.Agreed {
		agreed = "DISAGREES"
	}
	text := fmt.Sprintf("%s %s: %s in %s", s.By, agreed, plural(s.Operations, "operation"), plural(s.Windows, "window"))
	if more != "" {
		text += "; " + more
	}
	return wrap("second     ", text)
}
