// Command checkers measures the formats and the checkers, and prints every figure with its goal: processor time, peak memory, events a second, bytes an event, how
// cost grows with the history, and what porcupine makes of the same histories. It makes its own histories.
//
// Each figure is that of a process of its own, so that none has the memory of another: the program starts itself with the hidden command of child.go. Processor time is what
// the kernel charged that process, on all cores, collection of garbage included; peak memory is the high mark of its resident set. Exit codes: 0 all was measured,
// whether goals were met or not; 1 something could not run, or a checker gave a wrong verdict; 2 wrong usage.
//
// Start reading at sections.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "checkers:", err)
			os.Exit(1)
		}
		return
	}
	largest := flag.Int("max", 10_000_000, "operations of the largest log `history`; the smallest has 10,000")
	only := flag.String("only", "", "sections to run, separated by `commas`: "+strings.Join(sectionNames(), ", ")+" (default: all)")
	dir := flag.String("dir", os.TempDir(), "`directory` for the histories; 10 million operations take 0.5 GB while they are measured")
	flag.Parse()
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.Contains(sectionNames(), name) {
			fmt.Fprintf(os.Stderr, "checkers: --only %s, expected some of %v\n", name, sectionNames())
			os.Exit(2)
		}
	}
	if flag.NArg() > 0 || *largest < 10_000 {
		fmt.Fprintln(os.Stderr, "checkers: expected no arguments and --max of at least 10000")
		os.Exit(2)
	}
	if err := run(*dir, *largest, wanted); err != nil {
		fmt.Fprintln(os.Stderr, "checkers:", err)
		os.Exit(1)
	}
}

// section is one table of figures.
type section struct {
	name string
	run  func(b *bench) error
}

var sections = []section{
	{"log", logFigures}, {"porcupine", porcupineFigures}, {"native", nativeFigures}, {"edn", ednFigures}, {"transactions", transactionFigures}, {"monitors", monitorFigures},
}

func sectionNames() (names []string) {
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// bench is one run of the program.
type bench struct {
	self    string // this program
	dir     string // its histories
	largest int
}

func run(parent string, largest int, wanted []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it for each figure: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "ackproof-checkers-")
	if err != nil {
		return fmt.Errorf("make a directory for the histories: %w", err)
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s, %d cores, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	b := &bench{self, dir, largest}
	for _, s := range sections {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		if err := s.run(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// title begins a table.
func title(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }

// row prints a figure, and its goal if it has one.
func row(what, figures, goal string, met bool) {
	if goal != "" {
		if figures += "  goal " + goal + ": met"; !met {
			figures = strings.TrimSuffix(figures, "met") + "MISSED"
		}
	}
	fmt.Printf("  %-34s %s\n", what, figures)
}

// path of a history of this run.
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
