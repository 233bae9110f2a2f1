package broker

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// agentRotate gives a principal another key (PROTOCOL.md §9): at its own word,
// signed with the key that it had, or at an operator's. Transcripts keep the key
// that they pinned, and pin the new one with the principal's next act.
func (b *Broker) agentRotate(ctx context.Context, c api.Caller, q api.RotateKey) (card api.Card, then func(), err error) {
	if !c.Operator {
		if q.Agent != "" && q.Agent != c.Agent {
			return card, nil, session.Refuse(session.Unauthorized, "a key is its principal's own: agentId is not the principal of your subject")
		}
		q.Agent = c.Agent
	}
	if !q.Key.Valid() {
		return card, nil, session.RefuseSchema(session.Fault{Path: "/key", Rule: "card", Message: "key is a public user nkey (U…)"})
	}
	goes := b.registry.goes(q.Agent) // after the answer, the connection of the old key is closed
	card, err = b.registry.change(ctx, q.Agent, func(old *api.Card) error {
		if !c.Operator && old.Key != q.Key { // asked again, because the answer was lost: nothing changes
			if err := b.rotates(old.Key, q); err != nil {
				return err
			}
		}
		if other, taken := b.registry.Owner(q.Key); taken && other != q.Agent {
			return session.Refuse(session.Duplicate, "the key belongs to another principal")
		}
		if !c.Operator && old.Key != q.Key {
			if err := b.proves(q); err != nil {
				return err
			}
		}
		old.Key = q.Key
		return nil
	})
	return card, goes, err
}

// going are the keys of a principal that are about to be told of as departed.
type going struct {
	waiting int
	keys    []performatives.Key
}

// goes has a principal's departures wait until the returned function is called,
// so that who gives itself another key is answered on the connection of the old.
func (r *registry) goes(a performatives.Agent) (now func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.going[a]
	if g == nil {
		g = &going{}
		r.going[a] = g
	}
	g.waiting++
	return func() {
		r.mu.Lock()
		g.waiting--
		if g.waiting == 0 {
			delete(r.going, a)
		}
		keys := g.keys
		g.keys = nil
		r.mu.Unlock()
		for _, k := range keys {
			r.b.Departed(a, k)
		}
	}
}

// rotates judges a principal's own word: signed with the key that it has now,
// and not long ago. Under --dev it may be unsigned, as envelopes may.
func (b *Broker) rotates(key performatives.Key, q api.RotateKey) error {
	if b.Dev && (q.Signature == "" || key == "") {
		return nil
	}
	signed, err := q.SigningBytes()
	if err != nil {
		return session.Refuse(session.MalformedEnvelope, "the request cannot be written in canonical form")
	}
	if err := performatives.VerifyBytes(key, signed, q.Signature); err != nil {
		return session.Refuse(session.SignatureInvalid, "signature is of {agentId, key, timestamp}, canonical, by the key that you have now")
	}
	at, err := time.Parse(time.RFC3339Nano, q.Timestamp)
	if err != nil {
		return session.Refuse(session.MalformedEnvelope, "/timestamp: is not an RFC 3339 time").With(map[string]string{"path": "/timestamp"})
	}
	return b.timely(at)
}

// proves judges whether who asks has the new key, too: nobody is to take the
// key of somebody who is not registered yet.
func (b *Broker) proves(q api.RotateKey) error {
	if b.Dev && q.Signature == "" {
		return nil
	}
	signed, err := q.SigningBytes()
	if err == nil {
		err = performatives.VerifyBytes(q.Key, signed, q.Proof)
	}
	if err != nil {
		return session.Refuse(session.SignatureInvalid, "proof is a signature of the same as signature, by the new key: it shows that you have it")
	}
	return nil
}

// change writes a registered principal's card anew, from what the bucket has
// now: of two changes at once neither undoes the other.
func (r *registry) change(ctx context.Context, a performatives.Agent, change func(*api.Card) error) (c api.Card, err error) {
	for range maxRaces {
		entry, err := r.bucket.Get(ctx, toKey(a.Token()))
		if errors.Is(err, store.ErrNoKey) {
			return c, session.Refuse(session.UnknownAgent, "%.300s is not registered", a)
		}
		if err != nil {
			return c, err
		}
		c = api.Card{}
		if err := json.Unmarshal(entry.Value, &c); err != nil {
			return c, err
		}
		if err := change(&c); err != nil {
			return c, err
		}
		c.Registry.UpdatedAt = r.b.Now().UTC().Format(time.RFC3339Nano)
		data, err := json.Marshal(c)
		if err != nil {
			return c, err
		}
		revision, err := r.bucket.Update(ctx, toKey(a.Token()), data, entry.Revision)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return c, err
		}
		r.keep(c, revision)
		return c, nil
	}
	return c, unavailable()
}
