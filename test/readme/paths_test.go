package readme

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inside = regexp.MustCompile(`\]\(#([^)]*)\)`)
	anchor = regexp.MustCompile(`(?m)^#+ (.*)$|<a name="([^"]*)">`)
	marks  = regexp.MustCompile(`[^\w\- ]`)
	linked = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	quoted = regexp.MustCompile("`([A-Za-z0-9_*-][A-Za-z0-9_.*-]*(?:/[A-Za-z0-9_.*-]+)*/?)`")
)

// TestPaths: every file and folder that a document names is there.
func TestPaths(t *testing.T) {
	top := root(t)
	documents := []string{"README.md", "CONTRIBUTING.md"}
	more, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range more {
		documents = append(documents, "docs/"+filepath.Base(name))
	}
	found := 0
	for _, name := range documents {
		text := prose(document(t, name))
		for _, link := range linked.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(link[1], "://") {
				found++
				exists(t, name, path.Join(path.Dir(name), link[1]))
				if strings.HasSuffix(link[1], ".md") {
					leads(t, name, path.Join(path.Dir(name), link[1]), strings.TrimPrefix(link[2], "#"))
				}
			}
		}
		for _, link := range inside.FindAllStringSubmatch(text, -1) {
			leads(t, name, name, link[1])
		}
		for _, word := range quoted.FindAllStringSubmatch(text, -1) {
			if isPath(top, word[1]) {
				found++
				exists(t, name, word[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("the documents name %d paths", found)
	}
}

// TestRooms: the tables of docs/ARCHITECTURE.md have every room, every part of the broker, and
// every gateway.
func TestRooms(t *testing.T) {
	tables, _, _ := strings.Cut(document(t, "docs/ARCHITECTURE.md"), "## Where a feature is")
	named := map[string]bool{"scripts": true} // a module of its own
	for _, pattern := range []string{"*/*.go", "*/*/*.go", "broker/*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folder, err := filepath.Rel(root(t), filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.ToSlash(folder)
			if room, inside, _ := strings.Cut(name, "/"); room == "gateway" && inside != "" {
				name = inside
			} else if room != "broker" {
				name = room
			}
			if !named[name] && !strings.Contains(tables, "`"+name+"/`") {
				t.Errorf("docs/ARCHITECTURE.md does not name %s", name)
			}
			named[name] = true
		}
	}
	if len(named) < 30 {
		t.Errorf("%d rooms, parts and gateways were found", len(named))
	}
}

// prose is a document without what stands between fences.
func prose(document string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.SplitSeq(document, "\n") {
		if strings.HasPrefix(line, fence) {
			fenced = !fenced
		} else if !fenced {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// isPath distinguishes a path of the checkout from other words: it starts with one of
// its folders, or it is a file of Go or Markdown.
func isPath(top, word string) bool {
	first, _, deeper := strings.Cut(word, "/")
	if !deeper {
		return strings.HasSuffix(word, ".md")
	}
	info, err := os.Stat(filepath.Join(top, first))
	return err == nil && info.IsDir() || strings.HasSuffix(word, ".go")
}

// leads checks that a page has the section that a link of another names.
func leads(t *testing.T, in, page, section string) {
	t.Helper()
	for _, found := range anchor.FindAllStringSubmatch(prose(document(t, page)), -1) {
		if slug := strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"); section == "" || section == slug || section == found[2] {
			return
		}
	}
	t.Errorf("%s links to the section %s of %s, which is not there", in, section, page)
}

func exists(t *testing.T, in, name string) {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(strings.TrimSuffix(name, "/"))))
	if err != nil || len(matches) == 0 {
		t.Errorf("%s names %s, which is not there", in, name)
	}
}
