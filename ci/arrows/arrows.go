// Package arrows checks which folder may import which: imports point downwards only, the broker and the harness know each other through the network alone, and a
// normal binary cannot carry a planted bug. docs/architecture.md shows the same as a picture. Start reading at Folders.
package arrows

import (
	"fmt"
	"slices"
	"strings"

	"ackproof/ci/source"
)

// Any allows every folder of the project.
const Any = "*"

// Folder is one line of the table: the packages of the folder Path, and of the folders below it that have no line of their own, may import those of May, and each other.
type Folder struct {
	Path string
	May  []string
}

// Folders is the table, from the top downwards.
var Folders = []Folder{
	{"cmd/ackproof", []string{Any}},
	{"ci", []string{"sim", "harness", "report", "workloads", "nemesis", "systems", "linearizability", "model", "histories", "broker/fault"}},
	{"bench", nil},
	{"bench/compare", []string{"bench", "systems"}},
	{"bench/overhead", []string{"bench", "nemesis", "systems"}},
	{"bench/checkers", []string{"linearizability", "model", "histories"}},
	{"sim", []string{"broker", "workloads", "nemesis", "systems", "linearizability", "model", "histories"}},
	{"harness", []string{"report", "workloads", "nemesis", "systems", "linearizability", "model", "histories"}},
	{"report", []string{"linearizability", "model", "histories"}},
	{"workloads", []string{"systems", "model", "histories"}},
	{"nemesis", []string{"systems", "model", "histories"}},
	{"systems", []string{"workloads", "model", "histories"}},
	{"linearizability", []string{"model", "histories"}},
	{"verify", []string{"model", "histories"}},
	{"model", nil},
	{"histories", nil},

	{"broker", nil},
	{"broker/node", []string{"broker"}},
	{"broker/wire", []string{"broker/storage", "broker/record"}},
	{"broker/core", []string{"broker/storage", "broker/record", "broker/fault"}},
	{"broker/storage", []string{"broker/internal", "broker/record", "broker/fault"}},
	{"broker/storage/files", nil},
	{"broker/storage/raftlog", []string{"broker/core/controller", "broker/storage", "broker/internal", "broker/record"}},
	{"broker/internal", []string{"broker/storage/files"}},
	{"broker/record", nil},
	{"broker/fault", nil},
}

// Check finds the imports that the table does not allow. Tests put parts together, so they may import whatever is on their own side: of the broker, or of all the rest.
func Check(module string, packages []source.Package) []string {
	var findings []string
	for _, p := range packages {
		from, ok := strings.CutPrefix(p.ImportPath, module+"/")
		if !ok {
			continue
		}
		folder := lineOf(from)
		if folder == nil {
			findings = append(findings, fmt.Sprintf("%s: no line of the table in ci/arrows says what this folder may import", from))
			continue
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			to, ok := strings.CutPrefix(path, module+"/")
			onlyTest := !slices.Contains(p.Imports, path)
			if !ok || folder.allows(to) || onlyTest && below("broker", from) == below("broker", to) {
				continue
			}
			findings = append(findings, fmt.Sprintf("%s imports %s: %s may import %s", from, to, folder.Path, list(folder.May)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}

// lineOf is the most exact line for a folder.
func lineOf(path string) *Folder {
	var best *Folder
	for i, f := range Folders {
		if below(f.Path, path) && (best == nil || len(f.Path) > len(best.Path)) {
			best = &Folders[i]
		}
	}
	return best
}

func (f Folder) allows(to string) bool {
	return below(f.Path, to) || slices.ContainsFunc(f.May, func(may string) bool { return may == Any || below(may, to) })
}

func below(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func list(may []string) string {
	if len(may) == 0 {
		return "nothing else of the project"
	}
	return "only " + strings.Join(may, ", ")
}
