package report

import (
	"fmt"
	"strings"

	"ackproof/model"
)

// Checked is what `ackproof check` tells about a history that was recorded before.
type Checked struct {
	Results model.Results // Workload is the model by which it was judged
	File    string
	// Basis says in words what was demanded and whence that is known.
	Basis   string
	Opinion string // as in Run
	Notes   []string
}

// Check is the text of a check: the answer first, then why, then what was not shown.
func Check(c Checked) string {
	var out strings.Builder
	res := c.Results
	out.WriteString(wrap("history    ", fmt.Sprintf("%s, model %s", c.File, res.Workload)))
	out.WriteString(wrap("verdict    ", strings.ToUpper(string(res.Verdict))))
	out.WriteString(wrap("by         ", c.Basis))
	out.WriteString(wrap("operations ", operations(res)))
	out.WriteString("\n" + claims(res.Claims))
	if proof, where := firstProof(res.Claims); proof != nil {
		out.WriteString("\n" + proofText(*proof, where))
	}
	for _, n := range c.Notes {
		out.WriteString("\n" + note(n))
	}
	if p := permitted(res.Claims); p != "" {
		out.WriteString("\n" + p)
	}
	if u := unshown(res.Claims); u != "" {
		out.WriteString("\n" + u)
	}
	out.WriteString("\n")
	if res.SecondOpinion.By != "" {
		out.WriteString(secondOpinion(res.SecondOpinion, c.Opinion))
	}
	out.WriteString(wrap("exit       ", fmt.Sprintf("%d: %s", res.Exit, meaning(res.Exit))))
	return out.String()
}
