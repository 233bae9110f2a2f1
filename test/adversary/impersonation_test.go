package adversary

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// Impersonation: to be taken for somebody else, at the login, in an envelope, in the registry,
// or as the human who decides.

func TestImpersonationAtLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, victim := w.Principal(eve), w.Principal(alpha)
	outsider, err := nkeys.CreateUser()
	testkit.Must(t, err)
	account, err := nkeys.CreateAccount()
	testkit.Must(t, err)
	public := func(k nkeys.KeyPair) string {
		key, err := k.PublicKey()
		testkit.Must(t, err)
		return key
	}
	login := testkit.LoginOf(t, victim.Key)
	alphas, operators, brokers := public(login), public(w.Operator()), string(w.Server.Broker.Command.Key())
	var caught []byte // alpha's signature of a nonce of before
	_, err = victim.Dial(nats.Nkey(alphas, func(nonce []byte) ([]byte, error) {
		caught, err = login.Sign(nonce)
		return caught, err
	}))
	testkit.Must(t, err)
	w.harmless(func() {
		for name, how := range map[string]nats.Option{
			"nothing":                        nats.Name("nobody"),
			"a key that nobody registered":   nats.Nkey(public(outsider), outsider.Sign),
			"an account's key":               nats.Nkey(public(account), account.Sign),
			"the key that alpha signs with":  nats.Nkey(string(victim.Signer.Key()), victim.Key.Sign),
			"alpha's key, my signature":      nats.Nkey(alphas, p.Key.Sign),
			"alpha's key, its old signature": nats.Nkey(alphas, func([]byte) ([]byte, error) { return caught, nil }),
			"alpha's key, no signature":      nats.Nkey(alphas, func([]byte) ([]byte, error) { return nil, nil }),
			"alpha's key, zeros":             nats.Nkey(alphas, func([]byte) ([]byte, error) { return make([]byte, 64), nil }),
			"the operator's key":             nats.Nkey(operators, p.Key.Sign),
			"the broker's key":               nats.Nkey(brokers, p.Key.Sign),
			"alpha as a user":                nats.UserInfo(alpha.Token(), ""),
			"alpha's user name":              nats.UserInfo(alpha.Token()+"/"+alphas, alphas),
			"the key as a user":              nats.UserInfo(alphas, alphas),
			"the key as a token":             nats.Token(alphas),
			"the user of development":        nats.UserInfo("dev", ""),
			"the operator by name":           nats.UserInfo("operator", "operator"),
			"a user of my own making":        nats.UserJWTAndSeed(forgedUser(t, outsider, account), seed(t, outsider)),
		} {
			if nc, err := p.Dial(how); !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("%s: %v, want %v", name, err, nats.ErrAuthorization)
				if err == nil {
					nc.Close()
				}
			}
		}
	})
}

// TestImpersonationInEnvelope says in one's own name, or with one's own key, what another
// should have said.
func TestImpersonationInEnvelope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, victim, party := w.Principal(eve), w.Principal(alpha), w.Principal(beta)
	accept := &performatives.AcceptBody{ReferenceID: "p1"}
	genuine := string(victim.Envelope(w.deal, accept)) // alpha has never sent it
	as := func(a performatives.Agent) func(*performatives.Draft) {
		return func(d *performatives.Draft) { d.Sender = a }
	}
	w.harmless(func() {
		for name, c := range map[string]struct {
			by   *testkit.Principal
			data string
			code session.Code
		}{
			"alpha's envelope, from beta":            {party, genuine, session.Unauthorized},
			"alpha's envelope, from an outsider":     {p, genuine, session.Unauthorized},
			"alpha as sender, my key":                {party, string(party.Envelope(w.deal, accept, as(alpha))), session.Unauthorized},
			"the broker as sender":                   {party, string(party.Envelope(w.deal, &performatives.CloseBody{}, as(performatives.BrokerAgent(w.Server.Broker.Command.Key())))), session.Unauthorized},
			"alpha's name on beta's organisation":    {party, string(party.Envelope(w.deal, accept, as("agent://widgets.co/procurement/alpha"))), session.Unauthorized},
			"alpha's envelope with my name on it":    {p, strings.ReplaceAll(genuine, string(alpha), string(eve)), session.SignatureInvalid},
			"alpha's envelope with beta's name":      {party, strings.ReplaceAll(genuine, string(alpha), string(beta)), session.SignatureInvalid},
			"in alpha's organisation's name":         {p, string(p.Envelope(w.deal, accept, func(d *performatives.Draft) { d.OrgID = "acme.com" })), session.UnknownSession},
			"on behalf of alpha, as the broker does": {p, inIntegrity(p, w.deal, `"onBehalfOf":"`+string(alpha)+`"`), session.MalformedEnvelope},
			"joined, as the broker does":             {p, inIntegrity(p, w.deal, `"joined":[{"agentId":"`+string(eve)+`","authority":"decide"}]`), session.MalformedEnvelope},
			"another's key signs for me":             {p, string((&testkit.Principal{TB: t, Agent: eve, Signer: victim.Signer}).Envelope(w.deal, accept)), session.SignatureInvalid},
		} {
			want(t, name, c.by.Submit(w.deal, []byte(c.data)), c.code)
		}
	})
}

// TestImpersonationInRegistry takes over a name, or a key, in the registry.
func TestImpersonationInRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, victim := w.Principal(eve), w.Principal(alpha)
	operator := w.Operates()
	w.harmless(func() {
		for name, c := range map[string]struct {
			verb, request string
			code          session.Code
		}{
			"alpha's card":            {api.AgentRegister.Name, card(alpha, p.Signer.Key()), session.Unauthorized},
			"alpha's key in my card":  {api.AgentRegister.Name, card(eve, victim.Signer.Key()), session.Unauthorized},
			"the broker's key":        {api.AgentRegister.Name, card(eve, w.Server.Broker.Command.Key()), session.Unauthorized},
			"what an operator does":   {api.AgentAdd.Name, card(alpha, p.Signer.Key()), session.MalformedEnvelope},
			"removal, by no operator": {api.AgentRemove.Name, fmt.Sprintf(`{"agentId":%q}`, alpha), session.MalformedEnvelope},
			"no key of any kind":      {api.AgentRegister.Name, fmt.Sprintf(`{"card":{"agentId":%q,"key":"x"}}`, eve), session.Unauthorized},
		} {
			want(t, name, p.Call(c.verb, c.request), c.code)
		}
		again := "agent://acme.com/twin"
		m := operator.Request(api.OperatorCall(api.AgentAdd.Name), []byte(card(performatives.Agent(again), victim.Signer.Key())))
		want(t, "the key of a second principal", m, session.Duplicate)
		for name, own := range w.ownKeys() {
			for what, m := range map[string]*nats.Msg{
				"an agent of": operator.Request(api.OperatorCall(api.AgentAdd.Name), []byte(card("agent://acme.com/new", own))),
				"a human of":  operator.Request(api.OperatorCall(api.AgentAdd.Name), []byte(card("human://acme.com/new", own))),
				"alpha gets":  operator.Request(api.OperatorCall(api.AgentRotate.Name), fmt.Appendf(nil, `{"agentId":%q,"key":%q}`, alpha, own)),
				"I take":      p.Call(api.AgentRotate.Name, rotation(t, p.Signer, eve, own)),
				"a JWT for":   p.Call(api.AgentJWT.Name, fmt.Sprintf(`{"key":%q}`, own)),
			} {
				want(t, what+" "+name, m, session.Duplicate)
			}
		}
		want(t, "a key that I do not have", p.Call(api.AgentRotate.Name, rotation(t, p.Signer, eve, newSigner(t).Key())), session.SignatureInvalid)
	})
	// What it does register of itself gives it nothing: the registry's part is not its own.
	m := p.Call(api.AgentRegister.Name, `{"card":{"registry":{"trustScore":100,"mayDecide":true},"organization":"acme.com","maxTransactionValue":1e9}}`)
	if text := string(m.Data); strings.Contains(text, `"trustScore"`) || strings.Contains(text, `"mayDecide"`) {
		t.Errorf("a card has claimed %s", text)
	}
}

func card(a performatives.Agent, k performatives.Key) string {
	return fmt.Sprintf(`{"card":{"agentId":%q,"key":%q}}`, a, k)
}

// TestImpersonationOfHuman claims the ruling on an escalation (PROTOCOL.md §7).
func TestImpersonationOfHuman(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Principal(alpha).Say(w.deal, &performatives.DelegateBody{TargetAgent: delta, Scope: "law", Authority: "full"})
	w.Principal(delta).Say(w.deal, testkit.Fact("I am here"))
	escalation := w.Principal(alpha).Say(w.deal, &performatives.EscalateBody{
		Reason: "authority-limit", Urgency: "high", Context: []byte(`"15000"`), ReferenceID: "p1",
	}).Message
	word := testkit.Ruling(escalation, "approved")
	acme := func(d *performatives.Draft) { d.OrgID = "acme.com" }
	w.harmless(func() {
		for name, c := range map[string]struct {
			by   performatives.Agent
			data []byte
			code session.Code
		}{
			"the agent that asked":           {alpha, w.Principal(alpha).Envelope(w.deal, word), session.SessionEscalated},
			"its delegate":                   {delta, w.Principal(delta).Envelope(w.deal, word), session.SessionEscalated},
			"the counterparty":               {beta, w.Principal(beta).Envelope(w.deal, word), session.SessionEscalated},
			"the counterparty closes":        {beta, w.Principal(beta).Envelope(w.deal, &performatives.CloseBody{Outcome: "completed"}), session.SessionEscalated},
			"a human who may not decide":     {carol, w.Principal(carol).Envelope(w.deal, word), session.UnknownSession},
			"another organisation's human":   {bob, w.Principal(bob).Envelope(w.deal, word), session.UnknownSession},
			"one whose name begins alike":    {mallory, w.Principal(mallory).Envelope(w.deal, word), session.UnknownSession},
			"one who says it is of acme":     {mallory, w.Principal(mallory).Envelope(w.deal, word, acme), session.UnknownSession},
			"an outsider":                    {eve, w.Principal(eve).Envelope(w.deal, word), session.UnknownSession},
			"alice's name, the agent's key":  {alpha, (&testkit.Principal{TB: t, Agent: alice, Signer: w.Principal(alpha).Signer}).Envelope(w.deal, word), session.Unauthorized},
			"alice's own envelope, by alpha": {alpha, w.Principal(alice).Envelope(w.deal, word), session.Unauthorized},
		} {
			want(t, name, w.Principal(c.by).Submit(w.deal, c.data), c.code)
		}
	})
	w.Principal(alice).Say(w.deal, word)
	w.harmless(func() {
		// The session has resumed: it is still no agent's to say.
		want(t, "an agent, later", w.Principal(alpha).Submit(w.deal, w.Principal(alpha).Envelope(w.deal, word)), session.Unauthorized)
		want(t, "a counterparty, later", w.Principal(beta).Submit(w.deal, w.Principal(beta).Envelope(w.deal, word)), session.Unauthorized)
		other := &performatives.InformBody{Type: performatives.Resolution, Data: fmt.Appendf(nil, `{"escalationId":%q,"decision":"denied"}`, escalation)}
		want(t, "another decision, too late", w.Principal(alice).Submit(w.deal, w.Principal(alice).Envelope(w.deal, other)), session.EscalationResolved)
	})
}

// TestOperatorSpeaksForNobody: who runs the broker sees, and takes no part.
func TestOperatorSpeaksForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operator := w.Operates()
	w.harmless(func() {
		for _, a := range []performatives.Agent{alpha, alice} {
			if subject := api.Submit(a, w.deal); !w.isDenied(operator, subject, "") {
				t.Errorf("the operator may publish %s", subject)
			}
		}
		for _, verb := range []string{"session.submit", "session.close", "session.delete", "session.append", "escalation.resolve", "no.verb"} {
			want(t, verb, operator.Request(api.OperatorCall(verb), []byte(fmt.Sprintf(`{"sessionId":%q}`, w.deal))), session.MalformedEnvelope)
		}
	})
}
