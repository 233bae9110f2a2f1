package server

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// privateTerms holds aside what a hosted inviter says for its own side alone. Its bytes count as
// those of an act do.
type privateTerms struct{ s *Server }

func (a privateTerms) KeepPrivate(ctx context.Context, as performatives.Agent, id performatives.SessionID, private jsontext.Value) error {
	release, err := a.s.Admit(as, id, len(private))
	if err != nil {
		return err
	}
	defer release()
	return a.s.Turns().KeepPrivate(ctx, as, id, private)
}
