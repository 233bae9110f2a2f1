package a2agateway_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

var update = flag.Bool("update", false, "write what was answered to testdata")

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

// Conversations of testdata go over the wire to a broker. A file is a step, and the file after
// it what came of it, which -update writes. A step is one of
//
//	who METHOD path            a request, with headers as name=value
//	who METHOD path until X    again and again until X is in the answer
//	who stream path            a request whose answer is a stream: its first event
//	next                       the next event of that stream, or its end
//	leave                      of that stream; the client goes away
//	remove who                 takes a token away
//
// $TASK is the task of the first answer, $PAGE the nextPageToken of the last that had one.
func TestA2AWire(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	testkit.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no conversations")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			testkit.Must(t, err)
			c := conversation{world: newWorld(t, testkit.Options{}), ids: map[string]string{}}
			c.Tokens = map[performatives.Agent]string{"cron": c.Tokens[cron], "seller": c.Tokens[seller], "other": c.Tokens[other], "nobody": ""}
			for name, lifetime := range map[string]time.Duration{"guest": 0, "brief": time.Second} { // also cron
				made, err := c.OperatorClient().AddToken(c.Ctx, api.AddToken{Agent: cron, Lifetime: lifetime.Milliseconds()})
				testkit.Must(t, err)
				c.Tokens[performatives.Agent(name)], c.ids[name] = made.Token, made.ID
			}
			for i := 0; i+1 < len(archive.Files); i += 2 {
				got := c.step(strings.Fields(archive.Files[i].Name), string(archive.Files[i].Data))
				if *update {
					archive.Files[i+1].Data = []byte(got)
				} else if want := string(archive.Files[i+1].Data); got != want {
					t.Errorf("%s is answered\n%s\nwant\n%s", archive.Files[i].Name, got, want)
				}
			}
			if *update {
				testkit.Must(t, os.WriteFile(path, txtar.Format(archive), 0o600))
			}
		})
	}
}

// A conversation is one file.
type conversation struct {
	world
	ids        map[string]string // of tokens
	task, page string
	next       func() testkit.Event
	leave      context.CancelFunc
}

// step does what a step says.
func (c *conversation) step(step []string, body string) string {
	c.Helper()
	with := strings.NewReplacer("$TASK", c.task, "$PAGE", c.page, "$SELLER", seller.Token()).Replace
	body = with(strings.TrimSpace(body))
	switch step[0] {
	case "next":
		return c.event()
	case "leave":
		c.leave()
		return ""
	case "remove":
		_, err := c.OperatorClient().RemoveToken(c.Ctx, c.ids[step[1]])
		testkit.Must(c, err)
		return ""
	}
	token, path := c.Tokens[performatives.Agent(step[0])], with(step[2])
	if step[1] == "stream" {
		ctx, leave := context.WithCancel(c.Ctx)
		c.leave = leave
		c.Cleanup(leave)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.HTTPAddr+path, strings.NewReader(body))
		testkit.Must(c, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		c.next = c.EventsOf(r)
		return c.event()
	}
	change, until := func(*http.Request) {}, ""
	if len(step) > 3 && step[3] == "until" {
		until = step[4]
	} else if len(step) > 3 {
		change = func(r *http.Request) {
			for _, header := range step[3:] {
				name, value, _ := strings.Cut(header, "=")
				r.Header.Set(name, value)
			}
		}
	}
	var got string
	testkit.Eventually(c, path+" says "+until, func() bool {
		a := c.Send(step[1], path, token, body, change)
		got = fmt.Sprintf("%d\n%s\n", a.StatusCode, c.steady(a.Body))
		return strings.Contains(got, until)
	})
	return got
}

// event is the next event of the stream.
func (c *conversation) event() string {
	e := c.next()
	if e.Data == "" {
		return "the end\n"
	}
	return c.steady([]byte(e.Data)) + "\n"
}

// steady is JSON without what differs from run to run. It notes what $TASK and $PAGE are.
func (c *conversation) steady(data []byte) string {
	if found := regexp.MustCompile(`"contextId":"([0-9a-f-]{36})"`).FindSubmatch(data); c.task == "" && found != nil {
		c.task = string(found[1])
	}
	if found := regexp.MustCompile(`"nextPageToken":"([^"]+)"`).FindSubmatch(data); found != nil {
		c.page = string(found[1])
	}
	body := jsontext.Value(bytes.TrimSpace(data))
	if len(body) > 0 {
		testkit.Must(c, body.Canonicalize())
		testkit.Must(c, body.Indent())
	}
	for _, v := range varying {
		body = v.what.ReplaceAll(body, []byte(v.is))
	}
	return string(body)
}
