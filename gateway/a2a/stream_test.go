package a2agateway

import (
	"errors"
	"testing"

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
