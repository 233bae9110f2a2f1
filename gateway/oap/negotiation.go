package oapgateway

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An opening is the body of open.
type opening struct {
	To       string                    `json:"to"` // a DID or an agent's URI
	Category string                    `json:"category"`
	Policy   map[string]jsontext.Value `json:"policy"` // as in the manifest, or as in terms.policy
}

// How long a negotiation may take, and wait for a party that accepts invitations itself.
const (
	longest    = session.LongestDuration
	invitation = 24 * time.Hour
)

// open opens a session, and accepts the invitation for a party that is hosted: OAP knows no
// invitations, and one that is accepted binds nobody.
func (c *call) open() (int, any, error) {
	data, _, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	var o opening
	if err := performatives.Unmarshal(data, &o, ""); err != nil {
		return 0, nil, bad("%s", err)
	}
	to, err := c.g.party(o.To)
	if err != nil {
		return 0, nil, err
	}
	policy, err := o.policy()
	if err != nil {
		return 0, nil, err
	}
	id, subject := performatives.SessionID(newID()), "negotiation"
	if o.Category != "" {
		subject = o.Category
	}
	terms := map[string]any{
		"purpose": subject, "participants": []performatives.Agent{to}, "mode": modes.Binding.Name, "policy": policy,
		"maxDuration": longest.Milliseconds(), "invitationTimeoutMs": invitation.Milliseconds(),
	}
	body := map[string]any{"proposalId": "invitation", "type": performatives.SessionInvitation, "subject": subject, "terms": terms}
	if err := c.submit(act{as: c.pass.Agent, session: id, performative: performatives.Propose, body: body}); err != nil {
		return 0, nil, err
	}
	if err := c.introduce(id, to); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, negotiation{ID: negotiationID(id), State: "open"}, nil
}

// party is whom a DID or an agent's URI names.
func (g *Gateway) party(name string) (performatives.Agent, error) {
	if a, registered := g.o.AgentOf(name); registered {
		return a, nil
	}
	a, err := performatives.ParseAgent(name)
	if err != nil {
		a, err = agreement.DID(name).Agent()
	}
	if err != nil {
		return "", bad("to is the DID or the URI of an agent")
	}
	return a, nil
}

// policy is the invitation's, with the names of binding/1.
func (o opening) policy() (map[string]jsontext.Value, error) {
	p := map[string]jsontext.Value{}
	for name, value := range o.Policy {
		switch name {
		case "max_rounds":
			name = "maxRounds"
		case "default_validity_minutes":
			var minutes float64
			if json.Unmarshal(value, &minutes) != nil || minutes != float64(int64(minutes)) || minutes < 1 || minutes > longest.Minutes() {
				return nil, bad("policy.default_validity_minutes is a whole number of minutes, at least 1")
			}
			name = "defaultValidityMs"
			value, _ = json.Marshal(int64(minutes) * time.Minute.Milliseconds()) // a number
		}
		p[name] = value
	}
	if o.Category == "" {
		return p, nil
	}
	var categories []string
	if all, given := p["categories"]; given && (json.Unmarshal(all, &categories) != nil || !slices.Contains(categories, o.Category)) {
		return nil, bad("policy.categories does not have %.100q", o.Category)
	}
	p["categories"], _ = json.Marshal([]string{o.Category}) // a text
	return p, nil
}

// introduce accepts the invitation for another party of OAP's. Everybody else accepts as ever.
func (c *call) introduce(id performatives.SessionID, to performatives.Agent) error {
	if !c.g.o.Party(to) {
		return nil
	}
	err := c.submit(act{as: to, session: id, performative: performatives.Accept, body: map[string]any{"referenceId": "invitation"}})
	if errors.Is(err, &session.Refusal{Code: session.Unauthorized}) {
		return nil
	}
	return err
}

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
	offer, err := v.offer(c.pass.Agent, d)
	if err != nil {
		return 0, nil, err
	}
	body := map[string]any{
		"proposalId": offer.Proposal, "terms": d.Terms, "agreementSalt": offer.salt, "round": d.Round,
		"agreementSignature": agreement.Unpadded(d.AgreementSignature), "type": "oap-proposal", "subject": "proposal",
	}
	for name, value := range map[string]string{
		"validUntil": d.ValidUntil, "effectiveFrom": d.EffectiveFrom, "effectiveUntil": d.EffectiveUntil, "category": d.Category,
	} {
		if value != "" {
			body[name] = value
		}
	}
	a := act{as: c.pass.Agent, session: v.Session, performative: performatives.Propose, body: body, document: document, linked: true}
	if d.Previous != "" {
		a.performative, body["referenceId"] = performatives.Counter, v.proposal(d.Previous)
	}
	if err := c.submit(a); err != nil && !c.made(v, offer.Proposal, d) {
		return 0, nil, err
	}
	if v, err = c.look(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, v.negotiation(), nil
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
	if d.AgreementSignature == "" {
		made.document, _ = agreement.Draft(made.Offer) // it was made before
		return made, bad("agreement_signature is missing: sign the agreement_hash %s", made.document.Hash)
	}
	return made, nil
}

// saltOf is the salt of a proposal that has none: the parties know its signature, and nobody else.
func saltOf(signature string) string {
	sum := sha256.Sum256([]byte("oap agreement salt\n" + agreement.Unpadded(signature)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// made tells whether the same proposal was accepted before: its answer was lost.
func (c *call) made(v view, id string, d agreement.OAPDocument) bool {
	o, has := v.find(id)
	if !has {
		return false
	}
	m, err := c.entry(v.Session, o.Sequence)
	if err != nil {
		return false
	}
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
	if d.Proposal == "" || d.AgreementSignature == "" || d.Signature == "" {
		return 0, nil, bad("an acceptance has proposal_id, agreement_signature and signature")
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	id, signature := v.proposal(d.Proposal), agreement.Unpadded(d.AgreementSignature)
	body := map[string]any{"referenceId": id, "agreementSignature": signature}
	refused := c.submit(act{as: c.pass.Agent, session: v.Session, performative: performatives.Accept, body: body, document: document, linked: true})
	var made agreement.Document
	err = c.ask(api.AgreementGet.Verb, api.GetAgreement{Session: v.Session, Agreement: agreement.IDOf(v.Session, id)}, &made)
	self := v.Inherits().DIDOf(c.pass.Agent)
	if refused != nil && (err != nil || made.Parties[0] == self || made.Signatures[self] != signature) { // else its answer was lost
		return 0, nil, refused
	}
	return http.StatusOK, made, err
}

// reject rejects the newest proposal.
func (c *call) reject() (int, any, error) {
	return c.end(func(v view, d agreement.OAPDocument) (performatives.Performative, map[string]any, error) {
		id := v.part.Live
		if d.Proposal != "" {
			id = v.proposal(d.Proposal)
		}
		if id == "" {
			return 0, nil, session.Refuse(session.ProposalUnknown, "there is no proposal to reject")
		}
		reason := d.Reason
		if reason == "" {
			reason = "rejected"
		}
		return performatives.Reject, map[string]any{"referenceId": id, "code": "unspecified", "reason": reason, "retryable": false}, nil
	})
}

// withdraw walks away: it takes back the caller's own live proposal, or else closes the session.
func (c *call) withdraw() (int, any, error) {
	return c.end(func(v view, d agreement.OAPDocument) (performatives.Performative, map[string]any, error) {
		id := v.part.Live
		if d.Proposal != "" {
			id = v.proposal(d.Proposal)
		}
		if o, has := v.find(id); v.State == session.Invited {
			id = v.Invitation.Proposal
		} else if !has || o.From != c.pass.Agent && d.Proposal == "" {
			return performatives.Close, map[string]any{"outcome": "abandoned", "summary": d.Reason}, nil
		}
		return performatives.Withdraw, map[string]any{"referenceId": id, "reason": d.Reason}, nil
	})
}

// end sends what ends a negotiation without an agreement.
func (c *call) end(say func(view, agreement.OAPDocument) (performatives.Performative, map[string]any, error)) (int, any, error) {
	document, d, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	v, err := c.look()
	if err != nil {
		return 0, nil, err
	}
	a := act{as: c.pass.Agent, session: v.Session, linked: true}
	if d.Signature != "" {
		a.document = document
	}
	if a.performative, a.body, err = say(v, d); err != nil {
		return 0, nil, err
	}
	if err := c.submit(a); err != nil {
		return 0, nil, err
	}
	if v, err = c.look(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, v.negotiation(), nil
}
