package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ackproof/model"
	"ackproof/sim"
)

// Entry is one case of a corpus, with what it has to come to. JSON.
type Entry struct {
	// Story is what happens in it, for people; it is written by whoever saved the entry, and not compared.
	Story []string `json:"story"`
	// Anomalies that the case shows, all of them. Without its plant the case must hold.
	Anomalies []model.Anomaly `json:"anomalies"`
	Broken    bool            `json:"broken,omitempty"` // an invariant does not hold
	Case      sim.Case        `json:"case"`
}

// NewEntry is the entry of a result.
func NewEntry(r *sim.Result) Entry {
	return Entry{Story: strings.Split(strings.TrimRight(Story(r), "\n"), "\n"), Anomalies: r.Anomalies(), Broken: len(r.Broken) > 0, Case: r.Case}
}

// Save writes an entry; folders are made.
func (e Entry) Save(path string) error {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(e); err != nil {
		return fmt.Errorf("encode a case of the corpus: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("save a case of the corpus: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("save a case of the corpus: %w", err)
	}
	return nil
}

// LoadEntry reads an entry, or a bare case, of which nothing is known then. Errors name file, byte and what was expected.
func LoadEntry(path string) (e Entry, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return e, fmt.Errorf("read a simulated case: %w", err)
	}
	var probe struct {
		Case *json.RawMessage `json:"case"`
	}
	into := any(&e)
	if json.Unmarshal(raw, &probe) == nil && probe.Case == nil {
		into = &e.Case
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return e, fmt.Errorf("%s: byte %d: %w, expected a simulated case", path, d.InputOffset(), err)
	}
	if err := e.Case.Validate(); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}
