package purity

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ackproof/ci/source"
)

// Finding is one impurity.
type Finding struct {
	Pos  token.Position
	What string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.Pos.Filename, f.Pos.Line, f.What) }

// Check looks at the packages that the patterns name, below the folder root, without their tests. Further arguments for go list (a build tag, an overlay) may stand before the
// patterns; overlay gives other contents to files, as go's flag of that name does, and must say the same. Findings are sorted by position.
func Check(root string, overlay map[string]string, args ...string) ([]Finding, error) {
	packages, err := source.List(root, append([]string{"-export", "-deps"}, args...)...)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	pure := make(map[string]bool)
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
		pure[p.ImportPath] = !p.DepOnly
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var findings []Finding
	for _, p := range packages {
		if !pure[p.ImportPath] {
			continue
		}
		c := checker{fset: fset, pure: pure, info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		var files []*ast.File
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			var text any // nil: read the file
			if other, ok := overlay[path]; ok {
				text = other
			}
			file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		conf := types.Config{Importer: compiled}
		if _, err := conf.Check(p.ImportPath, fset, files, c.info); err != nil {
			return nil, fmt.Errorf("type-check %s: %w", p.ImportPath, err)
		}
		for _, file := range files {
			c.file(file)
		}
		findings = append(findings, c.findings...)
	}
	slices.SortFunc(findings, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })
	return findings, nil
}

// checker looks at one package.
type checker struct {
	fset     *token.FileSet
	info     *types.Info
	pure     map[string]bool
	vouched  map[int]bool // lines of directives in the current file → used
	findings []Finding
}

func (c *checker) report(at token.Pos, format string, args ...any) {
	c.findings = append(c.findings, Finding{c.fset.Position(at), fmt.Sprintf(format, args...)})
}

func (c *checker) file(file *ast.File) {
	c.vouched = make(map[int]bool)
	directives := make(map[int]token.Pos)
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if reason, ok := strings.CutPrefix(comment.Text, Directive); ok {
				if strings.TrimSpace(reason) == "" {
					c.report(comment.Pos(), "%s without a reason", Directive)
				}
				line := c.fset.Position(comment.Pos()).Line
				directives[line], c.vouched[line] = comment.Pos(), false
			}
			if strings.HasPrefix(comment.Text, "//go:linkname") {
				c.report(comment.Pos(), "reaches into another package by linkname")
			}
		}
	}
	var above []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		c.node(n, above)
		above = append(above, n)
		return true
	})
	for _, line := range slices.Sorted(maps.Keys(directives)) {
		if !c.vouched[line] {
			c.report(directives[line], "%s without a range over a map", Directive)
		}
	}
}

func (c *checker) node(n ast.Node, above []ast.Node) {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if path, err := strconv.Unquote(n.Path.Value); err != nil || !Imports[path] && !c.pure[path] {
			c.report(n.Pos(), "imports %s, which is not among the imports of a pure package", n.Path.Value)
		}
	case *ast.GoStmt:
		c.report(n.Pos(), "starts a goroutine")
	case *ast.ChanType:
		c.report(n.Pos(), "uses a channel")
	case *ast.SelectStmt:
		c.report(n.Pos(), "selects among channels")
	case *ast.SendStmt:
		c.report(n.Pos(), "sends to a channel")
		return
	case *ast.UnaryExpr:
		switch n.Op {
		case token.ARROW:
			c.report(n.Pos(), "receives from a channel")
		case token.AND:
			c.changed(n.X, "takes the address of")
		}
	case *ast.Ident:
		if used := c.info.Uses[n]; used != nil && used.Pkg() != nil {
			method := used.Parent() == nil // time.After waits, but t.After(u) compares; t.Local alone is as bad as time.Local
			if path := used.Pkg().Path(); path == "time" && Clock[used.Name()] && (!method || used.Name() == "Local") {
				c.report(n.Pos(), "uses time.%s", used.Name())
			} else if path == "maps" && MapOrder[used.Name()] && !sorted(above) {
				c.vouch(n.Pos(), "uses maps."+used.Name())
			}
		}
	case *ast.RangeStmt:
		switch c.info.Types[n.X].Type.Underlying().(type) {
		case *types.Map, *types.Interface: // a type parameter, whose underlying type is its constraint, may be a map
			c.vouch(n.For, "ranges over a map")
		case *types.Chan:
			c.report(n.For, "receives from a channel")
		}
		if n.Tok == token.ASSIGN {
			c.changed(n.Key, "assigns to")
			c.changed(n.Value, "assigns to")
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, left := range n.Lhs {
				c.changed(left, "assigns to")
			}
		}
	case *ast.IncDecStmt:
		c.changed(n.X, "assigns to")
	case *ast.CallExpr:
		c.call(n)
	}
}

// call finds calls that change their operand.
func (c *checker) call(n *ast.CallExpr) {
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		if _, builtin := c.info.Uses[fun].(*types.Builtin); builtin && (fun.Name == "delete" || fun.Name == "clear" || fun.Name == "copy") {
			c.changed(n.Args[0], "changes")
		}
	case *ast.SelectorExpr:
		if s := c.info.Selections[fun]; s != nil && s.Kind() == types.MethodVal {
			if f, ok := s.Obj().(*types.Func); ok {
				if _, pointer := f.Signature().Recv().Type().(*types.Pointer); pointer {
					c.changed(fun.X, "calls a method that may change")
				}
			}
		}
	}
}

// changed reports a change of a package's variable, or of something inside of one.
func (c *checker) changed(x ast.Expr, how string) {
	for {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.SelectorExpr:
			if c.global(e.Sel, how) {
				return
			}
			x = e.X
		case *ast.Ident:
			c.global(e, how)
			return
		default:
			return
		}
	}
}

func (c *checker) global(name *ast.Ident, how string) bool {
	v, ok := c.info.Uses[name].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return false
	}
	c.report(name.Pos(), "%s the package's variable %s", how, name.Name)
	return true
}

// vouch reports an order of a map unless a directive vouches that it cannot be seen.
func (c *checker) vouch(at token.Pos, what string) {
	line := c.fset.Position(at).Line
	for _, l := range []int{line, line - 1} {
		if _, ok := c.vouched[l]; ok {
			c.vouched[l] = true
			return
		}
	}
	c.report(at, "%s: sort the keys, or say why no order can be seen (%s reason)", what, Directive)
}

// sorted tells whether a maps function stands directly inside slices.Sorted(…).
func sorted(above []ast.Node) bool {
	// Ident < SelectorExpr < CallExpr of maps < CallExpr of slices
	if len(above) < 3 {
		return false
	}
	outer, ok := above[len(above)-3].(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := outer.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != "Sorted" {
		return false
	}
	pkg, ok := fun.X.(*ast.Ident)
	return ok && pkg.Name == "slices"
}
