package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var tagged = regexp.MustCompile(`(?m)^//go:build ([a-z]+)$`)

// TestSuites asserts that CONTRIBUTING.md names each suite that `go test ./...` leaves out, and
// that CI, which runs on Linux, runs it.
func TestSuites(t *testing.T) {
	t.Parallel()
	text := map[string]string{}
	for _, name := range []string{"CONTRIBUTING.md", ".ci/run", ".ci/browser", ".ci/languages", ".ci/gateways"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(data)
	}
	tags := map[string]bool{}
	for _, name := range goFiles(t, "..") {
		src, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if tag := tagged.FindSubmatch(src); len(tag) == 2 && string(tag[1]) != "linux" && strings.HasSuffix(name, "_test.go") {
			tags[string(tag[1])] = true
		}
	}
	for tag := range tags {
		command := regexp.MustCompile("go test [^\n]*-tags " + tag + `\b`)
		if !strings.Contains(text["CONTRIBUTING.md"], "-tags "+tag) || !command.MatchString(text[".ci/run"]+text[".ci/browser"]+text[".ci/languages"]+text[".ci/gateways"]) {
			t.Errorf("the suite with the tag %s is not named in CONTRIBUTING.md, or not run by .ci/run", tag)
		}
	}
	if !tags["browser"] || !tags["languages"] || !tags["gateways"] || !tags["long"] {
		t.Errorf("the tags of suites are %v: the test looks in the wrong place", tags)
	}
}
