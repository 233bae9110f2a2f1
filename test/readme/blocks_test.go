package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the top of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// document reads a file of the checkout.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A block is what stands between two fences.
type block struct {
	lang string // the whole info string
	line int    // of its opening fence, from 1
	text string
}

const fence = "```"

func blocksOf(document string) (blocks []block) {
	var open *block
	for i, line := range strings.Split(document, "\n") {
		mark, isFence := strings.CutPrefix(line, fence)
		switch {
		case isFence && open == nil:
			open = &block{lang: mark, line: i + 1}
		case isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return blocks
}

// named finds the one block with an info string.
func named(t *testing.T, document, lang string) string {
	t.Helper()
	var found []string
	for _, b := range blocksOf(document) {
		if b.lang == lang {
			found = append(found, b.text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d blocks are marked %q, want 1", len(found), lang)
	}
	return found[0]
}

// rows are the cells of all table rows, trimmed.
func rows(document string) (all [][]string) {
	for line := range strings.SplitSeq(document, "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		line = strings.ReplaceAll(line, `\|`, "\x00")
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		all = append(all, cells)
	}
	return all
}

// code takes `x` for x; ok is false for anything else.
func code(cell string) (string, bool) {
	if len(cell) < 3 || cell[0] != '`' || cell[len(cell)-1] != '`' || strings.Count(cell, "`") != 2 {
		return "", false
	}
	return cell[1 : len(cell)-1], true
}

// passing is what no two runs have in common.
var passing = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "<date>"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "<time>"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:<hash>"},
	{regexp.MustCompile(`\bU[A-Z2-7]{55}\b`), "<key>"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func masked(text string) []string {
	for _, p := range passing {
		text = p.is.ReplaceAllString(text, p.as)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// unlike is the first line of want that got lacks, "" if it lacks none. In
// want, … stands for anything within a line and, alone, for any lines.
func unlike(got, want string) string {
	have := masked(got)
	anywhere := false
	for _, line := range masked(want) {
		if line == "…" {
			anywhere = true
			continue
		}
		like := pattern(line)
		for anywhere && len(have) > 0 && !like.MatchString(have[0]) {
			have = have[1:]
		}
		if len(have) == 0 || !like.MatchString(have[0]) {
			return line
		}
		have, anywhere = have[1:], false
	}
	if len(have) > 0 && !anywhere {
		return "the end, before: " + have[0]
	}
	return ""
}

func pattern(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
}

func TestUnlike(t *testing.T) {
	for _, c := range []struct{ got, want, missing string }{
		{"a\nb", "a\nb", ""},
		{"a  b at 12:00:01", "a b at 09:30:00", ""},
		{"a\nb\nc", "a\n…\nc", ""},
		{"a\nb\nc", "…\nc", ""},
		{"a\nb", "a\n…", ""},
		{"accepted 17 at last", "accepted … last", ""},
		{"a\nb", "a", "the end, before: b"},
		{"a", "a\nb", "b"},
		{"a\nx\nc", "a\nb\nc", "b"},
		{"refused", "accepted …", "accepted …"},
	} {
		if got := unlike(c.got, c.want); got != c.missing {
			t.Errorf("%q unlike %q: %q, want %q", c.got, c.want, got, c.missing)
		}
	}
}
