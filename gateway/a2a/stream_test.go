package a2agateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
)

const quietSession, quietAgent = "01a203c6-ffc9-75b7-8a2b-65f87713b878", performatives.Agent("agent://widgets.co/seller")

// quiet has one session, in which it is the agent's turn for ever.
func quiet(_ context.Context, _ performatives.Agent, verb string, _ []byte) ([]byte, error) {
	if verb == api.SessionMessages.Name {
		return []byte(`{"messages":[]}`), nil
	}
	return []byte(`{"sessionId":"` + quietSession + `","state":"INVITED","participants":[{"agentId":"` + string(quietAgent) + `"}],"waiting":{"for":["` + string(quietAgent) + `"]}}`), nil
}

// Who owes something is refused before its request is read, and told when to come back.
func TestOwes(t *testing.T) {
	t.Parallel()
	service := &gateway.Service{
		Tokens: func(context.Context, string) (custody.Pass, error) {
			return custody.Pass{Agent: "agent://acme.com/one"}, nil
		},
		Charge: func(performatives.Agent, int) error { return api.RateLimited("bytesOut", 2*time.Second, "later") },
	}
	g := New(Options{Service: service, Served: func(performatives.Agent) (api.Card, bool) { return api.Card{}, true }})
	t.Cleanup(g.Close)
	unread := strings.NewReader(`{"jsonrpc":"2.0"}`)
	r := httptest.NewRequest(http.MethodPost, Base+quietAgent.Token()+"/", unread)
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" || !strings.Contains(w.Body.String(), "RESOURCE_EXHAUSTED") || unread.Len() != int(unread.Size()) {
		t.Errorf("answered %d, come back after %s: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

// A message that is not streamed waits as long as its answer may take, and no longer.
func TestWaitBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &gateway.Service{CallAs: quiet, WatchSession: func(context.Context, performatives.SessionID) (<-chan struct{}, func(), error) {
			return make(chan struct{}), func() {}, nil
		}}
		g := New(Options{Service: service})
		defer g.Close()
		began := time.Now()
		g.wait(t.Context(), call{Caller: service.As("agent://acme.com/one"), to: quietAgent}, ref{session: quietSession})
		if took := time.Since(began); took != gateway.AnswerIn-gateway.WriteWithin {
			t.Errorf("it waited for %s", took)
		}
	})
}

// A client that goes away in the middle of a stream leaves nothing behind.
func TestStreamLeft(t *testing.T) {
	t.Parallel()
	watched := 0
	service := &gateway.Service{Accounts: limits.NewAccounts(limits.Limits{Streams: 1}.WithDefaults(), time.Now), CallAs: quiet, WatchSession: func(context.Context, performatives.SessionID) (<-chan struct{}, func(), error) {
		watched++
		return make(chan struct{}), func() { watched-- }, nil
	}}
	g := New(Options{Service: service})
	t.Cleanup(g.Close)
	c := call{Caller: service.As("agent://acme.com/one"), to: quietAgent}
	for name, leaves := range map[string]func(context.CancelFunc) bool{
		"while it waits":         func(leave context.CancelFunc) bool { leave(); return true },
		"while an event is sent": func(context.CancelFunc) bool { return false },
	} {
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), callKey{}, c))
		events := 0
		tasks{g}.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: quietSession})(func(_ a2a.Event, err error) bool {
			if events++; err != nil || watched != 1 {
				t.Errorf("%s: %d watch the session: %v", name, watched, err)
			}
			return leaves(leave)
		})
		leave()
		if events != 1 || watched != 0 {
			t.Errorf("%s: after %d events %d still watch", name, events, watched)
		}
	}
	if _, err := c.EnterStream(t.Context()); err != nil {
		t.Fatalf("one that was left is counted: %v", err)
	}
	tasks{g}.SubscribeToTask(context.WithValue(t.Context(), callKey{}, c), &a2a.SubscribeToTaskRequest{ID: quietSession})(func(_ a2a.Event, err error) bool {
		if err == nil || watched != 0 {
			t.Errorf("one stream too many is open: %v", err)
		}
		return false
	})
}
