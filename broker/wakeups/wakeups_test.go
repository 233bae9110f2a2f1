package wakeups_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const cron, seller, other = testkit.Cron, testkit.Seller, testkit.Other

// A call is one that a receiver got.
type call struct {
	api.WakeupCall
	id, signature string
	at, bearer    string
	body          []byte
}

// receiver takes calls, and answers each with the next status that it is given.
func receiver(t *testing.T) (url string, calls <-chan call, answer chan<- int) {
	t.Helper()
	got, with := make(chan call, 100), make(chan int, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{id: r.Header.Get("Webhook-Id"), at: r.Header.Get("Webhook-Timestamp"), signature: r.Header.Get("Webhook-Signature"), bearer: r.Header.Get("Authorization")}
		c.body, _ = io.ReadAll(r.Body)
		json.Unmarshal(c.body, &c.WakeupCall) //nolint:errcheck // the test reads it
		got <- c
		w.WriteHeader(<-with)
	}))
	t.Cleanup(func() { close(with); s.Close() })
	return s.URL, got, with
}

type world struct{ *testkit.World }

// next is the next call, which has to come.
func (w world) next(calls <-chan call) call {
	w.Helper()
	select {
	case got := <-calls:
		return got
	case <-w.Ctx.Done():
		w.Fatal("no call comes")
		return call{}
	}
}

// passes waits until n deliveries are answered, or need no call.
func (w world) passes(n uint64) {
	w.Helper()
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(w, err)
	testkit.Eventually(w, "a delivery is acknowledged", func() bool {
		stream, err := js.Stream(w.Ctx, api.InboxStream)
		testkit.Must(w, err)
		all := stream.ListConsumers(w.Ctx)
		for c := range all.Info() {
			if strings.HasPrefix(c.Name, "wakeup-") {
				return c.AckFloor.Consumer >= n
			}
		}
		testkit.Must(w, all.Err())
		return false
	})
}

func (w world) says(id performatives.SessionID, a performatives.Agent, act, body string) {
	w.Helper()
	w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[a], fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body)).Is(http.StatusOK, nil)
}

func (w world) sets(a performatives.Agent, id performatives.SessionID, body string) testkit.Answer {
	w.Helper()
	return w.Send("PUT", testkit.SessionPath(id)+"/wakeup", w.Tokens[a], body)
}

func (w world) opens() performatives.SessionID {
	w.Helper()
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).Is(http.StatusCreated, &opened)
	return opened.Session
}

// head is the newest entry's hash.
func (w world) head(id performatives.SessionID) performatives.Hash {
	w.Helper()
	var now api.Snapshot
	w.Send("GET", testkit.SessionPath(id)+"/snapshot", w.Tokens[cron], "").Is(http.StatusOK, &now)
	return now.Head.Hash
}

// GATEWAYS.md G9: one signed call for what concerns the session, repeated with the same id until it
// is answered; the end of the session is the last one.
func TestWakeup(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	url, calls, answer := receiver(t)
	id := w.opens()
	var set api.Wakeup
	w.sets(cron, id, fmt.Sprintf(`{"url":%q}`, url)).Is(http.StatusOK, &set)
	secret, err := webhook.Secret(set.Secret)
	testkit.Must(t, err)
	w.says(id, seller, "ACCEPT", `{"referenceId":"invitation"}`)
	hash := w.head(id)
	for _, status := range []int{503, 200} {
		answer <- status
		got := w.next(calls)
		if got.id != string(hash) || got.Hash != hash || got.Type != api.WakeupType || got.Agent != cron || got.Session != id || got.Since != 1 {
			t.Errorf("the call is %s %+v, want the id %s", got.id, got.WakeupCall, hash)
		}
		if !(webhook.Call{ID: got.id, Body: got.body}).Signed(got.at, got.signature, secret) {
			t.Errorf("the signature %s of %s at %s is wrong", got.signature, got.body, got.at)
		}
	}
	w.says(id, cron, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`) // its own
	w.says(id, seller, "CLOSE", `{}`)
	answer <- 200
	if got := w.next(calls); got.Since != 3 || got.id != string(w.head(id)) {
		t.Errorf("the end of the session is told by %+v", got.WakeupCall)
	}
}

// What a receiver refuses of one session keeps no other waiting, though it is told again for long.
func TestWakeupOfOthers(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	bad, good := w.opens(), w.opens()
	told := make(chan call, 2000)
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var c call
		json.UnmarshalRead(r.Body, &c.WakeupCall) //nolint:errcheck // the test reads it
		if c.Session == bad {
			calls.Add(1)
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		told <- c
	}))
	t.Cleanup(s.Close)
	w.Send("PUT", "/v1/asp/wakeup", w.Tokens[cron], fmt.Sprintf(`{"url":%q}`, s.URL)).Is(http.StatusOK, nil)
	w.says(bad, seller, "ACCEPT", `{"referenceId":"invitation"}`)
	for w.next(told).Session != bad {
	}
	for n := range 1100 {
		w.says(bad, seller, "OBSERVE", fmt.Sprintf(`{"subject":"number %d"}`, n))
	}
	for w.next(told).Since != 1 { // the first is told again, and the others are not told
	}
	w.says(good, seller, "ACCEPT", `{"referenceId":"invitation"}`)
	for w.next(told).Session != good {
	}
	if calls.Load() > 550 { // about eight for each second, and not each entry
		t.Errorf("%d calls of one session", calls.Load())
	}
}

// A wakeup for turns sleeps while none waits.
func TestWakeupForTurns(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	url, calls, answer := receiver(t)
	id := w.opens()
	w.sets(cron, id, fmt.Sprintf(`{"url":%q,"turns":true,"secret":%q}`, url, webhook.Text(make([]byte, 24)))).Is(http.StatusOK, nil)
	w.says(id, seller, "ACCEPT", `{"referenceId":"invitation"}`) // cron has no turn
	w.passes(1)
	if len(calls) > 0 {
		t.Errorf("cron is woken without a turn: %+v", <-calls)
	}
	w.says(id, seller, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`)
	if got := w.next(calls); got.Since != 2 {
		t.Errorf("the turn is told by %+v", got.WakeupCall)
	}
	answer <- http.StatusOK
}

// A receiver that is gone is called no more, and takes nothing from one that was set meanwhile:
// that one is told what the other did not take.
func TestWakeupGone(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	first, calls, answer := receiver(t)
	id := w.opens()
	w.sets(cron, id, fmt.Sprintf(`{"url":%q}`, first)).Is(http.StatusOK, nil)
	w.says(id, seller, "ACCEPT", `{"referenceId":"invitation"}`)
	w.next(calls)
	second, more, ok := receiver(t)
	w.sets(cron, id, fmt.Sprintf(`{"url":%q}`, second)).Is(http.StatusOK, nil)
	answer <- http.StatusGone
	if got := w.next(more); got.Since != 1 {
		t.Errorf("the next wakeup begins with %+v", got.WakeupCall)
	}
	ok <- http.StatusOK
	w.says(id, seller, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`)
	if got := w.next(more); got.Since != 2 {
		t.Errorf("the next wakeup goes on with %+v", got.WakeupCall)
	}
	ok <- http.StatusGone
	bucket, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.WakeupsBucket, "", 0)
	testkit.Must(t, err)
	testkit.Eventually(t, "a receiver that is gone is forgotten", func() bool {
		rows, err := bucket.Records(w.Ctx, ">")
		return err == nil && len(rows) == 0
	})
	if len(calls) > 0 {
		t.Errorf("a receiver that is gone is called with %+v", <-calls)
	}
}

// What is refused: an address inside, a token that is no secret, a session of others, a reader, and
// more than a principal may have.
func TestWakeupRefused(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	id := w.opens()
	for _, bad := range []string{`{"url":"http://127.0.0.1/"}`, `{"url":"ftp://acme.com"}`, `{"url":"https://acme.com","secret":"x"}`,
		`{"url":"https://acme.com","token":"two words"}`, `{"url":"https://acme.com","token":"whsec_x"}`, `{"url":"https://acme.com/` + strings.Repeat("x", 2048) + `"}`} {
		w.sets(cron, id, bad).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	}
	w.sets(other, id, `{"url":"https://acme.com"}`).Refused(http.StatusNotFound, session.UnknownSession)
	reader := w.Token(api.AddToken{Agent: cron, ReadOnly: true})
	w.Send("PUT", testkit.SessionPath(id)+"/wakeup", reader, `{"url":"https://acme.com"}`).Refused(http.StatusForbidden, session.Unauthorized)
	var last performatives.SessionID
	for range 65 {
		last = w.opens()
		if a := w.sets(cron, last, `{"url":"https://acme.com"}`); a.StatusCode != http.StatusOK {
			a.Refused(http.StatusTooManyRequests, session.RateLimited)
			w.sets(cron, id, `{}`).Is(http.StatusOK, nil)
			return
		}
	}
	t.Error("a principal has as many wakeups as it likes")
}

// A token goes with each call, for all sessions at once too (PUT /wakeup). It, the secret and the URL
// are sealed in the store, and a row that was stored before rows were sealed is still called.
func TestWakeupSealed(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	url, calls, answer := receiver(t)
	const token, inURL = "a-token-of-the-receiver", "a-secret-in-a-url"
	secret := webhook.Text([]byte("this is the secret that signs it"))
	var set api.Wakeup
	w.Send("PUT", "/v1/asp/wakeup", w.Tokens[cron], fmt.Sprintf(`{"url":"%s/%s","token":%q,"secret":%q}`, url, inURL, token, secret)).Is(http.StatusOK, &set)
	if set.Secret != "" || set.Session != "" {
		t.Errorf("the answer is %+v", set)
	}
	id := w.opens()
	w.says(id, seller, "ACCEPT", `{"referenceId":"invitation"}`)
	if got := w.next(calls); got.bearer != "Bearer "+token || got.id != string(w.head(id)) {
		t.Errorf("the call %s has the token %q", got.id, got.bearer)
	}
	answer <- http.StatusOK

	bucket, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.WakeupsBucket, "", 0)
	testkit.Must(t, err)
	rows, err := bucket.Records(w.Ctx, ">")
	testkit.Must(t, err)
	if len(rows) != 1 {
		t.Fatalf("%d rows are stored", len(rows))
	}
	raw, err := webhook.Secret(secret)
	testkit.Must(t, err)
	for _, kept := range []string{token, inURL, string(raw), base64.StdEncoding.EncodeToString(raw)} {
		if strings.Contains(string(rows[0].Data), kept) {
			t.Errorf("%q is stored in the clear", kept)
		}
	}

	w.Send("PUT", "/v1/asp/wakeup", w.Tokens[cron], `{}`).Is(http.StatusOK, nil)
	_, err = bucket.Create(w.Ctx, "before", fmt.Appendf(nil, `{"agentId":%q,"url":%q,"secret":%q,"consumer":"wakeup-before"}`, cron, url, base64.StdEncoding.EncodeToString(raw)))
	testkit.Must(t, err)
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(t, err)
	testkit.Eventually(t, "the row's consumer is there, which is told of what comes from now on", func() bool {
		_, err := js.Consumer(w.Ctx, api.InboxStream, "wakeup-before")
		return err == nil
	})
	w.says(id, seller, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`)
	got := w.next(calls)
	if !(webhook.Call{ID: got.id, Body: got.body}).Signed(got.at, got.signature, raw) || got.bearer != "" {
		t.Errorf("a row of before makes the call %+v", got)
	}
	answer <- http.StatusOK
	// A row that is moved to another key does not open.
	_, err = bucket.Create(w.Ctx, "moved", rows[0].Data)
	testkit.Must(t, err)
	w.says(id, seller, "WITHDRAW", `{"referenceId":"p"}`)
	if got := w.next(calls); got.bearer != "" {
		t.Errorf("a moved row makes the call %+v", got)
	}
	answer <- http.StatusOK
}

// A principal that is removed takes its wakeups along.
func TestWakeupOfTheRemoved(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	w.Send("PUT", "/v1/asp/wakeup", w.Tokens[cron], `{"url":"https://acme.com"}`).Is(http.StatusOK, nil)
	_, err := w.OperatorClient().RemoveAgent(w.Ctx, cron)
	testkit.Must(t, err)
	bucket, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.WakeupsBucket, "", 0)
	testkit.Must(t, err)
	rows, err := bucket.Records(w.Ctx, ">")
	testkit.Must(t, err)
	if len(rows) != 0 {
		t.Errorf("%s is still stored", rows[0].Data)
	}
}
