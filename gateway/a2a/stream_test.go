package a2agateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A caller has a bounded number of streams, whatever others have.
func TestStreams(t *testing.T) {
	t.Parallel()
	const one, other = performatives.Agent("agent://acme.com/one"), performatives.Agent("agent://acme.com/other")
	g := New(Options{})
	t.Cleanup(g.Close)
	var leave func()
	for range maxStreams {
		var err error
		if leave, err = g.enterStream(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.enterStream(one); !errors.Is(err, &session.Refusal{Code: session.RateLimited}) {
		t.Errorf("one stream too many: %v", err)
	}
	if _, err := g.enterStream(other); err != nil {
		t.Errorf("a stream of another caller: %v", err)
	}
	leave()
	if _, err := g.enterStream(one); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// One session, in which it is the agent's turn for ever.
type quietBroker struct{ Broker }

const quietSession, quietAgent = "01a203c6-ffc9-75b7-8a2b-65f87713b878", performatives.Agent("agent://widgets.co/seller")

func (quietBroker) CallAs(_ context.Context, _ performatives.Agent, verb string, _ []byte) ([]byte, error) {
	if verb == api.SessionMessages.Name {
		return []byte(`{"messages":[]}`), nil
	}
	return []byte(`{"sessionId":"` + quietSession + `","state":"INVITED","participants":[{"agentId":"` + string(quietAgent) + `"}]}`), nil
}

// A client that goes away in the middle of a stream leaves nothing behind.
func TestStreamLeft(t *testing.T) {
	t.Parallel()
	watched := 0
	g := New(Options{Broker: quietBroker{}, WatchSession: func(context.Context, performatives.SessionID) (<-chan struct{}, func(), error) {
		watched++
		return make(chan struct{}), func() { watched-- }, nil
	}})
	t.Cleanup(g.Close)
	c := call{pass: custody.Pass{Agent: "agent://acme.com/one"}, agent: quietAgent}
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
		if events != 1 || watched != 0 || len(g.streams) != 0 {
			t.Errorf("%s: after %d events %d still watch, and %d callers have streams", name, events, watched, len(g.streams))
		}
	}
}

// A stream ends when its token expires, or is removed.
func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Now: time.Now})
		defer g.Close()
		begun, removed := time.Now(), make(chan struct{})
		expires, cancel := g.until(t.Context(), custody.Pass{Expires: begun.Add(time.Minute), Removed: removed})
		defer cancel()
		<-expires.Done()
		if lasted := time.Since(begun); lasted != time.Minute {
			t.Errorf("a stream of a token that expires in a minute lasted %s", lasted)
		}
		ends, cancel := g.until(t.Context(), custody.Pass{Removed: removed})
		defer cancel()
		if ends.Err() != nil {
			t.Error("a stream ended before its token was removed")
		}
		close(removed)
		<-ends.Done()
	})
}
