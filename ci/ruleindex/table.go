package main

import (
	"fmt"
	"path"
	"strings"

	"ackproof/broker/fault"
)

// Missing says which rules no code or no test cites.
func (x Index) Missing() []string {
	var missing []string
	for _, r := range Rules {
		if len(x.Code[r.ID]) == 0 {
			missing = append(missing, r.ID+" is cited by no code: "+r.Text)
		}
		if len(x.Tests[r.ID]) == 0 {
			missing = append(missing, r.ID+" is cited by no test: "+r.Text)
		}
	}
	return missing
}

// Table is the index in Markdown, as it stands in docs/architecture.md.
func (x Index) Table() string {
	var b strings.Builder
	b.WriteString("| rule | what it says | code that keeps it | test that checks it | planted bug |\n|---|---|---|---|---|\n")
	for _, r := range Rules {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.ID, r.Text, places(x.Code[r.ID]), places(x.Tests[r.ID]), strings.Join(x.Bugs[r.ID], " "))
	}
	b.WriteString("\n| bug | name | rules that it breaks | shows as | world |\n|---|---|---|---|---|\n")
	for _, p := range fault.Catalogue() {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %v |\n", p.ID, p.Name, strings.Join(p.Breaks, ", "), strings.Join(p.Anomalies, ", "), p.World)
	}
	return b.String()
}

// places lists declarations grouped by file; the list is sorted by file.
func places(list []Place) string {
	var b strings.Builder
	for i, p := range list {
		if i == 0 || p.File != list[i-1].File {
			if i > 0 {
				b.WriteString("; ")
			}
			short := path.Join(path.Base(path.Dir(p.File)), path.Base(p.File))
			fmt.Fprintf(&b, "[%s](../%s)", short, p.File)
		}
		if p.Decl != "" {
			fmt.Fprintf(&b, " `%s`", p.Decl)
		}
	}
	return b.String()
}
