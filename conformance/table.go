package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

func (s state) String() string {
	return [...]string{notRun: "", pass: "pass", fail: "FAIL", lacking: "–"}[s]
}

// printTable prints clients and scenarios: in peace, and with a broker killed.
func printTable(w io.Writer, results []result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\n")
	for _, r := range results {
		fmt.Fprintf(t, "\t%s", r.client.name)
	}
	fmt.Fprintln(t)
	for _, kills := range []int{0, 1} {
		for _, sc := range scenarios {
			name := sc.name + strings.Repeat(", broker killed", kills)
			fmt.Fprint(t, name)
			for _, r := range results {
				fmt.Fprintf(t, "\t%s", r.cells[sc.name][kills].state)
			}
			fmt.Fprintln(t)
		}
	}
	t.Flush()
}
