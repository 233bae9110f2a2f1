package session_test

import (
	"os"
	"strings"
	"testing"
)

// FuzzStep plays scripts; the conversations are its seeds. Lines that say
// nothing are passed over. The stage asserts what holds after every act.
func FuzzStep(f *testing.F) {
	files, err := conversations()
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for scene := range strings.SplitSeq(string(text), "\n== ") {
			f.Add(scene)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 8<<10 {
			return
		}
		c := newConversation(t, cells{})
		for line := range strings.SplitSeq(script, "\n") {
			said, _, _ := strings.Cut(line, " : ")
			words := strings.Fields(said)
			if len(words) == 0 || strings.HasPrefix(line, "  |") {
				continue
			}
			if _, err := c.perform(said, words); err != nil {
				continue
			}
		}
		c.replayed()
	})
}
