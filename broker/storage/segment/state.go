package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
)

const (
	stateFile  = "state"
	markerFile = "clean"
	version    = 1
	layout     = "segment"
)

// state is the content of the file `state`, replaced as a whole. A cut and the checkpoint that goes with it are one write, which is what makes
// them one step across a crash (S6).
type state struct {
	Version    int                `json:"version"`
	Layout     string             `json:"layout"`   // tells it from the file of the same name of another store
	Start      int64              `json:"start"`    // first offset of the first segment, also if there is none
	Recovery   int64              `json:"recovery"` // everything below had been flushed when this was written
	Epochs     epochs             `json:"written_epochs"`
	Checkpoint storage.Checkpoint `json:"checkpoint"`
	Cut        *cut               `json:"cut,omitempty"` // to be done before anything else
}

// state is what is to be saved now, with that checkpoint.
func (l *Log) state(cp storage.Checkpoint) state {
	return state{Version: version, Layout: layout, Start: l.bounds.Start, Recovery: l.recovery, Epochs: l.epochs, Checkpoint: cp}
}

func (s state) write(fsys files.FS, dir string) error {
	return writeJSON(fsys, path.Join(dir, stateFile), s)
}

// readState gives the saved state; ok is false if there is none, as in a new log.
func readState(fsys files.FS, dir string) (s state, ok bool, err error) {
	file := path.Join(dir, stateFile)
	err = readJSON(fsys, file, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
	}
	if err == nil && (s.Version != version || s.Layout != layout) {
		err = fmt.Errorf("%s: layout %q, version %d; expected %q, version %d", file, s.Layout, s.Version, layout, version)
	}
	return s, err == nil, err
}

// marker is the content of the file `clean`: the segments as they were at a clean close. If the files still look like it, their checksums need
// not be checked (R23).
type marker struct {
	End      int64     `json:"end"`
	Segments []summary `json:"segments"`
}

// marker is what a clean close leaves.
func (l *Log) marker() marker {
	m := marker{End: l.bounds.End}
	for _, p := range l.parts {
		m.Segments = append(m.Segments, p.summary)
	}
	return m
}

func (m marker) write(fsys files.FS, dir string) error {
	return writeJSON(fsys, path.Join(dir, markerFile), m)
}

// takeMarker reads the marker and removes it durably. ok is false without one; a damaged one counts as none, for all that it saves is time. The caller has flushed the folder, so that one
// that is not there will not come back.
func takeMarker(fsys files.FS, dir string) (m marker, ok bool, err error) {
	file := path.Join(dir, markerFile)
	readErr := readJSON(fsys, file, &m)
	if errors.Is(readErr, fs.ErrNotExist) {
		return marker{}, false, nil
	}
	if readErr != nil && !errors.Is(readErr, storage.ErrDamaged) {
		return marker{}, false, readErr
	}
	if err := files.RemoveDurably(fsys, file); err != nil {
		return marker{}, false, err
	}
	return m, readErr == nil, nil
}

func writeJSON(fsys files.FS, file string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return files.WriteSmall(fsys, file, raw)
}

// readJSON decodes a checked file. Whatever is wrong with the content of a file that exists is damage.
func readJSON(fsys files.FS, file string, v any) error {
	raw, err := files.ReadSmall(fsys, file)
	if errors.Is(err, files.ErrChecksum) {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrDamaged, file, err)
	}
	return nil
}
