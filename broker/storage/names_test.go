package storage_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// makesName are the functions of os after which a folder has a new name in it.
var makesName = map[string]bool{"Rename": true, "Mkdir": true, "MkdirAll": true, "Create": true, "CreateTemp": true, "WriteFile": true, "Link": true, "Symlink": true}

// makesNameInFS are the methods of files.FS of that kind. They are looked for where a file system is called l.fs or fsys.
var makesNameInFS = map[string]bool{"Create": true, "Rename": true, "MakeDir": true}

// notDurable marks a function whose new names need not last; a reason follows.
const notDurable = "not durable:"

// TestS5NamesAreFlushed looks at the code of the stores and of the node's folder: a function that makes or renames a file flushes the folder too. A running test
// could not see a missing flush unless the power failed.
func TestS5NamesAreFlushed(t *testing.T) {
	files := []string{"../node/store.go"}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "storagetest") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	makers := 0
	for _, path := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			makes, flushes := look(f)
			if makes {
				makers++
			}
			if makes && !flushes && !strings.Contains(f.Doc.Text(), notDurable) {
				t.Errorf("%s: %s makes a name in a folder and does not flush the folder", fset.Position(f.Pos()), f.Name.Name)
			}
		}
	}
	if makers < 3 {
		t.Errorf("only %d functions make names, so this test looks in the wrong place", makers)
	}
}

// look tells whether a function makes names, and whether it flushes folders.
func look(f *ast.FuncDecl) (makes, flushes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "os" && (makesName[n.Sel.Name] || n.Sel.Name == "O_CREATE") {
				makes = true
			}
			if makesNameInFS[n.Sel.Name] && isFS(n.X) {
				makes = true
			}
		case *ast.CallExpr:
			switch fun := n.Fun.(type) {
			case *ast.Ident:
				flushes = flushes || flushesNames(fun.Name)
			case *ast.SelectorExpr:
				flushes = flushes || flushesNames(fun.Sel.Name)
			}
		}
		return true
	})
	return makes, flushes
}

func flushesNames(function string) bool {
	return strings.EqualFold(function, "syncDir") || strings.EqualFold(function, "flushDir") || function == "flushNames"
}

// isFS tells whether an expression is one of the names by which the stores call their file system.
func isFS(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "fsys"
	case *ast.SelectorExpr:
		return x.Sel.Name == "fs"
	}
	return false
}
