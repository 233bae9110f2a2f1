package session

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// Defaults and bounds of an invitation (PROTOCOL.md §5).
const (
	DefaultInvitationTimeout = 24 * time.Hour
	DefaultMaxDuration       = 24 * time.Hour
	LongestDuration          = 30 * 24 * time.Hour
)

// An Invitation is what opens a session asks for, read and completed.
type Invitation struct {
	performatives.InvitationTerms
	Invitees []performatives.Agent // without the inviter, in order, once each

	execution bool                // what is agreed is carried out in the session, in any mode
	arbiter   performatives.Agent // who decides disputes; "" is nobody
	parked    time.Duration       // how long a turn waits before a standby may take it; 0 is the broker's default
}

// Invites lists whom an invitation names, in the order of the principals: for
// the broker, which has to know them before Step can judge.
func Invites(m *performatives.Message) []performatives.Agent {
	body, ok := m.Body.(*performatives.ProposeBody)
	if !ok || body.Type != performatives.SessionInvitation {
		return nil
	}
	inv, err := readInvitation(m, body.Terms)
	if err != nil {
		return nil
	}
	return inv.Invitees
}

func readInvitation(m *performatives.Message, terms jsontext.Value) (Invitation, error) {
	var inv Invitation
	if err := json.Unmarshal(terms, &inv.InvitationTerms); err != nil {
		return inv, RefuseSchema(Fault{Path: "/terms", Rule: "type", Message: "the terms are not those of an invitation"})
	}
	named := inv.Participants
	if m.Recipient != "" {
		named = append([]performatives.Agent{m.Recipient}, named...)
	}
	known := map[performatives.Agent]bool{m.Sender: true}
	for _, a := range named {
		if !known[a] {
			known[a] = true
			inv.Invitees = append(inv.Invitees, a)
		}
	}
	if inv.Mode == "" {
		inv.Mode = DefaultMode
	}
	return inv, nil
}

// invites judges an invitation that opens a session: its terms, its mode, the
// number of parties. Nothing of it is in force before all of it is right.
func (t *Command) invites() error {
	body := t.Message.Body.(*performatives.ProposeBody) //nolint:errcheck,forcetypeassert // opens checked it
	inv, err := readInvitation(t.Message, body.Terms)
	if err != nil {
		return err
	}
	t.opening = &inv
	mode, known := t.modes[inv.Mode]
	if !known {
		return Violation("unknown_mode", "there is no mode %q; there is %s", inv.Mode, strings.Join(t.modes.Names(), ", "))
	}
	if n := len(inv.Invitees) + 1; n < mode.Min || n > mode.Max {
		return Violation("parties", "mode %s takes %d to %d principals; the invitation names %d", mode.Name, mode.Min, mode.Max, n)
	}
	if err := t.opensTo(inv.Invitees); err != nil {
		return err
	}
	t.Mode = mode
	t.inviter = t.Side
	if err := t.readPolicy(); err != nil {
		return err
	}
	return t.barred()
}

// EveryMode names the parameters of a policy that every mode has.
const EveryMode = arbiterMember + ", " + executionMember + ", " + parkedMember

// readPolicy lets the mode read its parameters. It runs on the turn's own copy
// of the state: a refusal drops that copy.
func (t *Command) readPolicy() error {
	policy, err := t.readParked(t.opening.Policy)
	if err != nil {
		return err
	}
	if policy, err = t.readExecution(policy); err != nil {
		return err
	}
	if t.Mode.Open == nil {
		t.Own = nil
		var given map[string]jsontext.Value
		if len(policy) > 0 && (json.Unmarshal(policy, &given) != nil || len(given) > 0) {
			return Violation("policy", "mode %s has no parameters but those of every mode: %s", t.Mode.Name, EveryMode)
		}
		return nil
	}
	t.Own, err = t.Mode.Open(t, policy)
	return err
}

// Names are sorted.
func (m Modes) Names() []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Opening is the invitation that the act brings, for a mode's Open.
func (t *Command) Opening() Invitation { return *t.opening }

// PartyKind is the kind that the registry has, or the transcript pinned, for a
// principal of the session that is being opened or held.
func (t *Command) PartyKind(a performatives.Agent) string {
	if p, ok := t.parties.Get(a); ok {
		return p.Kind
	}
	if a == t.From.Agent {
		return t.From.Kind
	}
	m, _ := t.event.Known.Get(a)
	return m.Kind
}

// inviteesKnown refuses an invitation of somebody who is not registered.
func (t *Command) inviteesKnown() error {
	if err := t.arbiterKnown(); err != nil {
		return err
	}
	for _, a := range t.opening.Invitees {
		if _, ok := t.event.Known.Get(a); !ok {
			return unknownAgent(a)
		}
	}
	return nil
}

func unknownAgent(a performatives.Agent) error {
	return Refuse(UnknownAgent, "%s is not registered", a).With(map[string]any{"agentId": a})
}

// openSession brings the session into being.
func (t *Command) openSession() {
	t.Policy, t.Created = t.event.Policy, t.At
	broker := performatives.Member{
		Agent: performatives.BrokerAgent(t.event.Broker), Key: t.event.Broker, Kind: performatives.KindBroker,
		Authority: performatives.AuthorityBroker, Policy: &t.Policy,
	}
	t.Last.Joined = append(t.Last.Joined, broker)
	t.principals = len(t.opening.Invitees) + 1
	t.enter(principal(t.standby(t.From.Member), Inviter))
	for _, a := range t.opening.Invitees {
		m, _ := t.event.Known.Get(a)
		t.enter(principal(t.standby(m), Invitee))
	}
	t.pinStandbys()
	t.pinArbiter()
	t.agree(t.At)
}

// agree puts the terms of the newest invitation in force; its duration counts
// from the acceptance, before format 3 from the session's first entry, the time
// to answer from the invitation.
func (t *Command) agree(from time.Time) {
	t.Agreed = t.opening
	ms := func(asked, byDefault int64) time.Duration {
		if asked == 0 {
			asked = byDefault
		}
		return time.Duration(asked) * time.Millisecond
	}
	longest := t.Policy.MaxDuration
	if d := t.Mode.Duration; d != nil {
		longest = max(longest, d(&t.State).Milliseconds())
	}
	if t.Agreed.parked > 0 || t.standbys > 0 { // time for a turn of each side to wait, and be taken
		longest = max(longest, min(2*t.Parked(), LongestDuration).Milliseconds())
	}
	t.duration = t.Created.Add(ms(t.Agreed.MaxDuration, longest))
	t.answerBy = from.Add(ms(t.Agreed.InvitationTimeoutMs, t.Policy.InvitationTimeout))
	if v := t.offering.Expires; !v.IsZero() && v.Before(t.answerBy) {
		t.answerBy = v
	}
}

func principal(m performatives.Member, r Role) Party {
	m = regulated(m)
	m.Authority = performatives.AuthorityPrincipal
	return Party{Member: m, Role: r, Answered: r == Inviter}
}
