package vectors

import (
	"fmt"
	"io"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

const (
	buyer  = performatives.Agent("agent://acme.com/procurement/alpha")
	seller = performatives.Agent("agent://widgets.co/sales/beta")
	alice  = performatives.Agent("human://acme.com/alice")

	carrier = performatives.Agent("agent://carrier.example/gamma")
	arbiter = performatives.Agent("agent://chamber.example/arbiter")
	bob     = performatives.Agent("human://widgets.co/bob")
)

var start = time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)

// A table is where two agents negotiate by the rules; a broker keeps the transcript. What follows an error does nothing.
type table struct {
	id      performatives.SessionID
	number  int
	waited  time.Duration
	broker  performatives.Signer
	state   session.State
	entries []transcript.Entry
	sealed  map[performatives.MessageID]performatives.SealedParts
	err     error
}

// salts are read as random bytes, the same each time.
type salts byte

func (s salts) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s) + byte(i)
	}
	return len(p), nil
}

var _ io.Reader = salts(0)

// buy is a purchase from the invitation to the end. In asp/1 a human approves it, within bounds that are sealed.
func buy(mode string, number int) (*table, error) {
	t := opened(number, fmt.Sprintf(`{"mode":%q,"participants":[%q],"purpose":"buy cups"}`, mode, seller))
	t.say(seller, &performatives.AcceptBody{ReferenceID: "invitation"})
	if mode == "binding/1" {
		offer := t.binds(&performatives.ProposeBody{
			ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(`{"currency":"EUR","price":89.5,"quantity":200}`),
		})
		t.say(buyer, offer)
		accept := &performatives.AcceptBody{ReferenceID: "offer_1"}
		accept.AgreementSignature = t.signs(seller, offer)
		t.say(seller, accept)
	} else {
		t.say(buyer, &performatives.ProposeBody{
			ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(`{"currency":"EUR","price":60,"quantity":200}`),
		})
		t.say(seller, &performatives.CounterBody{
			ProposalID: "offer_2", ReferenceID: "offer_1", Terms: performatives.Object(`{"currency":"EUR","price":89.5,"quantity":200,"delivery":"Zürich, 5 days"}`),
		})
		t.say(buyer, &performatives.EscalateBody{
			Reason: "authority-limit", Urgency: "high", ReferenceID: "offer_2", Context: []byte(`"above 80, our limit"`),
		}, performatives.SealContext)
		asked := t.last()
		t.say(alice, &performatives.InformBody{
			Type: performatives.Resolution,
			Data: []byte(fmt.Sprintf(`{"authority":{"currency":"EUR","maxAmount":95},"decision":"approved","escalationId":%q,"referenceId":"offer_2"}`, asked)),
		}, performatives.SealAuthority)
		t.say(buyer, &performatives.AcceptBody{ReferenceID: "offer_2"})
		t.say(buyer, &performatives.CloseBody{Outcome: performatives.Completed, Summary: "agreed"})
	}
	return t, t.err
}

// opened is a table with the buyer's invitation on it.
func opened(number int, terms string) *table {
	t := &table{
		id: performatives.SessionID(fmt.Sprintf("019478a3-%04d-7def-8a12-000000000001", number)), number: number,
		sealed: map[performatives.MessageID]performatives.SealedParts{},
	}
	t.state = session.New(t.id, modes.All())
	t.broker, t.err = signerOf("broker")
	t.say(buyer, &performatives.ProposeBody{ProposalID: "invitation", Type: performatives.SessionInvitation, Subject: "cups", Terms: performatives.Object(terms)})
	return t
}

// last is the id of the last act.
func (t *table) last() (id performatives.MessageID) {
	if n := len(t.entries); n > 0 {
		id = t.entries[n-1].Message.ID
	}
	return id
}

// binds signs the buyer's offer as the agreement that it becomes.
func (t *table) binds(offer *performatives.ProposeBody) *performatives.ProposeBody {
	offer.Binding = performatives.Binding{
		AgreementSalt: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Category: "procurement",
		EffectiveFrom: "2026-04-01T00:00:00Z", EffectiveUntil: "2027-04-01T00:00:00Z",
	}
	offer.AgreementSignature = t.signs(buyer, offer)
	return offer
}

func (t *table) signs(a performatives.Agent, offer *performatives.ProposeBody) (signature string) {
	signer, err := signerOf(string(a))
	if err == nil {
		signature, err = agreement.SignOffer(signer, t.id, offer, offer.ProposalID, agreement.InheritedOf(&t.state), buyer, seller)
	}
	if err != nil && t.err == nil {
		t.err = err
	}
	return signature
}

// say has the broker accept an act, with members of its body sealed.
func (t *table) say(from performatives.Agent, body performatives.Body, sealed ...string) {
	if t.err == nil {
		t.err = t.says(from, body, sealed)
	}
}

func (t *table) says(from performatives.Agent, body performatives.Body, sealed []string) error {
	n := len(t.entries)
	at := t.now()
	next := performatives.Link{PreviousHash: performatives.NoHash}
	if n > 0 {
		next = t.entries[n-1].Next()
	}
	signer, err := t.broker, error(nil)
	if !from.IsBroker() {
		signer, err = signerOf(string(from))
	}
	if err != nil {
		return err
	}
	draft := performatives.Draft{
		ID: performatives.MessageID(fmt.Sprintf("019478a3-%04d-7def-8a12-%012x", t.number, n)), Session: t.id, Sender: from, Body: body, Timestamp: at,
	}
	if n != 1 && !from.IsBroker() { // the broker links that one, senders the others
		draft.Link = &next
	}
	submission, err := draft.Submission(signer, salts(n), sealed...) //nolint:gosec // a table has few entries
	if err != nil {
		return err
	}
	m, err := performatives.Read(submission)
	if err == nil {
		err = m.Open(m.Parts)
	}
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		return err
	}
	if len(m.Parts) > 0 {
		t.sealed[m.ID] = m.Parts
	}
	known, err := members()
	if err != nil {
		return err
	}
	state, err := session.Step(t.state, session.Event{Message: m, At: at.Add(transit), Broker: t.broker.Key(), Known: known, Policy: policy})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", body.Act(), from, err)
	}
	stamp := performatives.Stamp{Sequence: next.Sequence, PreviousHash: next.PreviousHash, Joined: state.Last.Joined, OnBehalfOf: state.Last.OnBehalfOf}
	line, stamp, err := m.Deliver(stamp, at.Add(transit), state.Phase.String(), t.broker)
	if err != nil {
		return err
	}
	entry, err := transcript.Read(line)
	if err == nil {
		err = entry.Message.DecodeBody()
	}
	t.state, t.entries = state.Sealed(m.ID, stamp.Hash), append(t.entries, entry)
	return err
}

// transit is how long an act takes to the broker.
const transit = 12 * time.Millisecond

// now is when the next act is made.
func (t *table) now() time.Time {
	return start.Add(time.Duration(t.number)*time.Hour + time.Duration(len(t.entries))*time.Second + t.waited)
}

// enters has the broker enter what has passed after a while.
func (t *table) enters(after time.Duration) {
	t.waited += after
	d, passed := t.state.Passed(t.now().Add(transit))
	if !passed && t.err == nil {
		t.err = fmt.Errorf("nothing has passed after %s", after)
	}
	if t.err == nil {
		t.say(performatives.BrokerAgent(t.broker.Key()), d.Body(""))
	}
}

// policy has the defaults of a broker.
var policy = performatives.Policy{
	Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000, MaxPaused: 604_800_000,
	EscalationLow: 86_400_000, EscalationMedium: 14_400_000, EscalationHigh: 3_600_000, EscalationCritical: 900_000, ParkedTimeout: 86_400_000,
}

func members() (known session.Known, err error) {
	for _, a := range []performatives.Agent{buyer, seller, alice, carrier, arbiter, bob} {
		signer, err := signerOf(string(a))
		if err != nil {
			return known, err
		}
		m := performatives.Member{Agent: a, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal, Key: signer.Key()}
		if a.IsHuman() {
			m.Kind, m.Authority = performatives.KindHuman, performatives.AuthorityDecide
		}
		known.Add(m)
	}
	return known, nil
}

// lines are the transcript as it is exported.
func (t *table) lines() []string {
	all := make([]string, len(t.entries))
	for i, e := range t.entries {
		all[i] = string(e.Bytes)
	}
	return all
}
