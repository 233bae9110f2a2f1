package registry

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// AgentRotate answers agent.rotate, which gives a principal other keys (PROTOCOL.md
// §9): an operator's request, or the principal's own, which the key that signs and the
// new one both sign. Transcripts keep the key that they pinned, and pin the new one with
// the principal's next act. The connections of old login keys stay open until the reply
// is on its way and release is called.
func (r *Registry) AgentRotate(ctx context.Context, c api.Caller, q api.RotateKey) (card api.Card, release func(), err error) {
	if !c.Operator {
		if q.Agent != "" && q.Agent != c.Agent {
			return card, nil, session.Refuse(session.Unauthorized, "a key is its principal's own: agentId is not the principal of your subject")
		}
		q.Agent = c.Agent
	}
	if !q.Key.Valid() {
		return card, nil, session.RefuseSchema(session.Fault{Path: "/key", Rule: "card", Message: "key is a public user nkey (U…)"})
	}
	release = r.holdConnections(q.Agent)
	card, err = r.change(ctx, q.Agent, func(card *api.Card) error {
		next := api.Card{Agent: q.Agent, Key: q.Key, LoginKeys: q.LoginKeys}
		if next.LoginKeys == nil {
			next.LoginKeys = card.LoginKeys
		}
		same := card.Key == next.Key && slices.Equal(card.LoginKeys, next.LoginKeys) // a request whose answer was lost
		own := !c.Operator && !same
		if own {
			if err := r.signedByOld(card.Key, q); err != nil {
				return err
			}
		}
		if err := r.checkKeys(&next); err != nil {
			return err
		}
		if own {
			if err := r.signedByNew(q); err != nil {
				return err
			}
		}
		if card.Registry.DID != "" && card.Key != q.Key {
			return session.Refuse(session.Unauthorized, "%s has a DID with its key: an operator registers both anew (parley agent add --replace --did)", q.Agent)
		}
		card.Key, card.LoginKeys = next.Key, next.LoginKeys
		return nil
	})
	return card, release, err
}

// signedByOld insists that the principal signed the request with the key that it has
// now, and not long ago. Under --dev the signature may be missing, as in envelopes.
func (r *Registry) signedByOld(key performatives.Key, q api.RotateKey) error {
	if r.o.Dev && (q.Signature == "" || key == "") {
		return nil
	}
	signed, err := q.SigningBytes()
	if err != nil {
		return session.Refuse(session.MalformedEnvelope, "the request cannot be written in canonical form")
	}
	if err := performatives.VerifyBytes(key, signed, q.Signature); err != nil {
		return session.Refuse(session.SignatureInvalid, "signature is of {agentId, key, timestamp}, canonical, by the key that you have now").
			With(checked(signed))
	}
	at, err := time.Parse(time.RFC3339Nano, q.Timestamp)
	if err != nil {
		return session.Refuse(session.MalformedEnvelope, "/timestamp: is not an RFC 3339 time").With(map[string]string{"path": "/timestamp"})
	}
	return r.o.Timely(at)
}

// signedByNew insists that the principal has the new key too. Otherwise it could take
// the key of somebody who is not registered yet.
func (r *Registry) signedByNew(q api.RotateKey) error {
	if r.o.Dev && q.Signature == "" {
		return nil
	}
	signed, err := q.SigningBytes()
	if err == nil {
		err = performatives.VerifyBytes(q.Key, signed, q.Proof)
	}
	if err != nil {
		return session.Refuse(session.SignatureInvalid, "proof is a signature of the same as signature, by the new key: it shows that you have it").
			With(checked(signed))
	}
	return nil
}

// checked tells a caller which bytes its signature was checked against.
func checked(signed []byte) map[string]any {
	return map[string]any{"sha256": performatives.HashOf(signed), "bytes": len(signed)}
}
