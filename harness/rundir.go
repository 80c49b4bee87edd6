package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ackproof/model"
	"ackproof/systems"
)

// Names in a run directory.
const (
	historyFile  = "history.bin"
	planFile     = "run.json"
	factsFile    = "facts.json"
	resultsFile  = "results.json"
	reportFile   = "report.html"
	certificates = "certificates"
	nodesDir     = "nodes"
	nodeLog      = "log"
	latest       = "latest"
)

// runDir is the directory of one run: store/<system>-<workload>/<UTC time>-<seed>/.
type runDir struct {
	store, family, path string
}

// newRunDir makes a fresh directory; two runs of one second and seed get different ones.
func newRunDir(store string, o Options, now time.Time) (runDir, error) {
	d := runDir{store: store, family: filepath.Join(store, o.System+"-"+o.Workload)}
	if err := os.MkdirAll(d.family, 0o755); err != nil {
		return d, fmt.Errorf("make the store of runs: %w", err)
	}
	name := fmt.Sprintf("%s-%d", now.UTC().Format("20060102T150405Z"), o.Seed)
	for try := 1; ; try++ {
		d.path = filepath.Join(d.family, name)
		if try > 1 {
			d.path += "." + strconv.Itoa(try)
		}
		err := os.Mkdir(d.path, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) || try == 100 {
			return d, fmt.Errorf("make a run directory: %w", err)
		}
	}
	if err := os.Mkdir(d.file(nodesDir), 0o755); err != nil {
		return d, fmt.Errorf("make a run directory: %w", err)
	}
	return d, d.link()
}

func (d runDir) file(name string) string { return filepath.Join(d.path, name) }

// link points the "latest" links of the family and of the store to this run.
func (d runDir) link() error {
	for _, at := range []string{d.family, d.store} {
		to, err := filepath.Rel(at, d.path)
		if err != nil {
			return fmt.Errorf("link the latest run: %w", err)
		}
		// Renamed over the old link, so that it never points nowhere.
		fresh := filepath.Join(at, latest+"."+strconv.Itoa(os.Getpid()))
		if err := os.Symlink(to, fresh); err != nil {
			return fmt.Errorf("link the latest run: %w", err)
		}
		if err := os.Rename(fresh, filepath.Join(at, latest)); err != nil {
			return errors.Join(fmt.Errorf("link the latest run: %w", err), os.Remove(fresh))
		}
	}
	return nil
}

// writeJSON writes a file of the run in one piece: it is there whole or not at all.
func (d runDir) writeJSON(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	path := d.file(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(path+".part", append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// saveCertificates gives every proof a file of its own, bound to the history of the run, and notes its path in the result.
func (d runDir) saveCertificates(claims []model.ClaimResult, run uint64) error {
	for _, c := range claims {
		n := 0
		for i := range c.Anomalies {
			a := &c.Anomalies[i]
			if a.Proof == nil {
				continue
			}
			n++
			a.Certificate = filepath.ToSlash(filepath.Join(certificates, fmt.Sprintf("%s-%d.json", c.ID, n)))
			a.Proof.Bind("../"+historyFile, run)
			if err := d.writeJSON(a.Certificate, a.Proof); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepNodes leaves what people want of the nodes: the log always, the data only of failed runs.
func (d runDir) keepNodes(nodes []systems.Node, data bool) error {
	var errs []error
	for _, n := range nodes {
		dir := d.file(filepath.Join(nodesDir, strconv.Itoa(n.ID())))
		errs = append(errs, keepLog(n, dir))
		if data {
			continue
		}
		entries, err := os.ReadDir(dir)
		errs = append(errs, err)
		for _, e := range entries {
			if e.Name() != nodeLog {
				errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// keepLog copies the log of a node into its directory, unless the node already writes it there.
func keepLog(n systems.Node, dir string) error {
	path := filepath.Join(dir, nodeLog)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	in, err := n.Log()
	if err != nil {
		return fmt.Errorf("keep the log of %s: %w", n.Name(), err)
	}
	defer in.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep the log of %s: %w", n.Name(), err)
	}
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep the log of %s: %w", n.Name(), err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
