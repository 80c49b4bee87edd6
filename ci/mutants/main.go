// Command mutants tests the tests: it makes one plausible wrong edit after another in the checkers and in the broker's rules, and runs the tests of the package
// concerned. A mutant that no test notices has survived: either a test is missing, or the edit changes nothing and does not belong into the list.
//
//	go run ./ci/mutants [-run REGEXP] [-limit TIME] [-markdown] [-list]
//
// The edits are in catalogue.go and the files that it names, as text. The tree is never touched: the compiler is given edited files by an overlay, with all mutants
// of a package in one build (weave.go), of which the environment brings one to life. Exit code 0: all are killed; 1: one survived, or the list does not fit the code;
// 2: wrong usage. It knows nothing of what the packages do.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"ackproof/ci/source"
)

func main() {
	only := flag.String("run", "", "only mutants whose checker, file or meaning matches this `regexp`")
	limit := flag.Duration("limit", 2*time.Minute, "longest `time` for one run of a package's tests; a mutant that takes longer is killed")
	markdown := flag.Bool("markdown", false, "print the score and the list as Markdown")
	list := flag.Bool("list", false, "print the list without running anything")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *limit <= 0 {
		fmt.Fprintf(os.Stderr, "mutants: -run %q, -limit %v, arguments %q: expected a regular expression, a positive time and no arguments\n", *only, *limit, flag.Args())
		os.Exit(2)
	}
	checkers := chosen(catalogue(), match)
	if len(checkers) == 0 {
		fmt.Fprintf(os.Stderr, "mutants: no mutant matches %q\n", *only)
		os.Exit(2)
	}
	if *list {
		printList(os.Stdout, checkers)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, checkers, *limit, *markdown)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !ok {
		stop()
		os.Exit(1)
	}
}

// run tries all mutants, one at a time, and prints what became of each as it goes. It answers whether all were killed.
func run(ctx context.Context, checkers []Checker, limit time.Duration, markdown bool) (ok bool, err error) {
	root, module, err := source.Root()
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	l := &laboratory{root: root, module: module, scratch: scratch, limit: limit, binaries: make(map[string]string), bad: make(map[int]error)}
	edits := number(checkers)
	for _, folder := range folders(checkers) {
		var woven []numbered
		for i, c := range checkers {
			if slices.Contains(c.Packages, folder) {
				woven = append(woven, edits[i]...)
			}
		}
		if err := l.prepare(ctx, folder, woven); err != nil {
			return false, err
		}
	}
	var all [][]result
	for i, c := range checkers {
		results := make([]result, 0, len(c.Mutants))
		for _, e := range edits[i] {
			r := l.try(ctx, c, e)
			if err := ctx.Err(); err != nil {
				return false, fmt.Errorf("interrupted at %s: %w", e, err)
			}
			fmt.Fprintf(os.Stderr, "%-8s %5.1fs  %s: %s%s\n", r.fate, r.took.Seconds(), e.File, e.Means, r.because())
			results = append(results, r)
		}
		all = append(all, results)
	}
	if markdown {
		return printMarkdown(os.Stdout, checkers, all), nil
	}
	return printScore(os.Stdout, checkers, all), nil
}

// number numbers the mutants of all checkers.
func number(checkers []Checker) (out [][]numbered) {
	n := 0
	for _, c := range checkers {
		var edits []numbered
		for _, m := range c.Mutants {
			n++
			edits = append(edits, numbered{n, m})
		}
		out = append(out, edits)
	}
	return out
}

// folders are those whose tests are needed, each once.
func folders(checkers []Checker) (out []string) {
	for _, c := range checkers {
		for _, p := range c.Packages {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// chosen keeps the mutants that match, by checker, file or meaning.
func chosen(all []Checker, match *regexp.Regexp) (out []Checker) {
	for _, c := range all {
		var keep []Mutant
		for _, m := range c.Mutants {
			if match.MatchString(c.Name) || match.MatchString(m.File) || match.MatchString(m.Means) {
				keep = append(keep, m)
			}
		}
		if len(keep) > 0 {
			c.Mutants = keep
			out = append(out, c)
		}
	}
	return out
}
