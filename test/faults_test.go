package test

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// faults is what one Go file does against the tables of arrows_test.go. Its name
// is slash-separated and relative to the module's root.
func faults(name, src string) []string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	say := func(at token.Pos, format string, args ...any) {
		where := fset.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: %s", where.Filename, where.Line, fmt.Sprintf(format, args...)))
	}

	for _, word := range vague {
		if strings.Contains(strings.ToLower(name), word) {
			say(file.Pos(), "%q in a name says nothing: name what it is about", word)
		}
	}
	if !strings.HasSuffix(name, "_test.go") && !isGenerator(file) {
		importFaults(name, file, say)
	}
	if isTest(name) {
		testFaults(name, file, say)
	} else if !slices.Contains(tellsActsApart, path.Dir(name)) {
		actFaults(file, say)
	}
	return found
}

// importFaults checks a non-test file against its package's row.
func importFaults(name string, file *ast.File, say func(token.Pos, string, ...any)) {
	dir := path.Dir(name)
	here, ok := row(dir)
	if !ok {
		say(file.Package, "package %s has no row in the table of test/arrows_test.go: say there what it may import", dir)
		return
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			say(spec.Pos(), "%v", err)
			continue
		}
		ours, isOurs := strings.CutPrefix(imported, module+"/")
		where, isNATS := natsIn[imported]
		switch {
		case isNATS && !here.pure && !isTest(name) && !slices.Contains(where, dir):
			say(spec.Pos(), "%s must not import %s: only %s may", dir, imported, list(where))
		case (ours == testkit || ours == natskit || ours == testkey) && !isTest(name):
			say(spec.Pos(), "only tests may import %s", ours)
		case isOurs && !here.free && !slices.Contains(here.imports, ours):
			say(spec.Pos(), "%s must not import %s; it may import %s", dir, ours, list(here.imports))
		case here.pure && slices.ContainsFunc(impure, func(pattern string) bool { return below(pattern, imported) }):
			say(spec.Pos(), "%s is pure and must not import %s", dir, imported)
		}
	}
	if here.pure {
		eachUseOfTime(file, func(at token.Pos, used string) {
			if used == "." {
				say(at, "dot import of time in %s, which is pure: the clock must be seen", dir)
			} else if isClock(used) {
				say(at, "time.%s in %s, which is pure: time comes in with the event", used, dir)
			}
		})
	}
}

// pauses is where natskit.Eventually is, which alone may pause between two looks.
const pauses = "test/natskit/eventually.go"

// testFaults checks a file that is, or serves, tests.
func testFaults(name string, file *ast.File, say func(token.Pos, string, ...any)) {
	for _, spec := range file.Imports {
		if ours, isOurs := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); isOurs && slices.Contains(apart, path.Dir(name)) && slices.Contains(whole, ours) {
			say(spec.Pos(), "the tests of %s must not import %s, which compiles it all once more: use natskit, or move the test to broker or server", path.Dir(name), ours)
		}
	}
	eachUseOfTime(file, func(at token.Pos, used string) {
		if slices.Contains(waits, used) {
			say(at, "time.%s: wait for what should happen, not for time to pass", used)
		}
	})
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if isSkip(sel) {
			say(sel.Pos(), "%s.%s: a test that cannot run fails", sel.X, sel.Sel.Name)
		}
		if on, ok := sel.X.(*ast.Ident); ok && on.Name == "background" && sel.Sel.Name == "Pause" && name != pauses && localName(file, "testing/synctest", "synctest") == "" {
			say(sel.Pos(), "background.Pause: natskit.Eventually waits for what has no signal")
		}
		return true
	})
}

// actFaults checks that a file leaves it to the acts to speak for themselves: it
// has no type switch that names several of their bodies.
func actFaults(file *ast.File, say func(token.Pos, string, ...any)) {
	local := localName(file, module+"/performatives", "performatives")
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSwitchStmt); ok {
			if bodies := bodiesIn(s, local); len(bodies) > 1 {
				say(s.Pos(), "a switch over %s: let the acts speak for themselves (performatives.Body)", strings.Join(bodies, ", "))
			}
		}
		return true
	})
}

// bodiesIn lists the body types that the cases of a type switch name.
func bodiesIn(s *ast.TypeSwitchStmt, local string) (bodies []string) {
	for _, clause := range s.Body.List {
		for _, expr := range clause.(*ast.CaseClause).List { //nolint:forcetypeassert // it has no other
			if star, ok := expr.(*ast.StarExpr); ok {
				expr = star.X
			}
			if sel, ok := expr.(*ast.SelectorExpr); ok && strings.HasSuffix(sel.Sel.Name, "Body") {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == local {
					bodies = append(bodies, sel.Sel.Name)
				}
			}
		}
	}
	return bodies
}

// isSkip says whether a selector is the Skip of a test, going by what tests are
// called: t, b, f, tb, rt.
func isSkip(sel *ast.SelectorExpr) bool {
	on, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "f", "tb", "rt"}, on.Name) &&
		slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name)
}

// eachUseOfTime calls use with each name of package time that a file mentions,
// and with "." for a dot import.
func eachUseOfTime(file *ast.File, use func(token.Pos, string)) {
	local := localName(file, "time", "time")
	if local == "." {
		use(file.Package, ".")
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && local != "" && pkg.Name == local {
				use(sel.Pos(), sel.Sel.Name)
			}
		}
		return true
	})
}

// isGenerator says whether a file is kept out of the build by //go:build ignore.
func isGenerator(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			expr, err := constraint.Parse(comment.Text)
			if err == nil && !expr.Eval(func(tag string) bool { return tag != "ignore" }) {
				return true
			}
		}
	}
	return false
}

// list is what a person reads of a row.
func list(names []string) string {
	if len(names) == 0 {
		return "none of ours"
	}
	return strings.Join(names, ", ")
}

// row finds a package's row in places.
func row(dir string) (place, bool) {
	if p, ok := places[dir]; ok {
		return p, true
	}
	for pattern, p := range places {
		if below(pattern, dir) {
			return p, true
		}
	}
	return place{}, false
}

// below says whether name is what pattern names, or below it if that ends in /...
func below(pattern, name string) bool {
	tree, deep := strings.CutSuffix(pattern, "/...")
	return name == tree || deep && strings.HasPrefix(name, tree+"/")
}

// localName is what a file calls a package, or "".
func localName(file *ast.File, imported, name string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return name
	}
	return ""
}

// isTest says whether a file is held to the rules for tests.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, testkit+"/")
}

// isClock says whether a name of package time tells the time or waits for it.
func isClock(name string) bool { return slices.Contains(clocks, name) }
