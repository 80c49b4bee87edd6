// Package report tells people what a run found: the progress while it goes on and the summary at its end. It knows results, contracts and
// certificates, and nothing of how they came about. Start reading at Summary.
package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"

	"ackproof/model"
)

// width is the width that every text keeps to, in characters.
const width = 80

// wrap breaks text into lines of at most width characters; the first begins with head, the others with as many spaces. What does not print is made visible. A word that is
// longer than a line is broken, unless it is a path.
func wrap(head, text string) string {
	indent := strings.Repeat(" ", uniseg.StringWidth(head))
	var out strings.Builder
	line, empty := head, true
	for _, word := range words(Visible(text), width-len(indent)) {
		if !empty && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	out.WriteString(strings.TrimRight(line, " ") + "\n")
	return out.String()
}

// words splits text at its spaces, and words that are no path into pieces of at most room columns.
func words(text string, room int) []string {
	var out []string
	for _, word := range strings.Fields(text) {
		for !strings.Contains(word, "/") && uniseg.StringWidth(word) > room {
			rest, piece, state := word, "", -1
			for {
				cluster, after, w, next := uniseg.FirstGraphemeClusterInString(rest, state)
				if uniseg.StringWidth(piece)+w > room || rest == "" {
					break
				}
				piece, rest, state = piece+cluster, after, next
			}
			if piece == "" {
				break
			}
			out = append(out, piece)
			word = rest
		}
		out = append(out, word)
	}
	return out
}

// number writes 12345 as 12,345.
func number[N int | int64](n N) string { return humanize.Comma(int64(n)) }

// plural is "1 fault", "2 faults".
func plural[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// evidence lists counts in the order of their names: "acked 9,912, read back 9,912".
func evidence(counts map[string]int64) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = strings.ReplaceAll(name, "_", " ") + " " + number(counts[name])
	}
	return strings.Join(parts, ", ")
}

// promises are the claims in plain words, short enough for a table.
var promises = map[model.Claim]string{
	model.NoLoss:          "acknowledged records are kept",
	model.AtLeastOnce:     "a full read gives every acknowledged record",
	model.SessionReads:    "a reader only moves forward",
	model.Order:           "a producer's records keep their order",
	model.RealTimeOrder:   "acknowledged before sent means lower offset",
	model.OffsetAgreement: "one offset, one record, on every replica",
	model.NoPhantom:       "only what was written is read, unaltered",
	model.NoDirtyRead:     "what was read stays",
	model.NoDuplicate:     "an idempotent record appears once",
	model.VisibleEnd:      "visible ends never go back",
	model.ReadAfterAck:    "a read after an ack sees it",
	model.Liveness:        "it works again soon after healing",
	model.Linearizable:    "one order in real time explains every answer",
	model.Serializability: "one order of the transactions explains every answer",
	model.Atomicity:       "a transaction takes effect as a whole or not at all",
	model.CommitSafety:    "committed offsets are kept",
	model.GroupDelivery:   "a group is given every record",
	model.Lease:           "no second delivery inside a lease",
	model.FIFO:            "what came in first goes out first",
	model.DedupWindow:     "no second delivery inside the window",
}

// plain is the claim in plain words; an unknown claim is its own name.
func plain(c model.Claim) string {
	if p, ok := promises[c]; ok {
		return p
	}
	return string(c)
}

// meaning of an exit code, for the last line.
func meaning(code int) string {
	switch code {
	case model.ExitHeld:
		return "every claim asked for held"
	case model.ExitViolated:
		return "at least one claim is violated"
	case model.ExitUndecided:
		return "nothing violated, at least one claim undecided or not tested"
	case model.ExitInfrastructure:
		return "the infrastructure could not run"
	case model.ExitCrash:
		return "ackproof itself is at fault"
	}
	return fmt.Sprintf("code %d", code)
}
