package modes

import (
	"encoding/base64"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// Binding is binding/1 (OAP RFC-0002): two principals exchange offers, each signed as
// the agreement that it would become. The first acceptance makes the agreement.
var Binding = &session.Mode{
	Name: "binding/1",
	Min:  2, Max: 2,
	Open:      openBinding,
	Rules:     []session.Rule{noCommitments, linkedBySender, asSigned, signedLater},
	Offering:  []session.Rule{oneLiveOffer, withinMaxRounds, nextRound, inCategory, bindingComplete, offerSigned},
	Answering: []session.Rule{session.NotOwn, session.Addressed, session.StillOpen, session.NothingPending, acceptanceSigned},
	Binds:     true,
	Signed:    true,
	Validity:  func(s *session.State) time.Duration { return bound(s).validity },
	After:     afterBinding,
	Deadlines: bindingDeadlines,
	Ended:     func(t *session.Command, _ session.Deadline) { t.Own = bound(&t.State).over(statusExpired) },
	Needs:     needsBinding,
	View:      viewBinding,
}

// Where a binding session stands: the states of RFC-0002, section 3.2.
const (
	statusOpen      = "open"
	statusProposed  = "proposed"
	statusCountered = "countered"
	statusAccepted  = "accepted"
	statusWithdrawn = "withdrawn"
	statusExpired   = "expired"
)

// Defaults of the policy.
const (
	maxRounds     = 8
	offerValidity = time.Hour
	// signingTime is how long an accepted proposal waits for the signatures that are not there yet.
	signingTime = 7 * 24 * time.Hour
)

// binding is the mode's state.
type binding struct {
	rounds, most int64 // offers so far, and at most
	validity     time.Duration
	categories   []string // empty: any
	status       string
	live         string // the offer that can be answered; once accepted, the accepted one
	expires      time.Time
	offer        agreement.Offer      // the live one
	hash         agreement.Digest     // of its agreement; "" while that depends on when it is accepted
	signatures   map[asp.Agent]string // over the hash; never changed
}

func bound(s *session.State) binding {
	b, _ := s.Own.(binding)
	return b
}

func openBinding(_ *session.Command, policy jsontext.Value) (any, error) {
	p := readPolicy(policy)
	b := binding{status: statusOpen, most: maxRounds, validity: offerValidity, categories: p.texts("categories")}
	if n := p.number("maxRounds", 1); n > 0 {
		b.most = n
	}
	if ms := p.number("defaultValidityMs", 1); ms > 0 {
		b.validity = time.Duration(min(ms, session.LongestDuration.Milliseconds())) * time.Millisecond
	}
	p.text("withdrawalPenaltyTerms") // carried for the parties: no penalty is computed
	p.publish()
	if err := p.judged(); err != nil {
		return nil, err
	}
	return b, nil
}

// isRound tells the acts on offers from all others.
func isRound(t *session.Command) bool {
	switch t.Act {
	case asp.Propose, asp.Counter:
		return t.Was > session.Invited
	case asp.Accept, asp.Reject, asp.Withdraw:
		return t.Offer != nil && t.Offer.IsProposal()
	default:
		return false
	}
}

// linkedBySender: who signs an offer or an answer signs what came before it.
func linkedBySender(t *session.Command) error {
	if t.Message.Link != nil || !isRound(t) {
		return nil
	}
	return session.Violation("linked", "%s in binding/1 carries sequenceNumber and integrity.previousHash, so that its signature covers what came before", t.Act)
}

// oneLiveOffer: only a COUNTER replaces an offer.
func oneLiveOffer(t *session.Command) error {
	if b := bound(&t.State); t.Act == asp.Propose && b.live != "" {
		return session.Violation("propose_once", "%q is the offer to answer: COUNTER, ACCEPT or REJECT it", b.live)
	}
	return nil
}

func withinMaxRounds(t *session.Command) error {
	if b := bound(&t.State); b.rounds >= b.most {
		return session.Violation("max_rounds", "there were %d offers, and no more are allowed: ACCEPT, REJECT or WITHDRAW", b.rounds)
	}
	return nil
}

func nextRound(t *session.Command) error {
	b := bound(&t.State)
	if said := binds(t).Round; said != nil && *said != b.rounds+1 {
		return session.Violation("round", "round is %d; the next one is %d", *said, b.rounds+1)
	}
	return nil
}

func inCategory(t *session.Command) error {
	b := bound(&t.State)
	if category := binds(t).Category; len(b.categories) > 0 && !slices.Contains(b.categories, category) {
		return session.Violation("category", "the category is %q; the policy allows %q", category, b.categories)
	}
	return nil
}

// binds is the binding of the offer that the act makes.
func binds(t *session.Command) *asp.Binding {
	return t.Message.Body.(asp.Binder).Binds() //nolint:errcheck,forcetypeassert // PROPOSE and COUNTER have one
}

// bindingComplete insists on what the agreement needs. What its party has signed in OAP's form
// may leave the beginning and the agreement's own signature for later.
func bindingComplete(t *session.Command) error {
	b := binds(t)
	var faults []session.Fault
	for _, needed := range []struct {
		name, value string
		later       bool
	}{
		{"agreementSalt", b.AgreementSalt, false}, {"agreementSignature", b.AgreementSignature, true}, {"effectiveFrom", b.EffectiveFrom, true},
	} {
		if needed.value == "" && !(needed.later && inOAP(t)) {
			faults = append(faults, session.Fault{Path: "/" + needed.name, Rule: "required", Message: needed.name + " is required in mode binding/1"})
		}
	}
	from, _ := time.Parse(time.RFC3339, b.EffectiveFrom)
	if until, err := time.Parse(time.RFC3339, b.EffectiveUntil); b.EffectiveUntil != "" && (err != nil || !until.After(from)) {
		faults = append(faults, session.Fault{Path: "/effectiveUntil", Rule: "after", Message: "effectiveUntil must be after effectiveFrom"})
	}
	if _, ok := agreement.ParseSalt(b.AgreementSalt); !ok && b.AgreementSalt != "" {
		faults = append(faults, session.Fault{Path: "/agreementSalt", Rule: "format", Message: "agreementSalt must be 32 bytes in base64url"})
	}
	if len(faults) > 0 {
		return session.RefuseSchema(faults...)
	}
	return nil
}

// needsBinding: an offer carries what its agreement needs, and who accepts signs it too.
func needsBinding(s *session.State, act asp.Performative, reference string) map[string]any {
	o, _ := s.Offer(reference)
	switch {
	case s.Phase == session.Invited:
		return nil
	case act == asp.Accept && o != nil && o.IsProposal():
		return map[string]any{"agreementSignature": "…"}
	case act != asp.Propose && act != asp.Counter:
		return nil
	}
	needs := map[string]any{
		"agreementSalt": base64.RawURLEncoding.EncodeToString(make([]byte, 32)), "agreementSignature": "…",
		"effectiveFrom": s.Updated.UTC().Format(time.RFC3339),
	}
	if b := bound(s); len(b.categories) > 0 {
		needs["category"] = b.categories[0]
	}
	return needs
}

// offerSigned verifies the author's signature over the agreement that the offer makes.
func offerSigned(t *session.Command) error {
	hash, err := agreementOf(t)
	if err != nil {
		return session.RefuseSchema(session.Fault{Path: "/terms", Rule: "type", Message: "the terms make no agreement: " + err.Error()})
	}
	if binds(t).AgreementSignature == "" { // in OAP's form: it is to come
		return nil
	}
	return signed(t, hash, binds(t).AgreementSignature)
}

// inOAP reports whether the act carries what its party has signed in OAP's form.
func inOAP(t *session.Command) bool {
	return !t.Before(4) && len(agreement.OAPIn(t.Message.Context)) > 0
}

// offered is what the offer of this act offers.
func offered(t *session.Command) agreement.Offer {
	b, o := binds(t), t.Offering()
	salt, _ := agreement.ParseSalt(b.AgreementSalt)
	return agreement.Offer{
		Session: t.Message.Session, Proposal: o.ID, Parties: []asp.Agent{t.Side, t.Other(t.Side)},
		Terms: o.Terms, Salt: salt, Binding: *b, Inherited: agreement.InheritedOf(&t.State),
	}
}

// agreementOf is the hash of the agreement that the offer of this act makes.
func agreementOf(t *session.Command) (agreement.Digest, error) {
	d, err := agreement.Draft(offered(t))
	return d.Hash, err
}

// acceptedHash is the hash of the agreement that this ACCEPT makes: without a date of its own
// it begins now.
func (b binding) acceptedHash(t *session.Command) (agreement.Digest, error) {
	if b.hash != "" {
		return b.hash, nil
	}
	b.offer.EffectiveFrom = t.At.UTC().Format(asp.TimeFormat)
	d, err := agreement.Draft(b.offer)
	return d.Hash, err
}

// acceptanceSigned verifies the signature of who accepts over the same agreement.
func acceptanceSigned(t *session.Command) error {
	body, ok := t.Message.Body.(*asp.AcceptBody)
	if !ok {
		return nil
	}
	b := bound(&t.State)
	hash, err := b.acceptedHash(t)
	if err != nil {
		return err
	}
	if until, err := time.Parse(time.RFC3339, b.offer.EffectiveUntil); b.hash == "" && err == nil && !until.After(t.At) {
		return session.Violation("effective_until", "the agreement would begin now, and it ends at %s: make another offer", b.offer.EffectiveUntil)
	}
	switch {
	case body.AgreementSignature == "" && inOAP(t):
		return nil
	case body.AgreementSignature == "":
		return session.RefuseSchema(session.Fault{Path: "/agreementSignature", Rule: "required", Message: "agreementSignature is required in mode binding/1"})
	}
	return signed(t, hash, body.AgreementSignature)
}

// laterSignature is the party's signature over the agreement that an INFORM brings after the
// acceptance; "" for none.
func laterSignature(t *session.Command) string {
	body, informs := t.Message.Body.(*asp.InformBody)
	if !informs || t.Before(4) {
		return ""
	}
	var data struct {
		Signature string `json:"agreementSignature"`
	}
	if body.Data.Kind() != '{' || json.Unmarshal(body.Data, &data) != nil {
		return ""
	}
	return data.Signature
}

// signedLater verifies the signature that an INFORM brings: each party makes one.
func signedLater(t *session.Command) error {
	signature, b := laterSignature(t), bound(&t.State)
	if signature == "" {
		return nil
	}
	if b.status != statusAccepted {
		return session.Violation("signature", "there is no agreement to sign yet")
	}
	if _, has := b.signatures[t.Side]; has {
		return session.Violation("signature", "%s has signed the agreement already", t.Side)
	}
	return signed(t, b.hash, signature)
}

// signed insists on a key of the party, also of a delegate: a stolen or borrowed signature
// binds nobody. That is its own key, or the one that the installation signs its entries with.
// A party that joined without a key, under --dev, has none.
func signed(t *session.Command, hash agreement.Digest, signature string) error {
	key, own := t.PartyKey(t.Side), t.OwnKey(t.Side)
	if t.Draft() || key == "" || agreement.SignedBy(own, hash, signature) || agreement.SignedBy(key, hash, signature) {
		return nil
	}
	return session.Refuse(session.SignatureInvalid, "agreementSignature is not of the key of %s over the agreement_hash %s", t.Side, hash).
		With(map[string]any{"agreementHash": hash})
}

// afterBinding keeps count of the offers, and ends the session where it is over.
func afterBinding(t *session.Command) {
	b := bound(&t.State)
	switch {
	case t.Phase == session.Failed:
		b = b.over(statusRejected)
	case t.Phase == session.Closed:
		b = b.over(statusWithdrawn)
	case laterSignature(t) != "":
		b = b.sign(t, laterSignature(t))
		t.SignAgreement(laterSignature(t))
		b.concludes(t)
	case !isRound(t):
		return
	default:
		b = b.round(t)
	}
	t.Own = b
}

func (b binding) round(t *session.Command) binding {
	switch t.Act {
	case asp.Accept:
		b.hash, _ = b.acceptedHash(t)               // acceptanceSigned has made it before
		body, _ := t.Message.Body.(*asp.AcceptBody) // its act says so
		b = b.ended(statusAccepted).sign(t, body.AgreementSignature)
		b.expires = t.Now.Add(signingTime)
		b.concludes(t)
		return b
	case asp.Reject:
		b = b.ended(statusRejected)
	case asp.Withdraw:
		b = b.ended(statusWithdrawn)
	default:
		if b.rounds++; b.rounds > 1 {
			b.status = statusCountered
		} else {
			b.status = statusProposed
		}
		o := t.Offering()
		b.live, b.expires, b.offer, b.hash, b.signatures = o.ID, o.Expires, offered(t), "", nil
		if b.offer.EffectiveFrom != "" {
			b.hash, _ = agreementOf(t) // offerSigned has made it before
		}
		return b.sign(t, binds(t).AgreementSignature)
	}
	t.Carry(session.Closed, b.status)
	return b
}

// sign notes the sender's side's signature, if there is one.
func (b binding) sign(t *session.Command, signature string) binding {
	if signature != "" {
		if b.signatures = maps.Clone(b.signatures); b.signatures == nil {
			b.signatures = map[asp.Agent]string{}
		}
		b.signatures[t.Side] = signature
	}
	return b
}

// concludes ends the session of an accepted offer, or has it wait for the signatures.
func (b binding) concludes(t *session.Command) {
	if len(b.signatures) < len(b.offer.Parties) {
		t.Carry(session.Executing, "")
		return
	}
	t.Carry(session.Closed, statusAccepted)
}

// over ends what was not accepted before.
func (b binding) over(status string) binding {
	if b.status == statusAccepted {
		status = statusAccepted
	}
	return b.ended(status)
}

func (b binding) ended(status string) binding {
	b.status, b.expires = status, time.Time{}
	return b
}

// bindingDeadlines: the negotiation ends with the live offer.
func bindingDeadlines(s *session.State) []session.Deadline {
	b := bound(s)
	if b.expires.IsZero() {
		return nil
	}
	if b.status == statusAccepted {
		return []session.Deadline{{Code: statusAccepted, At: b.expires, Ends: true, Ref: b.live, To: session.Closed}}
	}
	return []session.Deadline{{Code: statusExpired, At: b.expires, Ends: true, Ref: b.live, To: session.Closed}}
}

// bindingView is what the mode adds to the view.
type bindingView struct {
	Status    string           `json:"status"`
	Round     int64            `json:"round"` // offers so far
	MaxRounds int64            `json:"maxRounds"`
	Live      string           `json:"live,omitzero"`
	Agreement agreement.ID     `json:"agreementId,omitzero"`   // of the live or accepted offer
	Hash      agreement.Digest `json:"agreementHash,omitzero"` // what is signed; absent while it depends on when the offer is accepted
	Unsigned  []asp.Agent      `json:"unsigned,omitzero"`      // who has not signed the accepted offer's agreement yet
}

func viewBinding(s *session.State, _ time.Time) any {
	b := bound(s)
	v := bindingView{Status: b.status, Round: b.rounds, MaxRounds: b.most, Live: b.live, Hash: b.hash}
	if b.live != "" {
		v.Agreement = agreement.IDOf(s.ID, b.live)
	}
	if b.status == statusAccepted {
		for _, party := range b.offer.Parties {
			if b.signatures[party] == "" {
				v.Unsigned = append(v.Unsigned, party)
			}
		}
	}
	return v
}
