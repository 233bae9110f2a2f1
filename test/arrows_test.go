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

// testkit is what tests run against, natskit the part of it that needs no broker, and testkey has their keys:
// nothing of the program may import them.
const (
	testkit = "test/testkit"
	natskit = "test/natskit"
	testkey = "test/testkey"
)

// places is the architecture. A path that ends in /... stands for all below it.
var places = map[string]place{
	"performatives":               pure("internal/ijson"),
	"delegation":                  pure("performatives"),
	"escalation":                  pure("internal/ijson", "performatives"),
	"schemas":                     pure("internal/ijson", "performatives"),
	"cmd/schemagen":               plain("performatives", "schemas", "api", "session"), // writes the *.json; not part of the program
	"internal/persist":            pure(),
	"internal/ijson":              pure(),
	"client/natscontext":          plain(),
	"session":                     pure("performatives", "delegation", "escalation", "schemas", "internal/persist"),
	"session/modes":               pure("session/agreement", "performatives", "delegation", "escalation", "internal/persist", "session"),
	"session/transcript":          pure("internal/ijson", "performatives"),
	"session/agreement/inclusion": pure("performatives"),
	"client/publiclog":            plain("internal/background", "session/agreement/inclusion"),
	"session/agreement":           pure("internal/ijson", "session/agreement/inclusion", "performatives", "session", "session/transcript"),
	"discovery":                   pure("performatives"),
	"session/evidence":            pure("internal/ijson", "performatives", "session", "session/agreement", "session/agreement/inclusion", "session/modes", "session/transcript"),
	"api/fit":                     pure(),
	"api":                         pure("api/fit", "session/agreement", "session/evidence", "discovery", "performatives", "delegation", "escalation", "schemas", "session", "session/modes"),
	"api/negotiation":             pure("api", "performatives", "session", "session/modes"),
	"client/audit":                pure("performatives", "escalation", "session", "session/transcript", "api"),

	"internal/background": plain(),
	"internal/pending":    plain(),
	"internal/publicnet":  plain(),
	"internal/outbound":   plain(),
	"internal/telemetry":  plain(),
	"internal/webhook":    plain(),
	"internal/sealing":    plain(),
	"internal/natslogin":  plain(),
	"internal/strictyaml": plain(),
	"store":               plain("api", "internal/background", "internal/pending", "performatives"),

	"broker/registry":     plain("api/fit", "session/agreement", "api", "discovery", "escalation", "internal/background", "internal/outbound", "internal/publicnet", "performatives", "schemas", "session", "store"),
	"broker/custody":      plain("broker/registry", "api/fit", "api", "internal/background", "internal/sealing", "performatives", "session", "store"),
	"broker/limits":       plain("api", "performatives"),
	"broker/reads":        plain("api/fit", "api", "api/render", "broker/archive", "broker/cluster", "broker/ledger", "broker/registry", "broker/sessionlist", "broker/timers", "delegation", "escalation", "performatives", "session", "session/agreement", "session/agreement/inclusion", "session/evidence", "session/transcript", "store"),
	"broker/verbs":        plain("broker/registry", "api", "internal/background", "internal/telemetry", "performatives", "broker/limits", "session"),
	"broker/sessionlist":  plain("api", "internal/background", "performatives", "session", "store"),
	"broker/archive":      plain("api", "escalation", "internal/background", "performatives", "session", "session/transcript", "broker/sessionlist", "store"),
	"broker/ledger":       plain("api", "session/agreement/inclusion", "internal/background", "performatives", "store"),
	"broker/cluster":      plain("api", "internal/background", "performatives", "store"),
	"broker/approvals":    plain("api/fit", "api", "broker/registry", "escalation", "internal/background", "performatives", "session", "store"),
	"broker/insights":     plain("broker/reads", "api", "broker/archive", "broker/registry", "internal/background", "performatives", "session", "session/modes", "broker/sessionlist"),
	"broker/timers":       plain("api", "broker/cluster", "internal/background", "performatives", "store"),
	"client/negotiator":   plain("api", "internal/strictyaml", "performatives", "session"),
	"broker/hosted":       plain("api", "performatives", "session", "session/agreement", "store"),
	"broker/wakeups":      plain("api", "internal/background", "internal/outbound", "internal/sealing", "internal/webhook", "performatives", "session", "store"),
	"broker/turns":        plain("api", "api/fit", "broker/hosted", "delegation", "internal/background", "performatives", "session", "store"),
	"broker/proposals":    plain("api/fit", "api", "broker/registry", "discovery", "performatives", "session", "store"),
	"broker/availability": plain("api", "internal/background", "performatives", "store"),
	"gateway":             plain("api", "broker/custody", "broker/limits", "internal/background", "performatives", "session"),
	"gateway/a2a":         plain("api", "api/render", "broker/custody", "gateway", "internal/background", "internal/outbound", "internal/publicnet", "performatives", "session", "store"),
	"gateway/ard":         plain("api/fit", "api", "performatives"),
	"gateway/bindu":       plain("discovery", "internal/outbound", "performatives"),
	"gateway/http":        plain("api", "broker/custody", "gateway", "performatives", "schemas", "session"),
	"gateway/index":       plain("api", "api/negotiation", "broker/custody", "gateway", "performatives", "session", "session/modes"),
	"gateway/oap":         plain("api", "broker/custody", "gateway", "performatives", "session", "session/agreement", "session/modes"),
	"gateway/macp":        plain("api", "broker/custody", "gateway", "gateway/macp/pb", "performatives", "session", "store"),
	"gateway/mcp":         plain("api", "api/fit", "api/negotiation", "api/render", "broker/custody", "discovery", "gateway", "internal/background", "performatives", "schemas", "session", "session/modes", "session/transcript"),
	"gateway/nats":        plain("api", "broker/cluster", "internal/background", "internal/pending", "internal/telemetry", "performatives", "schemas", "session"),

	"client/signing": plain("api", "client", "performatives", "session"),

	"gateway/macp/pb":  plain(), // generated
	"gateway/macp/gen": plain(), // writes pb; not part of the program

	"client":              plain("client/internal/web", "session/agreement", "discovery", "client/natscontext", "performatives", "schemas", "session", "session/transcript", "api", "internal/natslogin"),
	"client/internal/web": plain("api", "performatives"),
	"client/tender":       plain("api", "client", "client/negotiator", "performatives", "api/render", "session"),
	"server/login":        plain("api", "internal/natslogin"),
	"server/embedded":     plain("server/login", "api", "internal/background"),
	"broker":              plain("api", "broker/approvals", "broker/archive", "broker/cluster", "broker/ledger", "broker/limits", "broker/reads", "broker/registry", "broker/sessionlist", "broker/timers", "delegation", "escalation", "internal/background", "internal/telemetry", "performatives", "schemas", "session", "session/agreement/inclusion", "session/modes", "session/transcript", "store"),
	"inbox":               plain("api", "api/render", "delegation", "escalation", "gateway", "inbox/amount", "inbox/openid", "performatives", "session", "session/transcript"),
	"store/backup":        plain("api", "internal/background", "store"),
	"inbox/amount":        pure(),
	"inbox/openid":        plain("internal/strictyaml", "performatives"),
	"inbox/notify":        plain("escalation", "internal/background", "internal/strictyaml", "internal/webhook", "performatives", "api/render", "api"),
	"server/activity":     plain("api", "internal/background"),
	"server":              plain("server/activity", "api", "client/negotiator", "session/modes", "broker", "broker/approvals", "broker/archive", "broker/availability", "broker/cluster", "broker/custody", "broker/hosted", "broker/insights", "broker/ledger", "broker/limits", "broker/proposals", "broker/reads", "broker/registry", "broker/sessionlist", "broker/timers", "broker/turns", "broker/verbs", "broker/wakeups", "discovery", "escalation", "gateway", "gateway/a2a", "gateway/ard", "gateway/bindu", "gateway/http", "gateway/index", "gateway/macp", "gateway/mcp", "gateway/nats", "gateway/oap", "inbox", "inbox/notify", "inbox/openid", "internal/background", "internal/outbound", "internal/publicnet", "internal/strictyaml", "internal/telemetry", "performatives", "server/embedded", "server/login", "session", "session/agreement", "store", "internal/natslogin"),
	"api/render":          pure("api/fit", "session/agreement", "session/evidence", "discovery", "escalation", "performatives", "session", "session/transcript", "api"),
	"cmd/parley/demo":     plain("escalation", "session/agreement", "session/agreement/inclusion", "internal/background", "client", "gateway/macp/pb", "session/modes", "client/negotiator", "server", "performatives", "api/render", "session", "client/tender", "session/transcript", "api"),
	"cmd/parley/bench":    plain("internal/background", "client", "server", "performatives", "api", "internal/natslogin"),
	"cmd/parley":          free,
	testkit:               free,                                                                                        // and only tests may import it
	natskit:               plain("internal/background", "performatives", "server/embedded", "server/login", "session"), // the same
	testkey:               pure(),                                                                                      // the same
	"test/...":            free,
}

// natsIn says which packages of the program may import JetStream, and NATS's client.
var natsIn = map[string][]string{
	"github.com/nats-io/nats.go/jetstream": {"client", "cmd/parley/bench", "inbox/notify", "store", "store/backup"},
	"github.com/nats-io/nats.go": {
		"client", "client/internal/web", "client/natscontext", "cmd/parley", "cmd/parley/bench", "cmd/parley/demo",
		"gateway/nats", "inbox/notify", "internal/natslogin", "server", "server/embedded", "server/login", "store", "store/backup",
	},
}

// tellsActsApart are the packages that may switch over the bodies of acts.
var tellsActsApart = []string{"performatives"}

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

// apart are the packages whose tests are of the package's own, and so would have all that imports it compiled once
// more if they needed a broker. Their tests that do are in broker or in server.
var apart = []string{"store", "broker/archive", "broker/availability", "broker/insights", "broker/registry", "broker/sessionlist", "server/embedded"}

// whole are the packages that import what is apart.
var whole = []string{testkit, "broker", "client", "server", "test/fault"}

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

// TestArrowsAreChecked breaks each rule once, and keeps it once beside that: a
// check that never speaks proves nothing.
func TestArrowsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, src, want string }{
		{"an arrow", "session/step.go", `import "github.com/parley-asp/parley/delegation"`, ""},
		{"an arrow backwards", "session/step.go", `import "github.com/parley-asp/parley/broker"`, "session must not import broker"},
		{"a test may look further", "session/step_test.go", `import "github.com/parley-asp/parley/session/modes"`, ""},
		{"wiring", "cmd/parley/serve.go", `import "github.com/parley-asp/parley/broker"; import "os"`, ""},
		{"testkit in a test", "test/fault/witness.go", `import "github.com/parley-asp/parley/test/testkit"`, ""},
		{"testkit in the program", "cmd/parley/serve.go", `import "github.com/parley-asp/parley/test/testkit"`, "only tests may import"},
		{"a test's key in the program", "session/step.go", `import "github.com/parley-asp/parley/test/testkey"`, "only tests may import"},
		{"a broker in a test of a part", "store/log_test.go", `import "github.com/parley-asp/parley/test/testkit"`, "the tests of store must not import test/testkit"},
		{"a server in a test of a part", "store/log_test.go", `import "github.com/parley-asp/parley/test/natskit"`, ""},
		{"no row", "gossip/gossip.go", ``, "gossip has no row"},
		{"no row, tests only", "gossip/gossip_test.go", ``, ""},
		{"IO", "session/step.go", `import "os/exec"`, "session is pure and must not import os/exec"},
		{"IO, renamed", "api/api.go", `import n "github.com/nats-io/nats.go/micro"`, "must not import github.com/nats-io/nats.go/micro"},
		{"IO in its place", "broker/log.go", `import "os/exec"`, ""},
		{"JetStream", "broker/log.go", `import "github.com/nats-io/nats.go/jetstream"`, "broker must not import github.com/nats-io/nats.go/jetstream"},
		{"JetStream in its place", "store/log.go", `import "github.com/nats-io/nats.go/jetstream"`, ""},
		{"a connection to NATS", "gateway/http/call.go", `import "github.com/nats-io/nats.go"`, "gateway/http must not import github.com/nats-io/nats.go"},
		{"net/url is no IO", "performatives/agent.go", `import "net/url"`, ""},
		{"a module whose name begins alike", "schemas/os.go", `import "osprey"`, ""},
		{"a generator", "schemas/generate.go", "//go:build ignore\n\npackage main\n\nimport \"os\"", ""},
		{"a generator of its own", "cmd/schemagen/write.go", `import "os"`, ""},
		{"the clock", "session/step.go", "import \"time\"\n\nvar born = time.Now()", "step.go:5: time.Now"},
		{"the clock, renamed", "session/step.go", "import c \"time\"\n\nvar f = c.Since", "time.Since"},
		{"the clock, unnamed", "session/step.go", `import . "time"`, "dot import of time"},
		{"a time that came in", "session/step.go", "import \"time\"\n\nvar end = time.Unix(1, 0)", ""},
		{"the clock where IO is", "broker/timers.go", "import \"time\"\n\nvar born = time.Now()", ""},
		{"a skip", "broker/log_test.go", "func f(t interface{ Skip() }) { t.Skip() }", "t.Skip: a test"},
		{"a skip that is no test's", "broker/log_test.go", "func f(r interface{ Skip(n int) }) { r.Skip(3) }", ""},
		{"a sleep", "test/bench/load.go", "import \"time\"\n\nfunc f() { time.Sleep(1) }", "time.Sleep: wait for"},
		{"a timer's channel", "broker/log_test.go", "import \"time\"\n\nfunc f() { <-time.After(1) }", "time.After: wait for"},
		{"a ticker", "test/testkit/clock.go", "import \"time\"\n\nvar t = time.NewTicker(1)", "time.NewTicker: wait for"},
		{"a pause of a test's own", "broker/log_test.go", "func f() { background.Pause(nil, 1) }", "background.Pause: natskit.Eventually"},
		{"the pause of all tests", "test/natskit/eventually.go", "func f() { background.Pause(nil, 1) }", ""},
		{"a timer in the program", "broker/log.go", "import \"time\"\n\nvar t = time.NewTimer(1)", ""},
		{"a switch over acts", "api/render/acts.go", "import \"github.com/parley-asp/parley/performatives\"\n\n" + overActs("performatives"), "api/render/acts.go:6: a switch over ProposeBody, CloseBody"},
		{"a switch over acts, renamed", "session/modes/asp.go", "import asp \"github.com/parley-asp/parley/performatives\"\n\n" + overActs("asp"), "a switch over"},
		{"a switch over acts where they are", "performatives/acts.go", strings.ReplaceAll(overActs("x"), "x.", ""), ""},
		{"a switch over what others call so", "api/render/acts.go", overActs("others"), ""},
		{"one act", "api/render/acts.go", "import \"github.com/parley-asp/parley/performatives\"\n\nfunc f(b any) {\n\tswitch b.(type) {\n\tcase *performatives.CloseBody:\n\t}\n}", ""},
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
