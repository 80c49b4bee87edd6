package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"ackproof/model"
)

// Columns of a drawing: the roles, the axis, the times.
const (
	maxLanes  = 4
	roleStart = 11
	roleWidth = 12
	axisStart = roleStart + roleWidth + 1
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
		role := shorten(l.role, roleWidth)
		out.WriteString(strings.Repeat(" ", roleStart) + role + strings.Repeat(" ", axisStart-roleStart-uniseg.StringWidth(role)) + string(row[axisStart:]) + " " + times(l.op, digits) + "\n")
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

// shorten makes text visible and cuts it to as many columns.
func shorten(text string, columns int) string {
	text = Visible(text)
	if uniseg.StringWidth(text) <= columns {
		return text
	}
	cut, width := "", 0
	for clusters := uniseg.NewGraphemes(text); clusters.Next(); {
		if width += clusters.Width(); width >= columns {
			break
		}
		cut += clusters.Str()
	}
	return cut + "…"
}

// digitsOf is how many decimals of a second tell the times apart: those of milliseconds or microseconds; exactly: not even those do.
func digitsOf(lanes []lane) int {
	var all []int64
	for _, l := range lanes {
		all = append(all, l.op.Invoked)
		if l.op.EndSeq > 0 {
			all = append(all, l.op.Ended)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, unit := range []struct {
		digits int
		ns     int64
	}{{3, 1e6}, {6, 1e3}} {
		rounded := make([]int64, len(all))
		for i, ns := range all {
			rounded[i] = (ns + unit.ns/2) / unit.ns
		}
		if len(slices.Compact(rounded)) == len(all) {
			return unit.digits
		}
	}
	return exactly
}

const exactly = -1

// times of an operation since the start of the run.
func times(op model.ProofOp, digits int) string {
	if digits == exactly {
		if op.EndSeq == 0 {
			return time.Duration(op.Invoked).String() + " – never"
		}
		return shorten(fmt.Sprintf("%v–%v", time.Duration(op.Invoked), time.Duration(op.Ended)), width-axisEnd-2)
	}
	from := fmt.Sprintf("%.*f", digits, float64(op.Invoked)/1e9)
	if op.EndSeq == 0 {
		return from + " s – never"
	}
	return fmt.Sprintf("%s–%.*f s", from, digits, float64(op.Ended)/1e9)
}
