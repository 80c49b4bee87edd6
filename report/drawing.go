package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ackproof/model"
)

// Columns of a drawing: the roles, the axis, the times.
const (
	maxLanes  = 4
	roleWidth = 12
	axisStart = 11 + roleWidth + 1
	axisEnd   = 51
	openMark  = '►' // an operation that never ended
)

// drawing shows the operations of a proof as lanes over one axis, in the order in which they began. What is exact is the order of all begins and ends, which is that of the
// history; lengths are not to scale. Where one operation had ended before the next began, a line says so.
func drawing(ops []model.ProofOp) string {
	lanes := lanesOf(ops)
	if len(lanes) < 2 {
		return ""
	}
	columns := columnsOf(lanes)
	digits := digitsOf(lanes)
	var out strings.Builder
	for i, l := range lanes {
		if i > 0 {
			out.WriteString(between(lanes[i-1], l, columns))
		}
		row := canvas()
		from, to := columns[l.op.Op], axisEnd
		copy(row[11:], []rune(shorten(l.role, roleWidth)))
		if l.op.EndSeq > 0 {
			to = columns[l.op.EndSeq]
		}
		for x := from; x <= to; x++ {
			row[x] = '─'
		}
		row[from] = '├'
		if row[to] = '┤'; l.op.EndSeq == 0 {
			row[to] = openMark
		}
		out.WriteString(strings.TrimRight(string(row), " ") + strings.Repeat(" ", axisEnd-lastColumn(row)+1) + times(l.op, digits) + "\n")
	}
	return out.String()
}

// lane is one operation and the parts that it plays.
type lane struct {
	role string
	op   model.ProofOp
}

func lanesOf(ops []model.ProofOp) []lane {
	var lanes []lane
	for _, op := range ops {
		i := slices.IndexFunc(lanes, func(l lane) bool { return l.op.Op == op.Op })
		switch {
		case i >= 0:
			lanes[i].role += "/" + op.Role
		case len(lanes) < maxLanes:
			lanes = append(lanes, lane{op.Role, op})
		}
	}
	slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Compare(a.op.Op, b.op.Op) })
	return lanes
}

// columnsOf gives each begin and end its column, by its number in the history.
func columnsOf(lanes []lane) map[uint64]int {
	var marks []uint64
	for _, l := range lanes {
		marks = append(marks, l.op.Op)
		if l.op.EndSeq > 0 {
			marks = append(marks, l.op.EndSeq)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	columns := make(map[uint64]int, len(marks))
	for i, m := range marks {
		columns[m] = axisStart + i*(axisEnd-axisStart)/max(1, len(marks)-1)
	}
	return columns
}

// between is the line between two lanes: an arrow from the end of the one to the begin of the next, if that came later.
func between(a, b lane, columns map[uint64]int) string {
	if a.op.EndSeq == 0 || a.op.EndSeq >= b.op.Op {
		return "\n"
	}
	row := canvas()
	from, to := columns[a.op.EndSeq], columns[b.op.Op]
	for x := from; x <= to; x++ {
		row[x] = '╌'
	}
	row[from], row[to] = '╰', '╮'
	if label := []rune(" then "); to-from > len(label)+1 {
		copy(row[from+(to-from-len(label))/2+1:], label)
	}
	return strings.TrimRight(string(row), " ") + "\n"
}

func canvas() []rune { return []rune(strings.Repeat(" ", axisEnd+1)) }

// lastColumn is the last one that is not empty.
func lastColumn(row []rune) int {
	return utf8.RuneCountInString(strings.TrimRight(string(row), " ")) - 1
}

func shorten(text string, width int) string {
	if r := []rune(Visible(text)); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return Visible(text)
}

// digitsOf is how many decimals of a second tell the times apart: milliseconds, or microseconds.
func digitsOf(lanes []lane) int {
	var all []int64
	for _, l := range lanes {
		all = append(all, l.op.Invoked)
		if l.op.EndSeq > 0 {
			all = append(all, l.op.Ended)
		}
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] != all[i-1] && all[i]/1e6 == all[i-1]/1e6 {
			return 6
		}
	}
	return 3
}

// times of an operation in seconds since the start of the run.
func times(op model.ProofOp, digits int) string {
	from := fmt.Sprintf("%.*f", digits, float64(op.Invoked)/1e9)
	if op.EndSeq == 0 {
		return from + " s – never"
	}
	return fmt.Sprintf("%s–%.*f s", from, digits, float64(op.Ended)/1e9)
}
