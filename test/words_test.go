package test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldNames are names that have others since, on the wire and in what users read.
var oldNames = regexp.MustCompile(`asp\.home\.|asp\.desk\.|ASP_DESK|json:"(theirs|heard|settled)\b|not heard while|; heard is |[Tt]ells whether|HandedOn|handedOn|AtHome`)

// oldWords are words that the program, its tests and its documents have others for.
var oldWords = regexp.MustCompile(`(?i)\b(heard|unheard|strangers?|settle[sd]?|settling)\b`)

// readers read what was stored or configured under old names, and tests of them write it.
var readers = []string{
	"api/escalation.go", "api/subjects.go", "broker/cluster/record.go", "broker/cluster/recovery.go", "store/backup/restore.go", "store/cases.go", "store/cases_test.go",
	"test/adversary/hijack_test.go", "test/formats/store_test.go", "test/words_test.go",
}

// written are the extensions of files that people write.
var written = []string{".go", ".md", ".yaml", ".json", ".conf", ".txt", ".txtar", ".html", ".js", ".mjs", ".py"}

// TestOldWordsAreGone keeps them from coming back.
func TestOldWordsAreGone(t *testing.T) {
	t.Parallel()
	read := 0
	if err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if base != "." && strings.HasPrefix(base, ".") || base == "dist" || base == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(written, path.Ext(base)) || slices.Contains(readers, name) {
			return nil
		}
		text, err := os.ReadFile("../" + name)
		if err != nil {
			return err
		}
		read++
		if word := oldNames.Find(text); word != nil {
			t.Errorf("%s says %q", name, word)
		}
		if word := oldWords.Find(text); word != nil {
			t.Errorf("%s says %q", name, word)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("%d files were read", read)
	}
}
