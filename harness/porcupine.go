package harness

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/report"
	"ackproof/report/page"
)

const (
	porcupineDir   = "porcupine"
	porcupineIndex = "porcupine/views.json"
	// porcupineTime bounds porcupine's search in one window; what it has found by then is drawn.
	porcupineTime = 2 * time.Second
	// porcupineMost bounds the operations of a window that is drawn: porcupine keeps an order of all of them for each that it could not place, and the picture is for people.
	porcupineMost = 4000
)

// View is porcupine's own picture of one window of a log.
type View struct {
	Path       string // in the run directory
	Window     string // partition and offsets
	Operations int
	Verdict    string // porcupine's: Ok, Illegal or Unknown
}

// proofView is what the index of views says of one certificate.
type proofView struct {
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason,omitempty"` // why there is none
}

// WritePorcupine writes porcupine's views of the windows of a partition that touch the offsets [from, to). Errors about what is asked for, or what is in the
// directory, are UsageErrors.
func WritePorcupine(dir string, partition int32, from, to int64) ([]View, error) {
	answer, err := rejudge(dir)
	if err != nil {
		return nil, err
	}
	windows, err := linearizability.PorcupineLog(answer, partition, from, to)
	if err != nil {
		return nil, usage("%s: %v", dir, err)
	}
	if len(windows) == 0 {
		return nil, usage("%s: p%d has no window that porcupine could be shown at offsets %d to %d, expected offsets of the log whose records are all known", dir, partition, from, to)
	}
	faults := faultMarks(dir)
	var views []View
	for _, w := range windows {
		v, err := draw(dir, w, faults)
		if err != nil {
			return views, err
		}
		views = append(views, v)
	}
	return views, nil
}

// rejudge checks the log of a run again, as `ackproof check` does: porcupine is shown logs.
func rejudge(dir string) (*linearizability.Answer, error) {
	plan, facts, path, err := recorded(dir)
	if err != nil {
		return nil, err
	}
	answer, err := linearizability.CheckLog(linearizability.OfTheLog(eventsOf(path)()), plan.Contract, facts, linearizability.Options{Claims: plan.Options.Claims})
	if err != nil {
		return nil, usage("%s: %v", path, err)
	}
	return answer, nil
}

// draw lets porcupine decide one window and writes its picture.
func draw(dir string, w linearizability.PorcupineWindow, faults []porcupine.Annotation) (View, error) {
	v := View{Window: w.Name, Operations: len(w.Operations), Path: porcupineDir + "/" + strings.NewReplacer("[", "-", ",", "-", ")", "").Replace(w.Name) + ".html"}
	if len(w.Operations) > porcupineMost {
		return v, usage("%s has %d operations, expected at most %d: choose a window with a quiet moment nearer", w.Name, len(w.Operations), porcupineMost)
	}
	result, info := porcupine.CheckOperationsVerbose(w.Model, w.Operations, porcupineTime)
	v.Verdict = string(result)
	info.AddAnnotations(during(faults, w.Operations))
	if err := os.MkdirAll(filepath.Join(dir, porcupineDir), 0o755); err != nil {
		return v, fmt.Errorf("write porcupine's view: %w", err)
	}
	return v, writeWhole(filepath.Join(dir, filepath.FromSlash(v.Path)), func(out io.Writer) error { return porcupine.Visualize(w.Model, info, out) })
}

// faultMarks are the faults of a run as porcupine draws them. Its time is the number of the event. A history that cannot be read has none here; who reads it next
// says why.
func faultMarks(dir string) []porcupine.Annotation {
	began := map[int64]int{}
	var marks []porcupine.Annotation
	for ev, err := range eventsOf(filepath.Join(dir, historyFile))() {
		if err != nil {
			break
		}
		step, text, _ := strings.Cut(ev.Note, ": ")
		switch i, open := began[ev.Offset]; {
		case ev.Kind != histories.Fault:
		case step == "began" && !open:
			began[ev.Offset] = len(marks)
			marks = append(marks, porcupine.Annotation{Tag: "fault " + strconv.FormatInt(ev.Offset+1, 10), Start: int64(ev.Seq), End: math.MaxInt64 - 2, Description: report.Visible(text), Details: report.Visible(text),
				BackgroundColor: "#f3d9a4"})
		case step == "healed" && open:
			marks[i].End = int64(ev.Seq)
		}
	}
	return marks
}

// during are the faults that lasted while a window did, cut to it.
func during(faults []porcupine.Annotation, ops []porcupine.Operation) (out []porcupine.Annotation) {
	from, to := int64(math.MaxInt64), int64(0)
	for _, o := range ops {
		from = min(from, o.Call)
		if o.Return < math.MaxInt64-2 {
			to = max(to, o.Return)
		}
	}
	for _, f := range faults {
		if f.Start <= to && f.End >= from {
			f.Start, f.End = max(f.Start, from), min(f.End, to)
			out = append(out, f)
		}
	}
	return out
}

// writeViews writes porcupine's view of the window round each proof, and the index of them.
func writeViews(dir string, proofs []page.Proof) error {
	if len(proofs) == 0 {
		return nil
	}
	index := map[string]proofView{}
	answer, err := rejudge(dir)
	if err != nil {
		return err
	}
	faults := faultMarks(dir)
	drawn := map[string]View{}
	for i := range proofs {
		p := &proofs[i]
		index[p.Path] = view(dir, answer, faults, &p.Certificate, drawn)
	}
	return runDir{path: dir}.writeJSON(porcupineIndex, index)
}

// view draws the window that a certificate is about, unless it is drawn already.
func view(dir string, a *linearizability.Answer, faults []porcupine.Annotation, c *model.Certificate, drawn map[string]View) proofView {
	if c.Partition < 0 {
		return proofView{Reason: "porcupine is not asked: this is no matter of one partition"}
	}
	windows, err := linearizability.PorcupineLog(a, c.Partition, 0, math.MaxInt64)
	if err != nil {
		return proofView{Reason: err.Error()}
	}
	w := about(windows, c)
	if w == nil {
		return proofView{Reason: "porcupine has no view of it: no window of the partition contains the operations, because they are not of its model or not every record is known"}
	}
	v, known := drawn[w.Name]
	if !known {
		if v, err = draw(dir, *w, faults); err != nil {
			return proofView{Reason: err.Error()}
		}
		drawn[w.Name] = v
	}
	return proofView{Path: v.Path}
}

// about finds the window that has an operation of the certificate, or else the one with its offset. Porcupine's calls are numbers of events, as a certificate's
// operations are.
func about(windows []linearizability.PorcupineWindow, c *model.Certificate) *linearizability.PorcupineWindow {
	for _, cited := range c.Operations {
		for i := range windows {
			if slices.ContainsFunc(windows[i].Operations, func(o porcupine.Operation) bool { return o.Call == int64(cited.Op) }) {
				return &windows[i]
			}
		}
	}
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].From <= c.Offset {
			return &windows[i]
		}
	}
	return nil
}

// findViews puts what is known of porcupine's views into the proofs.
func (s stored) findViews(proofs []page.Proof) {
	index := map[string]proofView{}
	if err := s.json(porcupineIndex, &index); err != nil { // none were made yet
		return
	}
	for i := range proofs {
		v := index[proofs[i].Path]
		proofs[i].NoPorcupine = v.Reason
		if path := filepath.FromSlash(v.Path); v.Path != "" && filepath.IsLocal(path) {
			if _, err := s.root.Stat(path); err == nil {
				proofs[i].Porcupine = v.Path
			}
		}
	}
}
