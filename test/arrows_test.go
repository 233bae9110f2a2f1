// Package test asserts the architecture: who may import whom, what is pure, and
// how tests are written. The tests beside it are in folders of their own.
package test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/parley-asp/parley"

// A place is what one package of ours may lean on.
type place struct {
	imports []string // our packages its non-test files may import
	free    bool     // may import any package of ours
	pure    bool     // no IO, no logger, no context, no clock: see impure and clocks
}

// pure is a place without IO that may import these packages of ours.
func pure(imports ...string) place { return place{imports: imports, pure: true} }

// plain is a place with IO that may import these packages of ours.
func plain(imports ...string) place { return place{imports: imports} }

// free is a place where things are put together.
var free = place{free: true}

// testkit is what tests run against, and testkey has their keys: nothing of the program may import them.
const (
	testkit = "internal/testkit"
	testkey = "internal/testkey"
)

// places is the architecture. A path that ends in /... stands for all below it.
var places = map[string]place{
	"performatives":        pure("internal/ijson"),
	"delegation":           pure("performatives"),
	"escalation":           pure("performatives"),
	"schemas":              pure("internal/ijson", "performatives"),
	"schemas/gen":          plain("performatives", "schemas", "api", "session"), // writes the *.json; not part of the program
	"schemas/internal/...": plain("performatives", "schemas"),                   // the same
	"internal/persist":     pure(),
	"internal/ijson":       pure(),
	"internal/natscontext": plain(),
	"session":              pure("performatives", "delegation", "escalation", "internal/persist"),
	"modes":                pure("agreement", "performatives", "delegation", "escalation", "internal/persist", "session"),
	"transcript":           pure("internal/ijson", "performatives"),
	"inclusion":            pure("performatives"),
	"publiclog":            plain("inclusion"),
	"agreement":            pure("internal/ijson", "inclusion", "performatives", "session", "transcript"),
	"discovery":            pure("performatives"),
	"fit":                  pure(),
	"api":                  pure("fit", "agreement", "discovery", "performatives", "delegation", "escalation", "schemas", "session", "modes"),
	"audit":                pure("performatives", "escalation", "session", "transcript", "api"),

	"internal/background": plain(),
	"internal/pending":    plain(),
	"internal/calls":      plain("api", "performatives"),
	"internal/publicnet":  plain(),
	"store":               plain("api", "internal/background", "internal/pending", "performatives"),

	"registry":      plain("fit", "agreement", "api", "discovery", "internal/background", "performatives", "schemas", "session", "store"),
	"custody":       plain("fit", "api", "internal/background", "performatives", "session", "store"),
	"scheduler":     plain("performatives"),
	"ratelimit":     plain("api", "performatives", "session"),
	"access":        plain("api", "delegation", "performatives", "session", "sessionlist", "store"),
	"entries":       plain("api", "archive", "performatives", "store"),
	"queries":       plain("fit", "access", "api", "entries", "performatives", "session", "sessionlist", "store"),
	"agreements":    plain("fit", "access", "agreement", "api", "entries", "inclusion", "ledger", "performatives", "session", "transcript"),
	"verbs":         plain("api", "internal/background", "performatives", "scheduler", "session"),
	"sessionlist":   plain("api", "internal/background", "performatives", "session", "store"),
	"archive":       plain("api", "internal/background", "performatives", "session", "sessionlist", "store"),
	"ledger":        plain("api", "inclusion", "internal/background", "performatives", "store"),
	"cluster":       plain("api", "internal/background", "performatives", "store"),
	"approvals":     plain("fit", "api", "escalation", "internal/background", "performatives", "session", "store"),
	"insights":      plain("access", "api", "entries", "internal/background", "performatives", "session", "sessionlist"),
	"timers":        plain("api", "cluster", "internal/background", "performatives", "store"),
	"auditreads":    plain("fit", "access", "api", "archive", "escalation", "performatives", "session", "sessionlist", "store", "timers", "transcript"),
	"embeddings":    plain("discovery"),
	"negotiator":    plain("api", "performatives", "session"),
	"turns":         plain("fit", "agreement", "api", "internal/background", "performatives", "session", "store"),
	"proposals":     plain("fit", "api", "discovery", "performatives", "session"),
	"domainproof":   plain("internal/publicnet", "performatives"),
	"availability":  plain("api", "internal/background", "performatives", "store"),
	"extensions":    pure(),
	"feed":          plain("internal/background", "store"),
	"idempotency":   plain("api", "performatives", "store"),
	"hosted":        plain("agreement", "api", "idempotency", "internal/calls", "performatives", "session"),
	"records":       plain("store"),
	"gateway/a2a":   plain("api", "custody", "extensions", "hosted", "internal/background", "internal/calls", "internal/publicnet", "performatives", "session"),
	"gateway/ard":   plain("fit", "api", "performatives"),
	"gateway/bindu": plain("discovery", "performatives"),
	"gateway/http":  plain("api", "custody", "hosted", "internal/background", "internal/calls", "performatives", "schemas", "session"),
	"gateway/index": plain("api", "custody", "internal/calls", "modes", "performatives", "session"),
	"gateway/oap":   plain("agreement", "api", "custody", "hosted", "internal/calls", "modes", "performatives", "session"),
	"gateway/macp":  plain("api", "custody", "gateway/macp/pb", "hosted", "internal/background", "internal/calls", "performatives", "session", "store"),
	"gateway/mcp":   plain("api", "custody", "discovery", "gateway/index", "hosted", "internal/background", "modes", "performatives", "render", "schemas", "session", "transcript"),
	"gateway/nats":  plain("api", "broker", "cluster", "internal/background", "internal/pending", "performatives", "schemas", "session"),

	"gateway/mcp/signing": plain("api", "client", "performatives", "session"),

	"gateway/macp/pb":  plain(), // generated
	"gateway/macp/gen": plain(), // writes pb; not part of the program

	"client":              plain("client/internal/web", "agreement", "discovery", "internal/natscontext", "performatives", "schemas", "session", "transcript", "api"),
	"client/internal/web": plain("api", "performatives"),
	"tender":              plain("api", "client", "negotiator", "performatives", "render", "session"),
	"login":               plain("api"),
	"embedded":            plain("login", "api"),
	"broker":              plain("domainproof", "scheduler", "ratelimit", "verbs", "access", "entries", "queries", "agreements", "auditreads", "timers", "agreement", "availability", "inclusion", "ledger", "proposals", "registry", "custody", "feed", "sessionlist", "archive", "approvals", "insights", "turns", "cluster", "internal/background", "store", "performatives", "delegation", "escalation", "schemas", "session", "modes", "transcript", "api"),
	"inbox":               plain("delegation", "escalation", "performatives", "render", "session", "transcript", "api", "internal/calls"),
	"backup":              plain("api"),
	"notify":              plain("escalation", "performatives", "render", "api"),
	"server":              plain("gateway/a2a", "internal/publicnet", "custody", "discovery", "embeddings", "gateway/ard", "gateway/bindu", "agreement", "gateway/http", "gateway/index", "gateway/macp", "gateway/mcp", "gateway/nats", "gateway/oap", "hosted", "idempotency", "records", "store", "registry", "archive", "broker", "embedded", "escalation", "inbox", "ledger", "login", "notify", "performatives", "api"),
	"render":              pure("agreement", "discovery", "performatives", "session", "transcript", "api"),
	"internal/demo":       plain("agreement", "inclusion", "internal/background", "client", "gateway/macp/pb", "modes", "negotiator", "server", "performatives", "render", "session", "tender", "transcript", "api"),
	"internal/bench":      plain("internal/background", "archive", "sessionlist", "audit", "broker", "client", "escalation", "modes", "server", "performatives", "session", "transcript", "api"),
	"cmd/parley":          free,
	testkit:               free,   // and only tests may import it
	testkey:               pure(), // the same
	"test/...":            free,
}

// tellsActsApart are the packages that may switch over the bodies of acts: the
// acts' own, and the demo, whose agents choose their answers by act.
var tellsActsApart = []string{"performatives", "internal/demo"}

// impure is what a pure package must not import; a path that ends in /... stands
// for itself and all below it. nkeys is absent: it is key formats and Ed25519.
var impure = []string{
	"context", "log/...", "net", "net/http/...", "os/...", "go.uber.org/zap/...",
	"github.com/nats-io/nats.go/...", "github.com/nats-io/nats-server/...", "github.com/nats-io/jwt/...",
}

// clocks are the names of package time that tell the time or wait for it. In a
// pure package the time comes in with the event.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"}

// waits are the names of package time that wait for time to pass, a channel of a timer included. In
// a test what should happen is waited for, time is synctest's or a testkit.Clock, and a context's
// deadline ends what takes too long.
var waits = []string{"Sleep", "After", "NewTimer", "NewTicker", "Tick"}

// vague are the words that no file and no package has in its name.
var vague = []string{"util", "helper", "common", "manager", "handler"}

// TestArrows asserts on every Go file of the module who imports whom, that the
// pure packages are pure, that acts speak for themselves, that tests neither
// skip nor sleep, and the names.
func TestArrows(t *testing.T) {
	t.Parallel()
	files := 0
	for _, name := range goFiles(t, "..") {
		src, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, fault := range faults(name, string(src)) {
			t.Error(fault)
		}
	}
	if files == 0 {
		t.Error("no Go file found: the test looks in the wrong place")
	}
}

// goFiles are the module's Go files, slash-separated and relative to root. A
// folder with a go.mod of its own is another module.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			if path.Ext(name) == ".go" {
				names = append(names, name)
			}
			return nil
		}
		base := path.Base(name)
		if name == "." {
			return nil
		}
		if base == "testdata" || base == "dist" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name), "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// overActs is a switch over two acts, under a name of package performatives.
func overActs(local string) string {
	return "func f(b any) {\n\tswitch b.(type) {\n\tcase *" + local + ".ProposeBody, *" + local + ".CloseBody:\n\t}\n}"
}

// TestArrowsAreHeard breaks each rule once, and keeps it once beside that: a
// check that never speaks proves nothing.
func TestArrowsAreHeard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, src, want string }{
		{"an arrow", "session/step.go", `import "github.com/parley-asp/parley/delegation"`, ""},
		{"an arrow backwards", "session/step.go", `import "github.com/parley-asp/parley/broker"`, "session must not import broker"},
		{"a test may look further", "session/step_test.go", `import "github.com/parley-asp/parley/modes"`, ""},
		{"wiring", "cmd/parley/serve.go", `import "github.com/parley-asp/parley/broker"; import "os"`, ""},
		{"testkit in a test", "test/fault/witness.go", `import "github.com/parley-asp/parley/internal/testkit"`, ""},
		{"testkit in the program", "cmd/parley/serve.go", `import "github.com/parley-asp/parley/internal/testkit"`, "only tests may import"},
		{"a test's key in the program", "session/step.go", `import "github.com/parley-asp/parley/internal/testkey"`, "only tests may import"},
		{"no row", "gossip/gossip.go", ``, "gossip has no row"},
		{"no row, tests only", "gossip/gossip_test.go", ``, ""},
		{"IO", "session/step.go", `import "os/exec"`, "session is pure and must not import os/exec"},
		{"IO, renamed", "api/api.go", `import n "github.com/nats-io/nats.go/micro"`, "must not import github.com/nats-io/nats.go/micro"},
		{"IO in its place", "broker/log.go", `import "github.com/nats-io/nats.go/jetstream"`, ""},
		{"net/url is no IO", "performatives/agent.go", `import "net/url"`, ""},
		{"a module whose name begins alike", "schemas/os.go", `import "osprey"`, ""},
		{"a generator", "schemas/generate.go", "//go:build ignore\n\npackage main\n\nimport \"os\"", ""},
		{"a folder for generators", "schemas/internal/write/write.go", `import "os"`, ""},
		{"the clock", "session/step.go", "import \"time\"\n\nvar born = time.Now()", "step.go:5: time.Now"},
		{"the clock, renamed", "session/step.go", "import c \"time\"\n\nvar f = c.Since", "time.Since"},
		{"the clock, unnamed", "session/step.go", `import . "time"`, "dot import of time"},
		{"a time that came in", "session/step.go", "import \"time\"\n\nvar end = time.Unix(1, 0)", ""},
		{"the clock where IO is", "broker/timers.go", "import \"time\"\n\nvar born = time.Now()", ""},
		{"a skip", "broker/log_test.go", "func f(t interface{ Skip() }) { t.Skip() }", "t.Skip: a test"},
		{"a skip that is no test's", "broker/log_test.go", "func f(r interface{ Skip(n int) }) { r.Skip(3) }", ""},
		{"a sleep", "test/bench/load.go", "import \"time\"\n\nfunc f() { time.Sleep(1) }", "time.Sleep: wait for"},
		{"a timer's channel", "broker/log_test.go", "import \"time\"\n\nfunc f() { <-time.After(1) }", "time.After: wait for"},
		{"a ticker", "internal/testkit/clock.go", "import \"time\"\n\nvar t = time.NewTicker(1)", "time.NewTicker: wait for"},
		{"a timer in the program", "broker/log.go", "import \"time\"\n\nvar t = time.NewTimer(1)", ""},
		{"a switch over acts", "render/acts.go", "import \"github.com/parley-asp/parley/performatives\"\n\n" + overActs("performatives"), "render/acts.go:6: a switch over ProposeBody, CloseBody"},
		{"a switch over acts, renamed", "modes/asp.go", "import asp \"github.com/parley-asp/parley/performatives\"\n\n" + overActs("asp"), "a switch over"},
		{"a switch over acts in the demo", "internal/demo/deal.go", "import \"github.com/parley-asp/parley/performatives\"\n\n" + overActs("performatives"), ""},
		{"a switch over what others call so", "render/acts.go", overActs("others"), ""},
		{"one act", "render/acts.go", "import \"github.com/parley-asp/parley/performatives\"\n\nfunc f(b any) {\n\tswitch b.(type) {\n\tcase *performatives.CloseBody:\n\t}\n}", ""},
		{"a name", "broker/message_handler.go", ``, `"handler" in`},
		{"a folder's name", "cmd/utils/x.go", `//`, `"util" in`},
	} {
		if !strings.HasPrefix(c.src, "//go:build") {
			c.src = "package p\n\n" + c.src
		}
		got := strings.Join(faults(c.file, c.src), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: faults of %s are %q, want %q", c.name, c.file, got, c.want)
		}
	}
}
