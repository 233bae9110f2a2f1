//go:build browser

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// script is an agent in a page: it calls, follows a session by EventSource, and speaks by WebSocket.
// EventSource has no way to send a token: the test has Chromium add it, as a service worker would.
const script = `
	window.events = []; window.frames = [];
	window.call = (path, method, body) => fetch(%[1]q + path, {
		method, body, headers: {"Authorization": "Bearer " + %[2]q, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID()},
	}).then(async r => r.status + " " + (await r.text()), e => "refused: " + e.name);
	window.follow = path => {
		window.source = new EventSource(%[1]q + path);
		for (const kind of ["message", "session_state"])
			source.addEventListener(kind, e => events.push(kind === "message" ? e.lastEventId : JSON.parse(e.data).state));
	};
	window.speak = path => {
		window.socket = new WebSocket(%[1]q.replace("http", "ws") + path, "asp.v0.1");
		socket.onopen = () => socket.send(JSON.stringify({type: "auth", token: %[2]q}));
		socket.onmessage = e => { const f = JSON.parse(e.data); frames.push(f.type + " " + (f.envelope?.sequenceNumber ?? f.sequenceNumber ?? f.state)); };
		socket.onclose = e => frames.push("closed " + e.code);
	};
	true`

// GATEWAYS.md G2: a page of a listed origin negotiates by fetch, EventSource and WebSocket. Its
// EventSource goes on by itself after the broker was gone, without a gap, and ends with the session.
func TestAgentInAPage(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>agent</title>") //nolint:errcheck // the browser went away
	}))
	t.Cleanup(site.Close)
	w := newWorld(t, testkit.Options{Dev: true, HTTPOrigins: []string{site.URL}})
	base := "http://" + w.HTTPAddr + "/v1/asp"
	says := func(path, body string) (accepted api.Acceptance) {
		t.Helper()
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodPost, base+path, strings.NewReader(body))
		testkit.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+string(alpha))
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		defer reply.Body.Close()
		testkit.Must(t, json.UnmarshalRead(reply.Body, &accepted))
		if !accepted.Accepted {
			t.Fatalf("%s is answered %s", body, reply.Status)
		}
		return accepted
	}
	path := "/sessions/" + string(says("/sessions", fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, sales)).Session)

	b := w.browser()
	b.root = site.URL + "/"
	b.opens("")
	get[bool](b, fmt.Sprintf(script, base, sales))
	if got := get[string](b, `call("`+path+`", "GET")`); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the page is answered %s", got)
	}
	get[bool](b, `speak("`+path+`/ws"), true`)
	b.holds(`frames.join() === "auth_ok INVITED,session_state INVITED,message 0"`)
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": "Bearer " + string(sales)}})
		return err
	}))
	get[bool](b, `follow("`+path+`/events"), true`)
	b.holds(`events.join() === "INVITED,0"`)
	get[bool](b, `socket.send(JSON.stringify({type: "send", performative: "ACCEPT", body: {referenceId: "invitation"}})), true`)
	b.holds(`events.join() === "INVITED,0,INTRODUCED,1" && frames.includes("ack 1") && frames.includes("message 1")`)

	w.Down()
	b.holds(`frames.at(-1) === "closed 1001"`)
	w.Up()
	says(path+"/messages", `{"performative":"OBSERVE","body":{"subject":"back"}}`)
	b.holds(`events.join() === "INVITED,0,INTRODUCED,1,CONVERSING,2"`)
	get[bool](b, `frames = [], speak("`+path+`/ws"), true`)
	b.holds(`frames.at(-1) === "message 2"`)
	says(path+"/messages", `{"performative":"CLOSE","body":{}}`)
	b.holds(`events.join() === "INVITED,0,INTRODUCED,1,CONVERSING,2,CLOSED,3" && source.readyState === EventSource.CLOSED`)
	b.holds(`frames.slice(-2).join() === "message 3,closed 4009"`)

	evil := httptest.NewServer(site.Config.Handler) // an origin that is not listed
	t.Cleanup(evil.Close)
	b.root = evil.URL + "/"
	b.opens("")
	get[bool](b, fmt.Sprintf(script, base, sales))
	if got := get[string](b, `call("`+path+`", "GET")`); got != "refused: TypeError" {
		t.Errorf("a page of another origin is answered %s", got)
	}
	get[bool](b, `speak("`+path+`/ws"), true`)
	b.holds(`frames.join() === "closed 1006"`)
}
