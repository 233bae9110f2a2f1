package reads

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

// maxRedact bounds the terms that one bundle is redacted of.
const maxRedact = 100

// SessionEvidence answers session.evidence.
func (x *Reads) SessionEvidence(ctx context.Context, c api.Caller, q api.GetEvidence) (b evidence.Bundle, err error) {
	if len(q.Redact) > maxRedact {
		return b, session.Refuse(session.MalformedEnvelope, "redact names more than %d terms", maxRedact)
	}
	var entries []jsontext.Value
	sealed := map[performatives.MessageID]performatives.SealedParts{}
	for ask := (api.ListMessages{Session: q.Session, Limit: api.MaxPage}); ; {
		page, err := x.SessionMessages(ctx, c, ask)
		if err != nil {
			return b, err
		}
		entries = append(entries, page.Messages...)
		for message, parts := range page.Sealed {
			sealed[message] = parts
		}
		if page.Next == nil {
			break
		}
		ask.Since = *page.Next
	}
	if b, err = evidence.Make(entries, sealed); errors.Is(err, transcript.ErrErased) {
		return b, erased(c, q.Session)
	} else if err != nil {
		return b, err
	}
	b.BrokerKeys = x.o.Keys
	if err := b.Logged(x.o.Ledger.ReceiptKey(), func(kind inclusion.Kind, id string) (*inclusion.Proof, []byte, error) {
		return x.o.Ledger.Receipted(ctx, kind, id)
	}); err != nil {
		return b, err
	}
	if len(q.Redact) > 0 {
		if b, err = b.Redact(q.Redact...); err != nil {
			return b, session.Refuse(session.MalformedEnvelope, "redact: %s", err)
		}
	}
	if q.Bare {
		b.Transcript, b.Sealed = []jsontext.Value{}, nil
	}
	if size := fit.Size(b); size > api.MaxPageBytes {
		return b, session.Refuse(session.TooLarge, "the bundle has %d bytes, a reply at most %d: ask with bare, and for the transcript by session.messages", size, api.MaxPageBytes)
	}
	return b, nil
}
