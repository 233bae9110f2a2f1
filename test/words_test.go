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
var oldNames = regexp.MustCompile(`asp\.home\.|asp\.desk\.|ASP_DESK|json:"(theirs|heard|settled)\b|not heard while|; heard is |\b[Tt]ells (whether|if|that)\b|HandedOn|handedOn|AtHome|SilentHome`)

// oldWords are words that the program, its tests and its documents have others for.
var oldWords = regexp.MustCompile(`(?i)\b(hears|heard|unheard|strangers?|settle[sd]?|settling|hand(s|ed)? on (acts|to another broker)|(brings?|brought) (acts )?home|falls? silent)\b`)

// oldParts are those words within a name, such as isSettled.
var oldParts = regexp.MustCompile(`[a-z](Heard|Unheard|Strangers?|Settled?|Settling|Foreign)\b`)

// readers read what was stored or configured under old names, and tests of them write it.
var readers = []string{
	"api/escalation.go", "api/subjects.go", "broker/cluster/record.go", "broker/cluster/recovery.go", "store/backup/restore.go", "store/cases.go", "store/cases_test.go",
	"test/adversary/hijack_test.go", "test/formats/store_test.go", "test/words_test.go",
}

// written are the extensions of files that people write.
var written = []string{
	"", ".go", ".md", ".yaml", ".yml", ".json", ".jsonl", ".conf", ".txt", ".txtar", ".html", ".css", ".js", ".mjs", ".ts", ".py", ".rs", ".proto", ".toml",
}

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
			if base != "." && base != ".ci" && strings.HasPrefix(base, ".") || base == "dist" || base == "dist-test" || base == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !slices.Contains(written, path.Ext(base)) || slices.Contains(readers, name) {
			return nil
		}
		text, err := os.ReadFile("../" + name)
		if err != nil {
			return err
		}
		read++
		for _, old := range []*regexp.Regexp{oldNames, oldWords, oldParts} {
			if word := old.Find(text); word != nil {
				t.Errorf("%s says %q", name, word)
			}
			if word := old.FindString(name); word != "" {
				t.Errorf("%s is named %q", name, word)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("%d files were read", read)
	}
}
