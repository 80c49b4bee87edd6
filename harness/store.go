package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ackproof/model"
	"ackproof/report/browse"
	"ackproof/report/page"
)

// storeDepth is how deep below the store a run directory may lie: family and run, and one level for a folder of stores.
const storeDepth = 3

// Store is a directory of run directories, to be looked through. Safe for concurrent use.
type Store struct {
	dir string

	mu   sync.Mutex
	seen map[string]seenRun // what was read before, by the run's name
}

// seenRun is an entry and the state of the files that it was made from.
type seenRun struct {
	entry browse.Entry
	stamp string
}

// OpenStore looks for runs in dir. A UsageError if that is no directory.
func OpenStore(dir string) (*Store, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, usage("%v, expected a directory with runs", err)
	case !info.IsDir():
		return nil, usage("%s is a file, expected a directory with runs", dir)
	}
	return &Store{dir: dir, seen: make(map[string]seenRun)}, nil
}

// Runs lists every run, the newest first. A run that cannot be read is listed with the reason; directories that hold no file of a run are passed over.
func (s *Store) Runs() ([]browse.Entry, error) {
	var all []browse.Entry
	if err := s.walk("", storeDepth, &all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b browse.Entry) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

func (s *Store) walk(name string, depth int, all *[]browse.Entry) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil {
		if name == "" {
			return fmt.Errorf("list the runs: %w", err)
		}
		*all = append(*all, browse.Entry{Name: name, Damage: err.Error()})
		return nil
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return slices.Contains([]string{planFile, resultsFile, historyFile}, e.Name())
	}) {
		if name != "" {
			*all = append(*all, s.entry(name))
		}
		return nil
	}
	if depth == 0 {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() { // links, such as the one to the latest run, would list a run twice
			below := e.Name()
			if name != "" {
				below = name + "/" + below
			}
			if err := s.walk(below, depth-1, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry reads one run, unless it was read before and its files are the same.
func (s *Store) entry(name string) browse.Entry {
	dir := filepath.Join(s.dir, filepath.FromSlash(name))
	stamp := ""
	for _, file := range []string{planFile, resultsFile} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err == nil {
			stamp += fmt.Sprintf("%d %d,", info.Size(), info.ModTime().UnixNano())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.seen[name]; ok && known.stamp == stamp {
		return known.entry
	}
	e := browse.Entry{Name: name}
	plan, err := LoadPlan(dir)
	if err == nil {
		e.Started = plan.Started
		e.Results, err = LoadResults(dir)
	}
	if err != nil {
		e.Damage, e.Results = err.Error(), model.Results{}
		if e.Started.IsZero() {
			e.Started = modified(dir)
		}
	}
	s.seen[name] = seenRun{e, stamp}
	return e
}

// modified is when a directory was changed last, to give a run a place in the list that does not say when it began.
func modified(dir string) time.Time {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// inside is the directory of a run, if the name leads to nowhere else.
func (s *Store) inside(name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", usage("%q is no run of the store", name)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return "", usage("%v", err)
	}
	defer root.Close()
	if info, err := root.Stat(local); err != nil || !info.IsDir() {
		return "", usage("%s: there is no such run in the store", name)
	}
	return filepath.Join(s.dir, local), nil
}

// Page writes the page of a run, as it would be written now.
func (s *Store) Page(w io.Writer, name string) error {
	dir, err := s.inside(name)
	if err != nil {
		return err
	}
	run, err := LoadRun(dir)
	if err != nil {
		return err
	}
	return page.Write(w, run)
}

// Open opens a file of a run, and nothing outside the run's directory.
func (s *Store) Open(name, file string) (fs.File, error) {
	dir, err := s.inside(name)
	if err != nil {
		return nil, err
	}
	local, err := filepath.Localize(file)
	if err != nil {
		return nil, usage("%q is no file of a run", file)
	}
	f, err := os.OpenInRoot(dir, local)
	if err != nil {
		return nil, fmt.Errorf("open a file of %s: %w", name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = usage("%s of %s is no plain file", file, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
