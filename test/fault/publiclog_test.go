//go:build long

package fault_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// A watch is somebody who keeps the newest checkpoint of the public log.
type watch struct {
	testing.TB
	state string
}

func newWatch(t testing.TB) watch { return watch{t, filepath.Join(t.TempDir(), "newest")} }

// ask runs a command until the log is served.
func (w watch) ask(c *testkit.BrokerProcess, command ...string) []byte {
	w.Helper()
	program, err := parley()
	testkit.Must(w, err)
	var out []byte
	testkit.Eventually(w, strings.Join(command, " ")+" is answered", func() bool {
		cmd := exec.Command(program, append(command, "--url", c.URL, "--data", w.TempDir())...)
		out, err = cmd.Output()
		if err == nil {
			return true
		}
		said := ""
		if exit, failed := err.(*exec.ExitError); failed { //nolint:errorlint // Output returns it so
			said = string(exit.Stderr)
		}
		if !strings.Contains(said, "503") || strings.Contains(said, "contradicts") {
			w.Fatalf("%s: %v: %s", strings.Join(command, " "), err, said)
		}
		return false
	})
	return out
}

// grows checks that the log extends the checkpoint that was kept.
func (w watch) grows(c *testkit.BrokerProcess) {
	w.Helper()
	w.ask(c, "log", "monitor", "--once", "--state", w.state, "--log-url", "http://"+c.HTTPAddr+"/log")
}

// complete waits until the log has one leaf for each agreement and each ended session; 'log
// verify' refuses one that is there twice.
func (w watch) complete(c *testkit.BrokerProcess, sessions int) {
	w.Helper()
	var agreed []json.RawMessage
	testkit.Must(w, json.Unmarshal(w.ask(c, "agreement", "ls", "--json"), &agreed))
	testkit.Eventually(w, fmt.Sprintf("the log has %d agreements and %d sessions", len(agreed), sessions), func() bool {
		var found struct{ Agreements, Sessions int }
		testkit.Must(w, json.Unmarshal(w.ask(c, "log", "verify", "--json", "--log-url", "http://"+c.HTTPAddr+"/log"), &found))
		return found.Agreements == len(agreed) && found.Sessions == sessions
	})
	w.Logf("%d agreements and %d sessions, each once in the log", len(agreed), sessions)
}
