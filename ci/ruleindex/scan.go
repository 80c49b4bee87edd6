package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ackproof/broker/fault"
)

// Place is where a rule is cited: a declaration of a file, or the file itself if the comment belongs to none.
type Place struct {
	File string // relative to the module's root
	Decl string // "" for the file itself
}

// Index holds, per rule, the code and the tests that cite it and the planted bugs that break it.
type Index struct {
	Code, Tests map[string][]Place
	Bugs        map[string][]string // ids of bugs
}

// cited matches an id and, with its second half, a range of ids ("R8-R12").
var cited = regexp.MustCompile(`\b([RS])([1-9]\d?)(?:[-–]([RS])([1-9]\d?))?\b`)

// inName matches the ids in the name of a test: TestR8R9DivergingHistories.
var inName = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)((?:[RS][1-9]\d?)+)`)

// Scan reads the comments of the broker's Go files below root, of tests also the names and strings, and the comments of the scripts that tests run (testdata/*.txt).
func Scan(root string) (Index, error) {
	x := Index{Code: map[string][]Place{}, Tests: map[string][]Place{}, Bugs: map[string][]string{}}
	err := filepath.WalkDir(filepath.Join(root, "broker"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".txt") && filepath.Base(filepath.Dir(path)) == "testdata" {
			text, err := os.ReadFile(path)
			x.script(filepath.ToSlash(name), string(text))
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !strings.HasPrefix(name, "broker/fault/") { // the catalogue says itself what it breaks
			x.file(name, file)
		}
		return nil
	})
	for _, p := range fault.Catalogue() {
		for _, id := range p.Breaks {
			x.Bugs[id] = append(x.Bugs[id], p.ID)
		}
	}
	for _, places := range []map[string][]Place{x.Code, x.Tests} {
		for id, list := range places {
			slices.SortFunc(list, func(a, b Place) int { return strings.Compare(a.File+" "+a.Decl, b.File+" "+b.Decl) })
			places[id] = slices.Compact(list)
		}
	}
	return x, err
}

func (x Index) file(name string, file *ast.File) {
	into, isTest := x.Code, strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "broker/storage/storagetest/")
	if isTest {
		into = x.Tests
	}
	add := func(at token.Pos, text string) {
		for _, id := range ids(text) {
			into[id] = append(into[id], Place{name, declaration(file, at)})
		}
	}
	for _, group := range file.Comments {
		add(group.Pos(), group.Text())
	}
	if !isTest {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				add(n.Pos(), n.Value)
			}
		case *ast.FuncDecl:
			if m := inName.FindStringSubmatch(n.Name.Name); m != nil {
				add(n.Pos(), strings.NewReplacer("R", " R", "S", " S").Replace(m[1]))
			}
		}
		return true
	})
}

// script reads the comment lines of a test's script.
func (x Index) script(name, text string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			for _, id := range ids(line) {
				x.Tests[id] = append(x.Tests[id], Place{File: name})
			}
		}
	}
}

// ids are the rule ids in a text, with ranges written out.
func ids(text string) []string {
	found := map[string]bool{}
	for _, m := range cited.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[2])
		to := from
		if m[3] == m[1] {
			to, _ = strconv.Atoi(m[4])
		}
		for n := from; n <= to; n++ {
			found[fmt.Sprintf("%s%d", m[1], n)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// declaration names what a comment belongs to: the declaration that holds it or whose documentation it is.
func declaration(file *ast.File, at token.Pos) string {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if holds(d, d.Doc, nil, at) {
				if d.Recv != nil {
					return receiver(d.Recv.List[0].Type) + "." + d.Name.Name
				}
				return d.Name.Name
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if holds(s, s.Doc, s.Comment, at) || len(d.Specs) == 1 && holds(d, d.Doc, nil, at) {
						return s.Name.Name
					}
				case *ast.ValueSpec:
					if holds(s, s.Doc, s.Comment, at) || len(d.Specs) == 1 && holds(d, d.Doc, nil, at) {
						return s.Names[0].Name
					}
				}
			}
		}
	}
	return ""
}

func holds(n ast.Node, doc, comment *ast.CommentGroup, at token.Pos) bool {
	from, to := n.Pos(), n.End()
	if doc != nil {
		from = doc.Pos()
	}
	if comment != nil {
		to = comment.End()
	}
	return from <= at && at < to
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
