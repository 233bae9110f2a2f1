package server_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-asp/parley/internal/testkit"
)

// varying is what differs from run to run in an answer.
var varying = []struct {
	what *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`sha256[:-][0-9a-f]{64}`), "HASH"},
	{regexp.MustCompile(`agr_[0-9A-Z]{26}`), "AGREEMENT"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`"(protected|signature|price)": "[A-Za-z0-9_-]{40,}"`), `"$1": "BASE64"`},
}

// TestA2AWire holds conversations with the gateway to what testdata/a2a.txtar has: each file is a
// request, named by who sends what where, and the file after it the answer. $TASK is the task of
// the first answer. -update writes the answers.
func TestA2AWire(t *testing.T) {
	t.Parallel()
	const path = "testdata/a2a.txtar"
	archive, err := txtar.ParseFile(path)
	testkit.Must(t, err)
	w := newA2AWorld(t, testkit.Options{})
	tokens := map[string]string{"cron": w.tokens[cron], "seller": w.tokens[seller], "other": w.tokens[other], "nobody": ""}
	id := ""
	for i := 0; i+1 < len(archive.Files); i += 2 {
		name := strings.Fields(archive.Files[i].Name) // who METHOD path
		with := func(s string) string {
			return strings.NewReplacer("$TASK", id, "$SELLER", seller.Token()).Replace(s)
		}
		a := w.send(name[1], with(name[2]), tokens[name[0]], with(strings.TrimSpace(string(archive.Files[i].Data))))
		if found := regexp.MustCompile(`"contextId":"([0-9a-f-]{36})"`).FindSubmatch(a.body); id == "" && found != nil {
			id = string(found[1])
		}
		body := jsontext.Value(bytes.TrimSpace(a.body))
		if len(body) > 0 {
			testkit.Must(t, body.Canonicalize())
			testkit.Must(t, body.Indent())
		}
		got := fmt.Sprintf("%d\n%s\n", a.status, body)
		for _, v := range varying {
			got = v.what.ReplaceAllString(got, v.is)
		}
		if *update {
			archive.Files[i+1].Data = []byte(got)
		} else if want := string(archive.Files[i+1].Data); got != want {
			t.Errorf("%s is answered\n%s\nwant\n%s", archive.Files[i].Name, got, want)
		}
	}
	if *update {
		testkit.Must(t, os.WriteFile(path, txtar.Format(archive), 0o600))
	}
}
