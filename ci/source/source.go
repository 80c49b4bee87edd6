// Package source asks the go command which packages the project consists of, so that the checks of the neighbouring packages see what the compiler sees. It knows
// nothing of what is checked.
package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is what `go list -json` says of a package; the fields are named and documented there.
type Package struct {
	ImportPath   string
	Dir          string
	Export       string // file with export data; only with -export
	Standard     bool
	DepOnly      bool // only a dependency of what was asked for; only with -deps
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	DepsErrors   []*struct{ Err string }
	Error        *struct{ Err string }
}

// List runs `go list -json` with further arguments in the folder dir.
func List(dir string, args ...string) ([]Package, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	var packages []Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
		}
		if p.Error != nil {
			return nil, fmt.Errorf("go list %s: %s: %s", strings.Join(args, " "), p.ImportPath, p.Error.Err)
		}
		packages = append(packages, p)
	}
}

// Root is the folder of the module that holds the working directory, and Module its path.
func Root() (dir, module string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("find the module's folder: %w", err)
	}
	dir, module, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return filepath.Clean(dir), module, nil
}
