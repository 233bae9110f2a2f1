//go:build languages

package languages

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// TestTypeScript has tsc --strict compile a program that narrows messages by their performative, over what
// openapi-typescript makes of the OpenAPI description, and refuse programs that read a member of another act.
func TestTypeScript(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	node := func(program string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(*installed, "node_modules", ".bin", program), args...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	testkit.Must(t, os.WriteFile(at("openapi.json"), request(ctx, t, http.MethodGet, "http://"+w.HTTPAddr+"/openapi.json", human, ""), 0o600))
	if out, err := node("openapi-typescript", "openapi.json", "--output", "parley.ts"); err != nil {
		t.Fatalf("openapi-typescript: %v\n%s", err, out)
	}
	compile := func(program string) (string, error) {
		testkit.Must(t, os.WriteFile(at("program.ts"), []byte(program), 0o600))
		out, err := node("tsc", "--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions", "--module", "nodenext", "--target", "es2022", "program.ts")
		return string(out), err
	}
	typed, err := os.ReadFile("typed.ts")
	testkit.Must(t, err)
	if out, err := compile(string(typed)); err != nil {
		t.Errorf("typed.ts does not compile:\n%s", out)
	}
	wrong := []struct{ statement, fault string }{
		{`export const any = (entry: Schemas["Entry"]) => entry.content.body.proposalId;`, "TS2339"},
		{`export const other = (entry: Schemas["Entry"]) => entry.performative === "ACCEPT" && entry.content.body.proposalId;`, "TS2339"},
		{`export const row = (row: Schemas["HistoryEntry"]) => row.performative === "QUERY" && row.body.terms;`, "TS2339"},
		{`export const none = (entry: Schemas["Entry"]) => entry.performative === "OFFER";`, "TS2367"},
		{`export const view = (deal: Schemas["Snapshot"]) => deal.proposals;`, "TS2339"},
	}
	program := `import type { components } from "./parley.ts"; type Schemas = components["schemas"];` + "\n"
	for _, w := range wrong {
		program += w.statement + "\n"
	}
	out, err := compile(program)
	if err == nil {
		t.Error("a program that reads members that are not there compiles")
	}
	for i, w := range wrong {
		if !regexp.MustCompile(fmt.Sprintf(`program\.ts\(%d,\d+\): error %s`, i+2, w.fault)).MatchString(out) {
			t.Errorf("%s compiles, or fails for something else:\n%s", w.statement, out)
		}
	}
}
