package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// score counts the fates of one checker's mutants.
type score struct{ killed, all int }

func count(results []result) (s score) {
	for _, r := range results {
		if r.fate == killed {
			s.killed++
		}
		s.all++
	}
	return s
}

// total adds up; ok tells whether all were killed.
func total(all [][]result) (s score, ok bool) {
	for _, results := range all {
		c := count(results)
		s.killed, s.all = s.killed+c.killed, s.all+c.all
	}
	return s, s.killed == s.all && s.all > 0
}

func (s score) percent() string { return fmt.Sprintf("%d %%", 100*s.killed/max(1, s.all)) }

func printScore(w io.Writer, checkers []Checker, all [][]result) (ok bool) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "checker\tmutants\tkilled\tscore")
	for i, c := range checkers {
		s := count(all[i])
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", c.Name, s.all, s.killed, s.percent())
	}
	s, ok := total(all)
	fmt.Fprintf(table, "all\t%d\t%d\t%s\n", s.all, s.killed, s.percent())
	table.Flush()
	for i, c := range checkers {
		for j, r := range all[i] {
			if r.fate != killed {
				fmt.Fprintf(w, "%s: %s: %s%s\n", r.fate, c.Name, c.Mutants[j], r.because())
			}
		}
	}
	return ok
}

func printMarkdown(w io.Writer, checkers []Checker, all [][]result) (ok bool) {
	fmt.Fprintf(w, "| checker | mutants | killed | score |\n|---|---:|---:|---:|\n")
	for i, c := range checkers {
		s := count(all[i])
		fmt.Fprintf(w, "| %s | %d | %d | %s |\n", c.Name, s.all, s.killed, s.percent())
	}
	s, ok := total(all)
	fmt.Fprintf(w, "| **all** | **%d** | **%d** | **%s** |\n", s.all, s.killed, s.percent())
	fmt.Fprintf(w, "\n| checker | file | mistake | fate |\n|---|---|---|---|\n")
	for i, c := range checkers {
		for j, r := range all[i] {
			m := c.Mutants[j]
			because, _, _ := strings.Cut(r.because(), "\n")
			fmt.Fprintf(w, "| %s | %s | %s | %s%s |\n", c.Name, m.File, strings.ReplaceAll(m.Means, "|", `\|`), r.fate, because)
		}
	}
	return ok
}

func printList(w io.Writer, checkers []Checker) {
	for _, c := range checkers {
		fmt.Fprintf(w, "%s (%d, tests of %s)\n", c.Name, len(c.Mutants), strings.Join(c.Packages, ", "))
		for _, m := range c.Mutants {
			fmt.Fprintf(w, "  %s: %s\n", m.File, m.Means)
		}
	}
}
