package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// numbered is a mutant with its number, from 1 on.
type numbered struct {
	n int
	Mutant
}

// chooser is the environment variable that holds the number of the mutant that is alive in a woven binary. It has none by default.
const chooser = "ACKPROOF_MUTANT"

// weave puts all edits of one file into it at once, so that one build serves them all: a function that is edited stays as it is under another name, each edit gets a copy of
// it, and the function itself asks which one is meant. It answers the file, and another one to go with it.
func weave(text string, edits []numbered) (woven, choice string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	byFunction := make(map[*ast.FuncDecl][]numbered)
	for _, e := range edits {
		f, err := e.function(file, text, offset)
		if err != nil {
			return "", "", err
		}
		byFunction[f] = append(byFunction[f], e)
	}
	var rest strings.Builder
	woven = text
	for _, d := range slices.Backward(file.Decls) { // from behind, so that offsets stay true
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(byFunction[f]) == 0 {
			continue
		}
		name := offset(f.Name.Pos())
		woven = woven[:name] + f.Name.Name + "__real" + woven[offset(f.Name.End()):]
		rest.WriteString(dispatch(f, text, offset, byFunction[f]))
		from, to := offset(f.Pos()), offset(f.End())
		for _, e := range byFunction[f] {
			// An edit stands behind the name, if not in it, so the copy is renamed before.
			before := text[from:name] + copyName(f, e.n)
			body := strings.Replace(text[offset(f.Name.End()):to], e.Old, e.New, 1)
			if !strings.Contains(text[offset(f.Name.End()):to], e.Old) { // it begins with the head of the function
				body = strings.TrimPrefix(strings.Replace(text[from:to], e.Old, e.New, 1), text[from:offset(f.Name.End())])
			}
			fmt.Fprintf(&rest, "\n//line mutant%d.go:1\n%s%s\n", e.n, before, body)
		}
	}
	choice = fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutant__chosen, _ = strconv.Atoi(os.Getenv(%q))\n", file.Name.Name, chooser)
	return woven + "\n" + rest.String(), choice, nil
}

func copyName(f *ast.FuncDecl, n int) string { return fmt.Sprintf("%s__%d", f.Name.Name, n) }

// function finds the one in which the edit lies.
func (m Mutant) function(file *ast.File, text string, offset func(token.Pos) int) (*ast.FuncDecl, error) {
	edited, err := m.apply(text)
	if err != nil {
		return nil, err
	}
	from := strings.Index(text, m.Old)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || from < offset(f.Pos()) || from+len(m.Old) > offset(f.End()) {
			continue
		}
		if head := text[:offset(f.Body.Lbrace)]; !strings.HasPrefix(edited, head) {
			return nil, fmt.Errorf("%s: it changes the head of a function", m)
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s: the old text lies in no function", m)
}

// dispatch is the function that calls the real one, or one of its edited copies.
func dispatch(f *ast.FuncDecl, text string, offset func(token.Pos) int, edits []numbered) string {
	source := func(n ast.Node) string { return text[offset(n.Pos()):offset(n.End())] }
	var names, params []string
	for _, field := range f.Type.Params.List {
		for range max(1, len(field.Names)) {
			name := fmt.Sprintf("p%d__", len(names))
			params = append(params, name+" "+source(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			names = append(names, name)
		}
	}
	receiver, call, types := "", "", ""
	if f.Recv != nil {
		receiver, call = "(r__ "+source(f.Recv.List[0].Type)+") ", "r__."
	}
	head := "func " + receiver + f.Name.Name
	if f.Type.TypeParams != nil {
		var all []string
		for _, field := range f.Type.TypeParams.List {
			for _, n := range field.Names {
				all = append(all, n.Name)
			}
		}
		head, types = head+source(f.Type.TypeParams), "["+strings.Join(all, ", ")+"]"
	}
	results, give := "", "%s; return"
	if f.Type.Results != nil {
		results, give = " "+source(f.Type.Results), "return %s"
	}
	arguments := types + "(" + strings.Join(names, ", ") + ")"
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s(%s)%s {\n\tswitch mutant__chosen {\n", head, strings.Join(params, ", "), results)
	for _, e := range edits {
		fmt.Fprintf(&b, "\tcase %d:\n\t\t"+give+"\n", e.n, call+copyName(f, e.n)+arguments)
	}
	fmt.Fprintf(&b, "\tdefault:\n\t\t"+give+"\n\t}\n}\n", call+f.Name.Name+"__real"+arguments)
	return b.String()
}
