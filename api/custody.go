package api

import "github.com/parley-asp/parley/performatives"

// AddAgent is the request of agent.add; the reply is the card as registered.
type AddAgent struct {
	Card   *Card `json:"card"`
	Hosted bool  `json:"hosted,omitzero"` // the installation makes and holds a signing key for it
}

// AddToken is the request of token.add; the reply is the token with its secret.
type AddToken struct {
	Agent    performatives.Agent `json:"agentId"`
	Name     string              `json:"name,omitzero"`
	Lifetime int64               `json:"lifetimeMs,omitzero"`  // 0: until it is removed
	ReadOnly bool                `json:"readOnly,omitzero"`    // it reads and cannot act
	Sender   string              `json:"macp_sender,omitzero"` // what MACP calls who holds it, by default as the card says
}

// A Token lets a program act for one principal over every protocol that is not NATS. Its
// id names the worker that holds it.
type Token struct {
	ID       string              `json:"id"`
	Agent    performatives.Agent `json:"agentId"`
	Name     string              `json:"name,omitzero"`
	ReadOnly bool                `json:"readOnly,omitzero"`
	Sender   string              `json:"macp_sender,omitzero"`
	Created  string              `json:"createdAt"`
	Expires  string              `json:"expiresAt,omitzero"`
	LastUsed string              `json:"lastUsedAt,omitzero"` // to the minute
	Token    string              `json:"token,omitzero"`      // parley_<id>_<secret>, in the reply of token.add only
}

// ListTokens is the request of token.list; tokens come by id.
type ListTokens struct {
	Agent  performatives.Agent `json:"agentId,omitzero"`
	Limit  int                 `json:"limit,omitzero"`
	Cursor string              `json:"cursor,omitzero"`
}

// Tokens is a page of token.list.
type Tokens struct {
	Tokens []Token `json:"tokens"`
	Next   string  `json:"next,omitzero"`
}

// A TokenRef is the request of token.rm; the reply is the token that was removed.
type TokenRef struct {
	ID string `json:"id"`
}

// ProveToken is the request by which a principal that signs for itself gets a token that
// lives an hour (POST /v1/asp/token).
type ProveToken struct {
	Agent     performatives.Agent `json:"agentId"`
	Timestamp string              `json:"timestamp"`
	Audience  performatives.Key   `json:"audience"`  // the broker's public key
	Signature string              `json:"signature"` // over SigningBytes, by the principal's key
}

// SigningBytes are the JCS bytes of {agentId, audience, timestamp}.
func (p ProveToken) SigningBytes() ([]byte, error) {
	return canonical(struct {
		Agent     performatives.Agent `json:"agentId"`
		Audience  performatives.Key   `json:"audience"`
		Timestamp string              `json:"timestamp"`
	}{p.Agent, p.Audience, p.Timestamp})
}
