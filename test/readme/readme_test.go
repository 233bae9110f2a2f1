// Package readme keeps the words true: it runs what README.md says, and checks
// what the other documents say of the code.
package readme

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
)

// TestTour runs every block marked sh, in order and in one shell, as a reader
// would. A block marked text after it is what the reader should see.
func TestTour(t *testing.T) {
	text := document(t, "README.md")
	tour := newShell(t)
	blocks := blocksOf(text)
	ran := 0
	for i, b := range blocks {
		if b.lang != "sh" {
			continue
		}
		out := tour.run(b)
		ran++
		if i+1 < len(blocks) && blocks[i+1].lang == "text" {
			if missing := unlike(out, blocks[i+1].text); missing != "" {
				t.Fatalf("README.md:%d: it says %q\nand what is printed is\n%s", blocks[i+1].line, missing, out)
			}
		}
	}
	if ran < 8 {
		t.Errorf("README.md has %d blocks marked sh", ran)
	}
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

const patience = 8 * time.Minute // for the whole tour, go install included

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), http: free(t)}
	seeSources(t)
	bin := filepath.Join(s.dir, "bin")
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./test/readme/nats")
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	bash := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	bash.Dir = root(t)
	nats := "nats://" + free(t)
	bash.Env = append(slices.DeleteFunc(os.Environ(), foreign),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOBIN="+bin, "TMPDIR="+s.dir,
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

// free finds an address of this machine that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *shell) tell(line string) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a block and returns what it printed. A command in it that fails,
// without an || after it, fails the test.
func (s *shell) run(b block) string {
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
			s.t.Fatalf("README.md:%d: %q failed\n%s", b.line, failed, out)
		}
		if strings.Contains(b.text, "parley serve") {
			s.serving(b)
		}
		return string(out)
	}
	s.t.Fatalf("README.md:%d: the shell ended, or took longer than %s", b.line, patience)
	return ""
}

// serving waits until the broker that a block has started answers; a reader
// takes that long to read on.
func (s *shell) serving(b block) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	defer cancel()
	if err := testkit.Serving(ctx, http.DefaultClient, "http://"+s.http+"/healthz"); err != nil {
		s.t.Fatalf("README.md:%d: %v", b.line, err)
	}
}

// TestTwoCommands: the main job and the tests are the first commands of all.
func TestTwoCommands(t *testing.T) {
	commands := regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(document(t, "README.md"), -1)
	if len(commands) < 2 || commands[0][1] != "go run ./cmd/parley demo" || commands[1][1] != "go test ./..." {
		t.Errorf("the first commands are %q", commands[:min(2, len(commands))])
	}
}

// TestSnippet: the Go that README.md shows is the program that the tour runs.
func TestSnippet(t *testing.T) {
	shown := named(t, document(t, "README.md"), "go")
	program := document(t, "test/readme/deal/main.go")
	if _, from, _ := strings.Cut(program, "\nfunc main"); "func main"+from != shown {
		t.Errorf("README.md's Go is not test/readme/deal/main.go from func main on")
	}
}

// TestWhatCanBeSaid: the tables of README.md name every act and every mode.
func TestWhatCanBeSaid(t *testing.T) {
	said, held := map[string]bool{}, map[string]bool{}
	for _, row := range rows(document(t, "README.md")) {
		said[row[0]] = true
		if name, ok := code(row[0]); ok {
			held[name] = true
		}
	}
	for _, act := range performatives.All() {
		if !said[act.String()] {
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
