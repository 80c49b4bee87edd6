package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// measure is one row of the table.
type measure struct {
	name    string
	unit    string
	less    bool    // the smaller the better
	goal    float64 // of the ratio, ours to Kafka's; 0 = none
	most    float64 // goal of our own figure, an upper bound; 0 = none
	decimal int     // digits behind the point
}

// table collects figures by measure and side, and tells each as it comes.
type table struct {
	progress io.Writer
	rows     []*row
}

type row struct {
	measure
	values [2][]float64 // by side
}

// side is one of the two clusters.
type side int

const (
	kafka side = iota
	ours
)

func (s side) String() string { return [...]string{"Kafka", "ackproof"}[s] }

// add notes a figure. Rows stand in the order in which they first appear.
func (t *table) add(m measure, s side, value float64) {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.name == m.name })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{measure: m})
	}
	r := t.rows[i]
	r.values[s] = append(r.values[s], value)
	fmt.Fprintf(t.progress, "  %-8s  %-52s %s %s\n", s, m.name, r.format(value), m.unit)
}

func (m measure) format(v float64) string { return fmt.Sprintf("%.*f", m.decimal, v) }

// spread gives smallest, median and largest of the values, or the only one.
func (r *row) spread(s side) string {
	v := slices.Sorted(slices.Values(r.values[s]))
	switch len(v) {
	case 0:
		return "–"
	case 1:
		return r.format(v[0])
	}
	return fmt.Sprintf("%s / **%s** / %s", r.format(v[0]), r.format(median(v)), r.format(v[len(v)-1]))
}

// median of values that may be in any order; there is at least one.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// ratio is ours to Kafka's, of the medians; ok is false without both.
func (r *row) ratio() (ratio float64, ok bool) {
	if len(r.values[kafka]) == 0 || len(r.values[ours]) == 0 || median(r.values[kafka]) == 0 {
		return 0, false
	}
	return median(r.values[ours]) / median(r.values[kafka]), true
}

// verdict says what the goal is and whether it is met.
func (r *row) verdict() string {
	var goals []string
	met, known := true, true
	if r.most > 0 {
		goals = append(goals, fmt.Sprintf("≤ %s %s", r.format(r.most), r.unit))
		if len(r.values[ours]) == 0 {
			known = false
		} else {
			met = median(r.values[ours]) <= r.most
		}
	}
	if r.goal > 0 {
		sign := "≥"
		if r.less {
			sign = "≤"
		}
		goals = append(goals, fmt.Sprintf("%s %.2g ×", sign, r.goal))
		ratio, ok := r.ratio()
		known = known && ok
		met = met && (r.less && ratio <= r.goal || !r.less && ratio >= r.goal)
	}
	text := strings.Join(goals, ", ")
	switch {
	case text == "":
		return ""
	case !known:
		return text + ": not known"
	case met:
		return text + ": met"
	}
	return text + ": **missed**"
}

// markdown is the table.
func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("| measure | Kafka | ackproof | ratio | goal |\n|---|---|---|---|---|\n")
	for _, r := range t.rows {
		ratio := "–"
		if v, ok := r.ratio(); ok {
			ratio = fmt.Sprintf("%.2f ×", v)
		}
		fmt.Fprintf(&b, "| %s, %s | %s | %s | %s | %s |\n", r.name, r.unit, r.spread(kafka), r.spread(ours), ratio, r.verdict())
	}
	return b.String()
}
