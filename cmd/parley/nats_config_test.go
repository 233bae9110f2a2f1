package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-asp/parley/test/testkit"
)

// TestServerElsewhere runs the broker on a NATS server process that has the configuration
// which parley prints, in config mode and in operator mode.
func TestServerElsewhere(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/elsewhere/elsewhere.txtar", "testdata/elsewhere/operator.txtar"},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PARLEY_HTTP", testkit.FreeAddress(t))
			env.Setenv("PARLEY_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nsc": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(testkit.Nsc(t, ts.ReadFile(args[0]))), 0o600))
			},
			"exits": exits, "mode": mode, "terminate": terminate, "natsserver": func(ts *testscript.TestScript, _ bool, args []string) {
				url := testkit.StartServerProcess(t, ts.ReadFile(args[0])).URL()
				ts.Setenv("PARLEY_NATS", url)
				ts.Setenv("PARLEY_URL", url)
			},
		},
	})
}
