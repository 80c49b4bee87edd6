package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
)

const (
	stateFile  = "state"
	markerFile = "clean"
	version    = 1
)

// state is the content of the file `state`, replaced as a whole. A cut and the checkpoint that goes with it are one write, which is what makes
// them one step across a crash (S6).
type state struct {
	Version    int                `json:"version"`
	Start      int64              `json:"start"`    // first offset of the first segment, also if there is none
	Recovery   int64              `json:"recovery"` // everything below had been flushed when this was written
	Checkpoint storage.Checkpoint `json:"checkpoint"`
	Cut        *cut               `json:"cut,omitempty"` // to be done before anything else
}

// state is what is to be saved now, with that checkpoint. The caller holds mu, or is the writer.
func (l *Log) state(cp storage.Checkpoint) state {
	return state{Version: version, Start: l.bounds.Start, Recovery: l.bounds.Durable, Checkpoint: cp}
}

func (s state) write(dir string) error { return writeJSON(filepath.Join(dir, stateFile), s) }

// readState gives the saved state; ok is false if there is none, as in a new log.
func readState(dir string) (s state, ok bool, err error) {
	err = readJSON(filepath.Join(dir, stateFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return state{Version: version}, false, nil
	}
	if err == nil && s.Version != version {
		err = fmt.Errorf("%s: version %d, expected %d", filepath.Join(dir, stateFile), s.Version, version)
	}
	return s, err == nil, err
}

// marker is the content of the file `clean`: the segments as they were at a clean close. If the files still look like it, their checksums need
// not be checked (R23).
type marker struct {
	End      int64     `json:"end"`
	Segments []summary `json:"segments"`
}

func (m marker) write(dir string) error { return writeJSON(filepath.Join(dir, markerFile), m) }

// takeMarker reads the marker and removes it durably. ok is false without one; a damaged one counts as none, for all that it saves is time.
func takeMarker(dir string) (m marker, ok bool, err error) {
	path := filepath.Join(dir, markerFile)
	readErr := readJSON(path, &m)
	if errors.Is(readErr, fs.ErrNotExist) {
		return marker{}, false, nil
	}
	if err := durable.Remove(path); err != nil {
		return marker{}, false, err
	}
	return m, readErr == nil, nil
}

func writeJSON(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, raw)
}

// readJSON decodes a checked file. Whatever is wrong with a file that exists is damage.
func readJSON(path string, v any) error {
	raw, err := durable.ReadFile(path)
	if errors.Is(err, durable.ErrChecksum) {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrDamaged, path, err)
	}
	return nil
}
