package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An act that is made while the broker is away is accepted, once, when it is
// back.
func TestAnActOutlastsARestart(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	var told testkit.Output
	log := slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ours, _ := w.introduced(w.Client(alpha, client.Timeout(200*time.Millisecond), client.Log(log), client.NATS(nats.NoEcho())), w.Client(beta))
	w.Down()
	answered := make(chan error, 1)
	go func() {
		_, err := ours.Propose(w.Ctx, offer(5))
		answered <- err
	}()
	w.Up()
	testkit.Must(t, <-answered)
	if got := len(must(ours.Transcript(w.Ctx))(t)); got != 3 {
		t.Errorf("the transcript has %d entries, want 3", got)
	}
	for _, want := range []string{"connection lost", "connected again"} {
		testkit.Eventually(t, "the log says "+want, func() bool { return strings.Contains(told.String(), want) })
	}
}

// An answer that is lost on the way is asked for again with the same bytes, and
// the broker knows them (PROTOCOL.md §3).
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	bad := newLine(t, w.URL)
	seed, login := client.Seed(w.seed(alpha)), w.login(alpha)
	a := must(client.Connect(w.Ctx, bad.URL, alpha, seed, login, client.Timeout(200*time.Millisecond)))(t)
	defer a.Close()
	ours, theirs := w.introduced(a, w.Client(beta))

	bad.deaf.Store(true)
	type answer struct {
		receipt client.Receipt
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		r, err := ours.Propose(w.Ctx, offer(5))
		answers <- answer{r, err}
	}()
	received := must(theirs.Await(w.Ctx, performatives.Propose))(t) // it was accepted
	bad.deaf.Store(false)
	bad.cut()
	got := <-answers
	if got.err != nil {
		t.Fatal(got.err)
	}
	if !got.receipt.Duplicate || got.receipt.ID != received.Ref() || got.receipt.Sequence != received.Stamp.Sequence {
		t.Errorf("the receipt is %+v, want the duplicate of entry %d", got.receipt, received.Stamp.Sequence)
	}
}

// A removal whose answer was lost is asked for again, and what is gone by then was removed by it. What
// was never there is refused.
func TestRemovedByALostAttempt(t *testing.T) {
	t.Parallel()
	gone := session.Refuse(session.UnknownAgent, "it is not registered")
	for name, tt := range map[string]struct {
		answers []any
		refused bool
	}{
		"the answer was lost":    {[]any{nil, gone}, false},
		"the broker was busy":    {[]any{session.Busy(), gone}, false},
		"it was never there":     {[]any{gone}, true},
		"it was asked too often": {[]any{api.RateLimited("rate", time.Millisecond, "wait"), gone}, true},
	} {
		for what, remove := range map[string]func(*client.Operator) error{
			"agent": func(o *client.Operator) error { _, err := o.RemoveAgent(t.Context(), gamma); return err },
			"token": func(o *client.Operator) error {
				_, err := client.Do(t.Context(), o, api.TokenRemove, api.TokenRef{ID: "x"})
				return err
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				url, _ := scripted(t, tt.answers...)
				o := must(client.ConnectOperator(t.Context(), url, client.Unsigned()))(t)
				defer o.Close()
				err := remove(o)
				if refused := errors.Is(err, client.Refused(session.UnknownAgent)); refused != tt.refused || !refused && err != nil {
					t.Errorf("it ends with %v", err)
				}
			})
		}
	}
}

// scripted is a NATS server whose every request gets the next of these answers, nil for none, and then the last again.
func scripted(t *testing.T, answers ...any) (url string, requests func() [][]byte) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	testkit.Must(t, err)
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not start")
	}
	nc := must(nats.Connect(s.ClientURL()))(t)
	t.Cleanup(nc.Close)
	var mu sync.Mutex
	var seen [][]byte
	must(nc.Subscribe("asp.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, m.Data)
		if len(answers) == 0 {
			return
		}
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		if answer == nil {
			return
		}
		reply := nats.NewMsg(m.Reply)
		if refusal, ok := answer.(*session.Refusal); ok {
			reply.Header.Set(api.ErrorCodeHeader, fmt.Sprint(refusal.Code.Status()))
			answer = api.Refused(refusal)
		}
		reply.Data, _ = json.Marshal(answer)
		nc.PublishMsg(reply) //nolint:errcheck // the test waits for it
	}))(t)
	testkit.Must(t, nc.Flush())
	return s.ClientURL(), func() (all [][]byte) {
		mu.Lock()
		defer mu.Unlock()
		all, seen = seen, nil
		return all
	}
}

// Only what passes is asked for again, and never with other bytes.
func TestWhatIsAskedForAgain(t *testing.T) {
	t.Parallel()
	yes := api.Acceptance{Accepted: true, Sequence: 7, State: session.Conversing}
	for _, c := range []struct {
		name     string
		answers  []any
		requests int
		refused  session.Code // "" is accepted
	}{
		{"an acceptance", []any{yes}, 1, ""},
		{"unavailable, then accepted", []any{session.Refuse(session.Unavailable, "not now"), yes}, 2, ""},
		{"rate_limited twice, then accepted", []any{session.Refuse(session.RateLimited, ""), session.Refuse(session.RateLimited, ""), yes}, 3, ""},
		{"unavailable, then refused", []any{session.Refuse(session.Unavailable, ""), session.Refuse(session.WrongState, "no")}, 2, session.WrongState},
		{"stale by now", []any{session.Refuse(session.StaleTimestamp, "late"), yes}, 1, session.StaleTimestamp},
		{"not this turn", []any{session.Refuse(session.WrongTurn, "wait"), yes}, 1, session.WrongTurn},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			url, requests := scripted(t, c.answers...)
			a := must(client.Connect(ctx, url, alpha, client.Unsigned()))(t)
			defer a.Close()
			receipt, err := a.Session("019478a3-0001-7def-8a12-000000000001").Propose(ctx, offer(5))
			if c.refused != "" && !errors.Is(err, client.Refused(c.refused)) || c.refused == "" && (err != nil || receipt.Sequence != 7) {
				t.Errorf("got %+v and the error %v", receipt, err)
			}
			sent := requests()
			if len(sent) != c.requests {
				t.Fatalf("sent %d requests, want %d", len(sent), c.requests)
			}
			for _, r := range sent {
				if !bytes.Equal(r, sent[0]) {
					t.Errorf("sent %s and then %s", sent[0], r)
				}
			}
		})
	}
}

// A broker that was asked too much says when to ask again, and is not asked before.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 400 * time.Millisecond
	limited := session.Refuse(session.RateLimited, "slower").With(api.Limited{Limit: "rate", RetryAfter: wait.Milliseconds()})
	url, requests := scripted(t, limited, api.Acceptance{Accepted: true, Sequence: 7, State: session.Conversing})
	a := must(client.Connect(t.Context(), url, alpha, client.Unsigned()))(t)
	defer a.Close()
	from := time.Now()
	must(a.Session("019478a3-0001-7def-8a12-000000000001").Propose(t.Context(), offer(5)))(t)
	if took := time.Since(from); took < wait {
		t.Errorf("asked again after %s, want %s", took, wait)
	}
	if n := len(requests()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// A signed act names the broker that it is for.
func TestAnActNamesItsBroker(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	ours, _ := w.introduced(w.Client(alpha), w.Client(beta))
	entries := must(ours.Transcript(w.Ctx))(t)
	for _, e := range entries {
		if e.Message.Broker != w.Server.Broker.Command.Key() {
			t.Errorf("entry %d names the broker %q, want %q", e.Stamp.Sequence, e.Message.Broker, w.Server.Broker.Command.Key())
		}
	}
}

// Where nobody answers before the context ends, the act is kept for later.
func TestAnUnansweredActCanBeAskedForLater(t *testing.T) {
	t.Parallel()
	url, requests := scripted(t)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	impatient := slog.New(slog.NewTextHandler(hearing{"attempt=2", giveUp}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a := must(client.Connect(ctx, url, alpha, client.Unsigned(), client.Timeout(10*time.Millisecond), client.Log(impatient)))(t)
	defer a.Close()
	_, err := a.Session("019478a3-0001-7def-8a12-000000000001").Propose(ctx, offer(5))
	unanswered, ok := errors.AsType[*client.Unanswered](err)
	if !ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v", err)
	}
	var sent [][]byte
	testkit.Eventually(t, "two attempts arrive", func() bool {
		sent = append(sent, requests()...)
		return len(sent) > 1
	})
	if !bytes.Equal(sent[0], unanswered.Envelope) {
		t.Errorf("sent %q, and kept %q", sent, unanswered.Envelope)
	}

	w := start(t, testkit.Options{Dev: true})
	there := must(client.Connect(w.Ctx, w.URL, alpha, client.Unsigned()))(t)
	defer there.Close()
	if _, err := there.Submit(w.Ctx, unanswered.Envelope); !errors.Is(err, client.Refused(session.UnknownSession)) {
		t.Errorf("asked for later: %v", err)
	}
}

// A refusal that the broker may have made before it looked for the first copy says nothing of it.
func TestARefusalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	lost := []any{nil, session.Refuse(session.Unavailable, "")}
	for code, final := range map[session.Code]bool{
		session.RateLimited: false, session.SignatureInvalid: false, session.Unauthorized: false,
		session.WrongState: true, session.StaleTimestamp: true,
	} {
		for _, first := range lost {
			t.Run(fmt.Sprintf("%s after %v", code, first), func(t *testing.T) {
				limit := api.Limited{RetryAfter: testkit.Patience.Milliseconds()} // much longer than it takes to give up
				url, _ := scripted(t, first, session.Refuse(code, "").With(limit))
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				impatient := slog.New(slog.NewTextHandler(hearing{"rate_limited", giveUp}, &slog.HandlerOptions{Level: slog.LevelDebug}))
				a := must(client.Connect(ctx, url, alpha, client.Unsigned(), client.Timeout(10*time.Millisecond), client.Log(impatient)))(t)
				defer a.Close()
				_, err := a.Session("019478a3-0001-7def-8a12-000000000001").Propose(ctx, offer(5))
				if !errors.Is(err, client.Refused(code)) {
					t.Errorf("the error is %v", err)
				}
				if _, unanswered := errors.AsType[*client.Unanswered](err); unanswered == final {
					t.Errorf("unanswered: %t", unanswered)
				}
			})
		}
	}
}

// hearing calls something when a word is written.
type hearing struct {
	word string
	then func()
}

func (h hearing) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(h.word)) {
		h.then()
	}
	return len(line), nil
}

// Who gives up while the broker cannot answer is told both.
func TestUnavailableToTheEnd(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, session.Refuse(session.Unavailable, "not now"))
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	impatient := slog.New(slog.NewTextHandler(hearing{"not now", giveUp}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a := must(client.Connect(ctx, url, alpha, client.Unsigned(), client.Log(impatient)))(t)
	defer a.Close()
	_, err := a.Session("019478a3-0001-7def-8a12-000000000001").Propose(ctx, offer(5))
	if _, ok := errors.AsType[*client.Unanswered](err); !ok || !errors.Is(err, client.Refused(session.Unavailable)) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// The same envelope again is the same acceptance again.
func TestSubmitTwice(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{Dev: true})
	a := must(client.Connect(w.Ctx, w.URL, alpha, client.Unsigned()))(t)
	defer a.Close()
	envelope := must(performatives.Draft{
		ID: "019478a3-7b2c-7def-8a12-3456789abcde", Session: "019478a3-0001-7def-8a12-000000000001",
		Timestamp: time.Now(), Sender: alpha, Recipient: beta,
		Body: &performatives.ProposeBody{ProposalID: "i", Type: performatives.SessionInvitation, Subject: "s", Terms: []byte("{}")},
	}.Envelope(nil))(t)
	first := testkit.Accepted(t, w.Principal(alpha).Submit("019478a3-0001-7def-8a12-000000000001", envelope)) // a client may ask twice
	again := must(a.Submit(w.Ctx, envelope))(t)
	if first.Duplicate || !again.Duplicate {
		t.Errorf("duplicate is %v and then %v", first.Duplicate, again.Duplicate)
	}
	if again.Duplicate = false; first != again {
		t.Errorf("answered %+v and then %+v", first, again)
	}
}
