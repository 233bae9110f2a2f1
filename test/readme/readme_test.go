// Package readme keeps the words true: it runs what README.md says, and checks
// what the other documents say of the code.
package readme

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/test/testkit"
)

// TestTours runs every block marked sh of a document, in order and in one shell, as a reader would who
// pastes them all at once. A block marked text after it is what the reader should see. What the blocks
// install is built before, once for all: `go install` finds it there.
func TestTours(t *testing.T) {
	t.Parallel()
	seeSources(t)
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./cmd/parley", "./test/readme/deal", "./test/readme/nats")
	build.Dir, build.Env = root(t), append(os.Environ(), goFlags())
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, out)
	}
	t.Run("README.md", func(t *testing.T) {
		t.Parallel()
		firstTour(t, newShell(t, bin))
	})
	for _, name := range []string{"docs/TOUR.md", "docs/AGREEMENTS.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newShell(t, bin).runs(name, 3)
		})
	}
}

// goFlags leaves the debugger's tables out of what is linked.
func goFlags() string { return "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-s") }

// firstTour is README.md's. At the end the human finds the item in the browser.
func firstTour(t *testing.T, tour *shell) {
	t.Helper()
	out := tour.runs("README.md", 5)
	link := regexp.MustCompile(`http://\S+/inbox/(items/\S+)\s*$`).FindStringSubmatch(out)
	if link == nil {
		t.Fatalf("the tour ends without the item's address:\n%s", out)
	}
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	browser := &http.Client{Jar: jar}
	asks := func(method, path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+tour.http+"/inbox/"+path, strings.NewReader(body))
		testkit.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Parley-Inbox", "1")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := browser.Do(r)
		testkit.Must(t, err)
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		testkit.Must(t, err)
		return string(page)
	}
	asks("POST", "login", `{"agentId":"human://acme.com/alice"}`)
	if page := asks("GET", link[1], ""); !strings.Contains(page, `data-status="open"`) || !strings.Contains(page, "above my limit of 180") {
		t.Errorf("the item's page does not show it:\n%s", page)
	}
}

// runs executes the blocks of a document, at least so many, and returns what the last printed.
func (s *shell) runs(name string, least int) (out string) {
	s.t.Helper()
	blocks := blocksOf(document(s.t, name))
	for i, b := range blocks {
		if b.lang != "sh" {
			continue
		}
		out = s.run(name, b)
		least--
		if i+1 < len(blocks) && blocks[i+1].lang == "text" {
			if missing := unlike(out, blocks[i+1].text); missing != "" {
				s.t.Fatalf("%s:%d: it says %q\nand what is printed is\n%s", name, blocks[i+1].line, missing, out)
			}
		}
	}
	if least > 0 {
		s.t.Errorf("%s has %d blocks marked sh too few", name, least)
	}
	return out
}

// A shell is one bash in which the tour goes on.
type shell struct {
	t       *testing.T
	in      *os.File
	answers *bufio.Scanner
	dir     string
	http    string
	blocks  int
}

const patience = 20 * time.Minute // for the whole tour, go install included

// newShell finds in bin what the tour installs, and installs it there.
func newShell(t *testing.T, bin string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), http: testkit.FreeAddress(t)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	bash := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	bash.Dir = root(t)
	nats := "nats://" + testkit.FreeAddress(t)
	bash.Env = append(slices.DeleteFunc(os.Environ(), foreign),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOBIN="+bin, goFlags(), "TMPDIR="+s.dir,
		"NATS_URL="+nats, "PARLEY_URL="+nats, "PARLEY_LISTEN="+strings.TrimPrefix(nats, "nats://"), "PARLEY_HTTP="+s.http)
	stdin, in := pipe(t)
	answers, stdout := pipe(t)
	s.in, s.answers = in, bufio.NewScanner(answers)
	bash.Stdin, bash.Stdout, bash.Stderr = stdin, stdout, os.Stderr
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	stdout.Close()
	t.Cleanup(func() {
		in.Close() // bash leaves, and ends what it left running
		if err := bash.Wait(); err != nil {
			t.Errorf("the shell: %v", err)
		}
		cancel()
	})
	s.tell(`set -E; trap 'failed="$BASH_COMMAND"' ERR; trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT`)
	return s
}

// seeSources looks at every Go file, so that go test does not take an old result
// for this one: what the shell builds from them it does not see.
func seeSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case filepath.Ext(name) == ".go":
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// foreign are the settings of whoever runs the test that would lead elsewhere.
func foreign(setting string) bool {
	return strings.HasPrefix(setting, "PARLEY_") || strings.HasPrefix(setting, "NATS_") ||
		strings.HasPrefix(setting, "GOBIN=") || strings.HasPrefix(setting, "PATH=") || strings.HasPrefix(setting, "COLUMNS=")
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (s *shell) tell(line string) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a block and returns what it printed. A command in it that fails,
// without an || after it, fails the test.
func (s *shell) run(name string, b block) string {
	s.t.Helper()
	s.blocks++
	script := filepath.Join(s.dir, fmt.Sprintf("block%d.sh", s.blocks))
	printed := strings.TrimSuffix(script, ".sh") + ".out"
	if err := os.WriteFile(script, []byte(b.text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.tell(fmt.Sprintf(`failed=; { . %q; } > %q 2>&1; echo "end of block: $failed"`, script, printed))
	for s.answers.Scan() {
		failed, ended := strings.CutPrefix(s.answers.Text(), "end of block: ")
		if !ended {
			continue
		}
		out, err := os.ReadFile(printed)
		if err != nil {
			s.t.Fatal(err)
		}
		if failed != "" {
			s.t.Fatalf("%s:%d: %q failed\n%s", name, b.line, failed, out)
		}
		return string(out)
	}
	s.t.Fatalf("%s:%d: the shell ended, or took longer than %s", name, b.line, patience)
	return ""
}

// TestTwoCommands: the main job and the tests are the first commands of all.
func TestTwoCommands(t *testing.T) {
	commands := regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(document(t, "README.md"), -1)
	if len(commands) < 2 || commands[0][1] != "go run ./cmd/parley demo" || commands[1][1] != "go test ./..." {
		t.Errorf("the first commands are %q", commands[:min(2, len(commands))])
	}
}

// TestSnippet: the Go that docs/TOUR.md shows is the program that the tour runs.
func TestSnippet(t *testing.T) {
	shown := named(t, document(t, "docs/TOUR.md"), "go")
	program := document(t, "test/readme/deal/main.go")
	if _, from, _ := strings.Cut(program, "\nfunc main"); "func main"+from != shown {
		t.Errorf("docs/TOUR.md's Go is not test/readme/deal/main.go from func main on")
	}
}

// TestWhatCanBeSaid: README.md names every act, and has a row for every mode.
func TestWhatCanBeSaid(t *testing.T) {
	text, held := document(t, "README.md"), map[string]bool{}
	for _, row := range rows(text) {
		if name, ok := code(row[0]); ok {
			held[name] = true
		}
	}
	for _, act := range performatives.All() {
		if !regexp.MustCompile(`\b` + act.String() + `\b`).MatchString(prose(text)) {
			t.Errorf("README.md does not name %s", act)
		}
	}
	for name := range modes.All() {
		if !held[name] {
			t.Errorf("README.md does not name %s", name)
		}
		delete(held, name)
	}
	if len(held) > 0 {
		t.Errorf("README.md names modes that are not there: %v", held)
	}
}
