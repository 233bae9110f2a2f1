package registry

import (
	"context"
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// maxDID is how long a DID is.
const maxDID = 512

// checkDID holds the DID that an operator registers to the card's own key: a did:key is that
// key, and the document of a did:web has it. The document is read now, and never again.
func (r *Registry) checkDID(ctx context.Context, c *api.Card) error {
	did := agreement.DID(c.Registry.DID)
	refuse := func(why string) error { return cardFault("/card/registry/did", why) }
	owner, taken := r.AgentOf(c.Registry.DID)
	switch {
	case did == "":
		return nil
	case c.Agent.IsHuman() || c.Key == "" || len(did) > maxDID:
		return refuse("a DID is registered of an agent with a key of its own")
	case taken && owner != c.Agent:
		return session.Refuse(session.Duplicate, "the DID belongs to another principal")
	case agreement.KeyOf(did) == c.Key, string(did) == "did:web:"+string(c.Agent.Organisation()):
		return nil // the operator vouches for the host of the agent's URI, as by registering it
	case agreement.KeyOf(did) != "":
		return refuse("the did:key is not of the card's key: register the agent with that key")
	case agreement.DocumentURL(did) == "":
		return refuse("did is a did:key of an Ed25519 key, or a did:web")
	case r.o.Document == nil:
		return refuse("this broker reads no DID documents")
	}
	document, err := r.o.Document(ctx, agreement.DocumentURL(did))
	if err != nil {
		return refuse("the DID document cannot be read: " + err.Error())
	}
	keys, err := agreement.ReadDIDDocument(document, did)
	if err != nil {
		return refuse("the DID document does not hold: " + err.Error())
	}
	if !slices.Contains(keys, c.Key) {
		return refuse("the DID document does not have the card's key among its assertion methods")
	}
	return nil
}

// AgentOf is who has registered a DID.
func (r *Registry) AgentOf(did string) (performatives.Agent, bool) {
	if did == "" {
		return "", false
	}
	return r.cache.named(did)
}
