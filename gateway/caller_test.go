package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// What a caller does ends when its token expires, or is removed.
func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, removed := time.Now(), make(chan struct{})
		s := &gateway.Service{Tokens: func(_ context.Context, bearer string) (custody.Pass, error) {
			if bearer == "expires" {
				return custody.Pass{Expires: begun.Add(time.Minute), Removed: removed}, nil
			}
			return custody.Pass{Removed: removed}, nil
		}}
		until := func(bearer string) (context.Context, context.CancelFunc) {
			c, err := s.Admit(t.Context(), bearer)
			if err != nil {
				t.Fatal(err)
			}
			return c.Until(t.Context())
		}
		expires, cancel := until("expires")
		defer cancel()
		<-expires.Done()
		if lasted := time.Since(begun); lasted != time.Minute || context.Cause(expires) != custody.ErrToken { //nolint:errorlint // it comes as it is
			t.Errorf("with a token that expires in a minute it lasted %s, and ended for %v", lasted, context.Cause(expires))
		}
		ends, cancel := until("is removed")
		defer cancel()
		if ends.Err() != nil {
			t.Error("it ended before the token was removed")
		}
		close(removed)
		<-ends.Done()
	})
}

// A broker that stops ends waits for turns, and nothing else that is asked.
func TestEnding(t *testing.T) {
	t.Parallel()
	ending, end := context.WithCancel(t.Context())
	s := &gateway.Service{Ending: ending, CallAs: func(ctx context.Context, _ performatives.Agent, verb string, _ []byte) ([]byte, error) {
		end()
		if verb == api.TurnWait.Name {
			<-ctx.Done()
		}
		return []byte("{}"), ctx.Err()
	}}
	for range 2 { // the second begins after the end
		if _, err := s.As("agent://acme.com/a").CallJSON(t.Context(), api.TurnWait.Name, nil); err != gateway.ErrEnding { //nolint:errorlint // it comes as it is
			t.Errorf("a wait ends with %v", err)
		}
	}
	if _, err := s.As("agent://acme.com/a").CallJSON(t.Context(), api.SessionSay.Name, nil); err != nil {
		t.Errorf("an act ends with %v", err)
	}
}

// An act of a session can be sent again, so that another broker answers if one goes.
func TestSayNames(t *testing.T) {
	t.Parallel()
	var said api.Say
	s := &gateway.Service{CallAs: func(_ context.Context, _ performatives.Agent, _ string, request []byte) ([]byte, error) {
		said = api.Say{}
		return []byte("{}"), json.Unmarshal(request, &said)
	}}
	for _, c := range []struct {
		say   api.Say
		named bool
	}{
		{api.Say{Session: "s"}, true},
		{api.Say{Session: "s", Key: "k"}, false},
		{api.Say{Key: "k"}, false},
		{api.Say{}, false},
	} {
		if _, err := s.As("agent://acme.com/a").Say(t.Context(), c.say); err != nil || (said.Message != "") != c.named {
			t.Errorf("%+v becomes %+v: %v", c.say, said, err)
		}
	}
}

// An internal cause is logged, and tells the client nothing. A client that hung up is none.
func TestFaults(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.DebugLevel)
	s := &gateway.Service{Log: zap.New(core)}
	for _, err := range []error{fmt.Errorf("asked: %w", context.Canceled), errors.New("the disk is full")} {
		if refusal := s.Refusal(err); refusal.Code != session.Unavailable || strings.Contains(refusal.Message, "disk") {
			t.Errorf("%v is answered %v", err, refusal)
		}
	}
	if all := logged.All(); len(all) != 1 || all[0].Level != zap.ErrorLevel || all[0].ContextMap()["error"] != "the disk is full" {
		t.Errorf("logged %v", all)
	}
}

// A principal has a bounded number of streams, whatever others have.
func TestStreams(t *testing.T) {
	t.Parallel()
	const most = 3
	s := &gateway.Service{Accounts: limits.NewAccounts(limits.Limits{Streams: most}.WithDefaults(), time.Now)}
	one, other := s.As("agent://acme.com/one"), s.As("agent://acme.com/other")
	var leave func()
	for range most {
		var err error
		if leave, err = one.EnterStream(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.EnterStream(t.Context()); !errors.Is(err, &session.Refusal{Code: session.RateLimited}) {
		t.Errorf("one stream too many: %v", err)
	}
	if _, err := other.EnterStream(t.Context()); err != nil {
		t.Errorf("a stream of another principal: %v", err)
	}
	leave()
	leave() // has left once
	if _, err := one.EnterStream(t.Context()); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	if _, err := one.EnterStream(t.Context()); err == nil {
		t.Error("one has ended twice")
	}
}

// A token that is read-only says and submits nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	c := (&gateway.Service{}).As("agent://acme.com/one")
	c.ReadOnly = true
	_, said := c.Say(t.Context(), api.Say{})
	_, submitted := c.Submit(t.Context(), "", nil)
	for _, err := range []error{said, submitted} {
		if !errors.Is(err, gateway.ErrReadOnly) {
			t.Errorf("it is answered %v", err)
		}
	}
}

// What is refused for now is asked again; any other answer is final.
func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := []error{session.Busy(), session.Refuse(session.RateLimited, "later"), session.NoSuchSession(), nil}
		asked := 0
		err := gateway.Retry(t.Context(), func() error { asked++; return answers[asked-1] })
		if asked != 3 || !errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
			t.Errorf("after %d attempts it is answered %v", asked, err)
		}
	})
}
