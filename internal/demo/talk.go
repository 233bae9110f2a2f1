package demo

import (
	"context"
	"net/http"

	"github.com/parley-asp/parley/performatives"
)

// A talk is a scene that two hosted agents play step by step through a gateway.
type talk struct {
	stage *stage
	scene *scene
	cast  []*actor
	rec   *record
	id    performatives.SessionID // once there is one
}

// did prints what came of an agent's call in the session, and what it called.
func (t *talk) did(ctx context.Context, a *actor, what string) error {
	entries, err := a.Session(t.id).Transcript(ctx)
	for _, e := range entries {
		t.rec.add(e)
	}
	a.say(a.name + " " + what)
	return err
}

// bearer sends an agent's token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}
