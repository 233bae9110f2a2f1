package oapgateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// propose makes an offer, or counters the one that previous_proposal_id names.
func (c *call) propose() (int, any, error) {
	document, d, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	offer, err := v.offer(c.Agent, d)
	if err != nil {
		return 0, nil, err
	}
	body := map[string]any{
		"proposalId": offer.Proposal, "terms": d.Terms, "agreementSalt": offer.salt, "round": d.Round, "type": "oap-proposal", "subject": "proposal",
	}
	for name, value := range map[string]string{
		"validUntil": d.ValidUntil, "effectiveFrom": d.EffectiveFrom, "effectiveUntil": d.EffectiveUntil, "category": d.Category,
		"agreementSignature": agreement.Unpadded(d.AgreementSignature),
	} {
		if value != "" {
			body[name] = value
		}
	}
	a := act{performatives.Propose, body, document}
	if d.Previous != "" {
		a.performative, body["referenceId"] = performatives.Counter, v.proposal(d.Previous)
	}
	if err := c.say(v.Session, a); err != nil && !c.made(v, offer.Proposal, d) {
		return 0, nil, stale(err)
	}
	v, err = c.look()
	return http.StatusOK, v.negotiation(), err
}

// stale has a proposal that follows one's own answered as any that does not follow the newest
// of the other party (RFC-0002, section 5).
func stale(err error) error {
	if refusal, is := errors.AsType[*session.Refusal](err); is && refusal.Code == session.OwnProposal {
		return session.Refuse(session.ProposalNotOpen, "previous_proposal_id names a proposal of your own: it has to name the newest of the other party")
	}
	return err
}

// A draft is an offer, and the agreement that it would become.
type draft struct {
	agreement.Offer
	salt     string
	document agreement.Document
}

// offer is what a proposal offers. Its id is ours without OAP's prefix, unless the party has
// signed the agreement of the id as it stands.
func (v view) offer(from performatives.Agent, d agreement.OAPDocument) (made draft, err error) {
	salt := agreement.Unpadded(d.Salt)
	if d.Salt == "" && d.Signature != "" {
		salt = saltOf(d.Signature)
	}
	if d.Proposal == "" || d.Terms.Kind() != '{' {
		return made, bad("a proposal has proposal_id and terms")
	}
	if d.Signature == "" {
		return made, unsigned("proposal")
	}
	for _, id := range []string{strings.TrimPrefix(d.Proposal, agreement.OAPProposal), d.Proposal} {
		made.Offer = agreement.Offer{
			Session: v.Session, Proposal: id, Parties: []performatives.Agent{from, v.other(from)}, Terms: d.Terms,
			Binding:   performatives.Binding{EffectiveFrom: d.EffectiveFrom, EffectiveUntil: d.EffectiveUntil, Category: d.Category},
			Inherited: v.Inherits(),
		}
		made.salt = salt
		made.Salt, _ = agreement.ParseSalt(salt)
		if made.document, err = agreement.Draft(made.Offer); err != nil {
			return made, bad("the terms make no agreement: %s", err)
		}
		if agreement.SignedBy(v.key(from), made.document.Hash, agreement.Unpadded(d.AgreementSignature)) {
			return made, nil
		}
	}
	made.Proposal = strings.TrimPrefix(d.Proposal, agreement.OAPProposal)
	return made, nil
}

// unsigned refuses what its party has not signed.
func unsigned(what string) error {
	return session.Refuse(session.SignatureInvalid, "the %s has no signature: sign it with the key of your DID", what)
}

// saltOf is the salt of a proposal that has none: the parties know its signature, and nobody else.
func saltOf(signature string) string {
	sum := sha256.Sum256([]byte("oap agreement salt\n" + agreement.Unpadded(signature)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// made reports whether the same proposal was accepted before: its answer was lost.
func (c *call) made(v view, id string, d agreement.OAPDocument) bool {
	o, has := v.find(id)
	if !has {
		return false
	}
	m, err := c.entry(v.Session, o.Sequence)
	if err != nil {
		return false
	}
	return carries(m, d)
}

// carries reports whether an act carries the same document, by its signature.
func carries(m *performatives.Message, d agreement.OAPDocument) bool {
	for _, raw := range agreement.OAPIn(m.Context) {
		if before, err := agreement.ReadOAP(raw); err == nil && before.Signature == d.Signature {
			return true
		}
	}
	return false
}

// accept accepts a proposal, and answers with the agreement.
func (c *call) accept() (int, any, error) {
	document, d, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	switch {
	case d.Proposal == "":
		return 0, nil, bad("an acceptance has proposal_id")
	case d.Signature == "":
		return 0, nil, unsigned("acceptance")
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	id, signature := v.proposal(d.Proposal), agreement.Unpadded(d.AgreementSignature)
	body := map[string]any{"referenceId": id}
	if signature != "" {
		body["agreementSignature"] = signature
	}
	refused := c.say(v.Session, act{performatives.Accept, body, document})
	var made agreement.Document
	err = c.Call(c.r.Context(), api.AgreementGet.Verb, api.GetAgreement{Session: v.Session, Agreement: agreement.IDOf(v.Session, id)}, &made)
	self := v.Inherits().DIDOf(c.Agent)
	if refused != nil && (err != nil || made.Parties[0] == self || signature == "" || made.Signatures[self] != signature) && !c.accepted(made, d) { // else its answer was lost
		return 0, nil, refused
	}
	return http.StatusOK, made, err
}

// accepted reports whether the same acceptance made the agreement before.
func (c *call) accepted(made agreement.Document, d agreement.OAPDocument) bool {
	if made.Evidence == nil {
		return false
	}
	m, _, err := read(made.Evidence.Acceptance)
	return err == nil && m.Sender == c.Agent && carries(m, d)
}

// sign signs the agreement of an accepted proposal, where the proposal or its acceptance came
// without the signature over the agreement.
func (c *call) sign() (int, any, error) {
	_, d, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	if d.AgreementSignature == "" {
		return 0, nil, bad("agreement_signature is missing: it is Ed25519 over the agreement_hash, in base64url")
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	signature := agreement.Unpadded(d.AgreementSignature)
	data, err := json.Marshal(map[string]string{"agreementSignature": signature}, json.Deterministic(true))
	if err != nil {
		return 0, nil, err
	}
	refused := c.say(v.Session, act{performatives.Inform, map[string]any{"type": performatives.Fact, "data": jsontext.Value(data)}, nil})
	var made agreement.Document
	err = c.Call(c.r.Context(), api.AgreementGet.Verb, api.GetAgreement{Session: v.Session}, &made)
	before := made.Signatures[v.Inherits().DIDOf(c.Agent)] == signature ||
		v.part.Status == accepted && !slices.Contains(v.part.Unsigned, c.Agent) && agreement.SignedBy(v.key(c.Agent), v.part.Hash, signature) // the other has not
	if refused != nil && (err != nil || !before) { // else its answer was lost
		return 0, nil, refused
	}
	return http.StatusOK, made, err
}

// named is the proposal that a document is about: the newest, if it names none.
func (v view) named(d agreement.OAPDocument) string {
	if d.Proposal == "" {
		return v.part.Live
	}
	return v.proposal(d.Proposal)
}

// reject rejects the newest proposal.
func (c *call) reject() (int, any, error) {
	return c.end(func(v view, d agreement.OAPDocument) (performatives.Performative, map[string]any, error) {
		id := v.named(d)
		if id == "" {
			return 0, nil, session.Refuse(session.ProposalUnknown, "there is no proposal to reject")
		}
		return performatives.Reject, map[string]any{"referenceId": id, "code": "unspecified", "reason": cmp.Or(d.Reason, "rejected"), "retryable": false}, nil
	}, performatives.Reject)
}

// withdraw walks away from the live proposal: it takes back the caller's own, or else closes
// the session.
func (c *call) withdraw() (int, any, error) {
	return c.end(func(v view, d agreement.OAPDocument) (performatives.Performative, map[string]any, error) {
		id := v.named(d)
		o, has := v.find(id)
		switch {
		case has && o.Status != session.Open.String():
			return 0, nil, session.Refuse(session.ProposalNotOpen, "%s is not live: it is %s", id, o.Status)
		case !has:
			return 0, nil, session.Refuse(session.ProposalUnknown, "there is no such live proposal to withdraw")
		case id == v.part.Live && o.From != c.Agent:
			return performatives.Close, map[string]any{"outcome": "abandoned", "summary": d.Reason}, nil
		}
		return performatives.Withdraw, map[string]any{"referenceId": id, "reason": d.Reason}, nil
	}, performatives.Withdraw, performatives.Close)
}

// end sends what ends a negotiation without an agreement: one of the acts.
func (c *call) end(say func(view, agreement.OAPDocument) (performatives.Performative, map[string]any, error), acts ...performatives.Performative) (int, any, error) {
	document, d, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	if d.Signature == "" {
		return 0, nil, unsigned("document")
	}
	if c.ended(v, d, acts) {
		return http.StatusOK, v.negotiation(), nil
	}
	a := act{document: document}
	if a.performative, a.body, err = say(v, d); err != nil {
		return 0, nil, err
	}
	if err := c.say(v.Session, a); err != nil {
		return 0, nil, err
	}
	v, err = c.look()
	return http.StatusOK, v.negotiation(), err
}

// ended reports whether the same document of the caller's ended the negotiation before: its answer was lost.
func (c *call) ended(v view, d agreement.OAPDocument, acts []performatives.Performative) bool {
	if !v.State.Over() || v.Head.Sequence == nil {
		return false
	}
	m, err := c.entry(v.Session, *v.Head.Sequence)
	return err == nil && m.Sender == c.Agent && slices.Contains(acts, m.Performative) && carries(m, d)
}
