package modes

import (
	"encoding/base64"
	"maps"
	"slices"
	"time"

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
	Binds:     1,
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
	p.word("ids", "asp", agreement.OAPIDs)
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
		if needed.value == "" && (!needed.later || !inOAP(t)) {
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
	IDs       string           `json:"ids,omitzero"`           // "oap": of the agreement
}

func viewBinding(s *session.State, _ time.Time) any {
	b := bound(s)
	v := bindingView{Status: b.status, Round: b.rounds, MaxRounds: b.most, Live: b.live, Hash: b.hash}
	if agreement.InheritedOf(s).OAP {
		v.IDs = agreement.OAPIDs
	}
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
