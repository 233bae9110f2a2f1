package custody_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	alice = performatives.Agent("human://acme.com/alice")
)

var (
	operator = api.Caller{Operator: true}
	secret   = bytes.Repeat([]byte{7}, 32)
)

// A keeper is the custody of one broker, and its registry.
type keeper struct {
	*custody.Custody
	registry *registry.Registry
	clock    *natskit.Clock
}

func open(t *testing.T, s *natskit.Server, change ...func(*custody.Options)) keeper {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Options{Conn: s.Connect()})
	natskit.Must(t, err)
	t.Cleanup(opened.Close)
	clock := &natskit.Clock{}
	timely := func(at time.Time) error {
		if off := clock.Now().Sub(at).Abs(); off > 5*time.Minute {
			return session.Refuse(session.StaleTimestamp, "stale")
		}
		return nil
	}
	r, err := registry.Open(t.Context(), registry.Options{Store: opened, Broker: s.Signer.Key(), Now: clock.Now, Log: zap.NewNop(), Timely: timely})
	natskit.Must(t, err)
	t.Cleanup(r.Close)
	o := custody.Options{Store: opened, Registry: r, Secret: secret, Broker: s.Signer.Key(), Now: clock.Now, Timely: timely, Log: zap.NewNop()}
	for _, c := range change {
		c(&o)
	}
	c, err := custody.Open(t.Context(), o)
	natskit.Must(t, err)
	t.Cleanup(c.Close)
	return keeper{c, r, clock}
}

func (d keeper) add(t *testing.T, a performatives.Agent) performatives.Signer {
	t.Helper()
	signer := natskit.Signer(t, natskit.NewKey(t))
	_, err := d.registry.Add(t.Context(), api.Card{Agent: a, Key: signer.Key()})
	natskit.Must(t, err)
	return signer
}

func (d keeper) token(t *testing.T, q api.AddToken) api.Token {
	t.Helper()
	made, err := d.TokenAdd(t.Context(), operator, q)
	natskit.Must(t, err)
	return made
}

// bucket is all that the server has stored of the bucket.
func bucket(t *testing.T, s *natskit.Server) (all []byte) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	natskit.Must(t, err)
	kv, err := js.KeyValue(t.Context(), api.KeysBucket)
	natskit.Must(t, err)
	keys, err := kv.Keys(t.Context())
	natskit.Must(t, err)
	for _, k := range keys {
		e, err := kv.Get(t.Context(), k)
		natskit.Must(t, err)
		all = append(append(all, k...), e.Value()...)
	}
	return all
}

// GATEWAYS.md G1: a token lets in its principal and nobody else, until it is removed or
// expires, at every broker.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	one, two := open(t, s), open(t, s)
	one.add(t, alpha)
	kept := one.token(t, api.AddToken{Agent: alpha, Name: "cron", ReadOnly: true})
	short := one.token(t, api.AddToken{Agent: alpha, Lifetime: time.Hour.Milliseconds()})

	pass, err := two.Admit(t.Context(), kept.Token)
	natskit.Must(t, err)
	if pass.Agent != alpha || pass.Worker != kept.ID || !pass.ReadOnly || !pass.Expires.IsZero() {
		t.Errorf("the token lets in %+v", pass)
	}
	for _, wrong := range []string{
		"", "parley_", "parley__", kept.Token + "a", strings.TrimSuffix(kept.Token, kept.Token[len(kept.Token)-1:]), kept.Token[len("parley_"):],
		"parley_" + short.ID + kept.Token[len("parley_")+len(kept.ID):], strings.ToUpper(kept.Token), string(alpha), "parley_" + kept.ID + "_",
	} {
		if _, err := two.Admit(t.Context(), wrong); !errors.Is(err, custody.ErrToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}

	if stored := bucket(t, s); bytes.Contains(stored, []byte(strings.Split(kept.Token, "_")[2])) {
		t.Error("the bucket has the secret of a token")
	}
	if _, err = one.TokenList(t.Context(), operator, api.ListTokens{Agent: "alpha"}); !errors.Is(err, &session.Refusal{Code: session.SchemaInvalid}) {
		t.Errorf("the tokens of no URI: %v", err)
	}
	list, err := one.TokenList(t.Context(), operator, api.ListTokens{Agent: alpha})
	natskit.Must(t, err)
	if len(list.Tokens) != 2 || list.Tokens[0].Token != "" || list.Tokens[1].Token != "" {
		t.Errorf("the list is %+v", list.Tokens)
	}

	two.clock.Advance(time.Hour + time.Second)
	if _, err := two.Admit(t.Context(), short.Token); !errors.Is(err, custody.ErrToken) {
		t.Errorf("an expired token: %v", err)
	}
	if _, err := one.TokenRemove(t.Context(), operator, api.TokenRef{ID: kept.ID}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), natskit.Patience)
	defer cancel()
	select {
	case <-pass.Removed:
	case <-ctx.Done():
		t.Fatal("the other broker does not know that the token is removed")
	}
	for _, d := range []keeper{one, two} {
		if _, err := d.Admit(t.Context(), kept.Token); !errors.Is(err, custody.ErrToken) {
			t.Errorf("a removed token: %v", err)
		}
	}
	if _, err := one.TokenRemove(t.Context(), operator, api.TokenRef{ID: kept.ID}); natskit.CodeOf(err) != session.UnknownAgent {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := one.TokenRemove(t.Context(), operator, api.TokenRef{ID: "nothing"}); natskit.CodeOf(err) != session.MalformedEnvelope {
		t.Errorf("what is no id: %v", err)
	}
}

// The last use of a token is shown, at every broker.
func TestLastUse(t *testing.T) {
	t.Parallel()
	d := open(t, natskit.StartServer(t))
	d.add(t, alpha)
	made := d.token(t, api.AddToken{Agent: alpha})
	shown := func() string {
		list, err := d.TokenList(t.Context(), operator, api.ListTokens{})
		natskit.Must(t, err)
		return list.Tokens[0].LastUsed
	}
	if shown() != "" {
		t.Error("a token that nobody used has a last use")
	}
	_, err := d.Admit(t.Context(), made.Token)
	natskit.Must(t, err)
	if shown() == "" {
		t.Error("a token that was used has no last use")
	}
}

// A principal that is removed takes its tokens and its hosted key along: who is registered
// under its URI later has neither.
func TestRemovedPrincipal(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	d := open(t, s)
	d.add(t, alpha)
	made := d.token(t, api.AddToken{Agent: alpha})
	hosted, err := d.AgentHost(t.Context(), operator, api.AgentRef{Agent: alpha})
	natskit.Must(t, err)
	_, err = d.AgentRemove(t.Context(), operator, api.AgentRef{Agent: alpha})
	natskit.Must(t, err)
	d.add(t, alpha)
	if _, err := d.Admit(t.Context(), made.Token); !errors.Is(err, custody.ErrToken) {
		t.Errorf("the old token: %v", err)
	}
	if _, err := d.Signer(t.Context(), alpha); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("the old hosted key: %v", err)
	}
	again, err := d.AgentHost(t.Context(), operator, api.AgentRef{Agent: alpha})
	natskit.Must(t, err)
	if again.Registry.Devices[0].Key == hosted.Registry.Devices[0].Key {
		t.Error("the new principal has the old hosted key")
	}
}

// GATEWAYS.md G1: hosted keys are sealed at rest and shared by all brokers of an
// installation, and open nowhere else.
func TestHostedKeys(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	one, two := open(t, s), open(t, s)
	outsider := open(t, s, func(o *custody.Options) { o.Secret = bytes.Repeat([]byte{8}, 32) })
	card, err := one.AgentAdd(t.Context(), operator, api.AddAgent{Card: &api.Card{Agent: alpha}, Hosted: true})
	natskit.Must(t, err)
	if card.Key != "" || len(card.Registry.Devices) != 1 || card.Registry.Devices[0].Custody != performatives.Hosted {
		t.Fatalf("the card is %+v", card)
	}
	again, err := one.AgentHost(t.Context(), operator, api.AgentRef{Agent: alpha})
	natskit.Must(t, err)
	key := card.Registry.Devices[0].Key
	if len(again.Registry.Devices) != 1 || again.Registry.Devices[0].Key != key {
		t.Errorf("hosted again, it has %+v", again.Registry.Devices)
	}
	for _, d := range []keeper{one, two} {
		for ; ; natskit.Must(t, t.Context().Err()) { // until the watch of the registry has the card
			if k, ok := d.registry.HostedKey(alpha); ok && k == key {
				break
			}
		}
		signer, err := d.Signer(t.Context(), alpha)
		natskit.Must(t, err)
		signature, err := performatives.SignBytes(signer, []byte("x"))
		natskit.Must(t, err)
		natskit.Must(t, performatives.VerifyBytes(key, []byte("x"), signature))
	}
	if _, err := outsider.Signer(t.Context(), alpha); err == nil {
		t.Error("another installation opens the key")
	}
	if _, err := one.AgentUnhost(t.Context(), operator, api.AgentRef{Agent: alpha}); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("an agent with no other key is unhosted: %v", err)
	}
	one.add(t, beta)
	if _, err := one.Signer(t.Context(), beta); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("the broker signs for an agent that signs for itself: %v", err)
	}
	for _, change := range []func(context.Context, api.Caller, api.AgentRef) (api.Card, error){one.AgentHost, one.AgentUnhost} {
		_, err := change(t.Context(), operator, api.AgentRef{Agent: beta})
		natskit.Must(t, err)
	}
	if _, err := one.Signer(t.Context(), beta); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("the broker signs for an agent that is no longer hosted: %v", err)
	}
	one.add(t, alice)
	if _, err := one.AgentHost(t.Context(), operator, api.AgentRef{Agent: alice}); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a human is hosted: %v", err)
	}
}

// A sealed key that somebody with the store's files moves to another agent does not open.
func TestMovedKey(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	d := open(t, s)
	for _, a := range []performatives.Agent{alpha, beta} {
		_, err := d.AgentAdd(t.Context(), operator, api.AddAgent{Card: &api.Card{Agent: a}, Hosted: true})
		natskit.Must(t, err)
	}
	js, err := jetstream.New(s.Connect())
	natskit.Must(t, err)
	kv, err := js.KeyValue(t.Context(), api.KeysBucket)
	natskit.Must(t, err)
	keys, err := kv.Keys(t.Context())
	natskit.Must(t, err)
	from, err := kv.Get(t.Context(), keys[0])
	natskit.Must(t, err)
	for _, k := range keys[1:] {
		_, err = kv.Put(t.Context(), k, from.Value())
		natskit.Must(t, err)
	}
	moved := open(t, s)
	opened := 0
	for _, a := range []performatives.Agent{alpha, beta} {
		if _, err := moved.Signer(t.Context(), a); err == nil {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("%d of the two agents can be signed for, want the one whose key was not replaced", opened)
	}
}

// GATEWAYS.md G1: a principal that signs for itself gets a token by a proof, which is good
// once and at this broker.
func TestProof(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	d := open(t, s)
	signer := d.add(t, alpha)
	prove := func(change ...func(*api.ProveToken)) api.ProveToken {
		p := api.ProveToken{Agent: alpha, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Audience: s.Signer.Key()}
		for _, c := range change {
			c(&p)
		}
		signed, err := p.SigningBytes()
		natskit.Must(t, err)
		p.Signature, err = performatives.SignBytes(signer, signed)
		natskit.Must(t, err)
		return p
	}
	good := prove()
	made, err := d.Prove(t.Context(), good)
	natskit.Must(t, err)
	pass, err := d.Admit(t.Context(), made.Token)
	natskit.Must(t, err)
	if left := pass.Expires.Sub(d.clock.Now()); pass.Agent != alpha || left > time.Hour || left < 59*time.Minute {
		t.Errorf("the token lets in %+v", pass)
	}
	if _, err := d.Prove(t.Context(), good); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a proof is used twice: %v", err)
	}
	_, err = d.TokenRemove(t.Context(), operator, api.TokenRef{ID: made.ID})
	natskit.Must(t, err)
	if _, err := d.Prove(t.Context(), good); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a proof makes a removed token again: %v", err)
	}
	_, strange := d.Prove(t.Context(), prove(func(p *api.ProveToken) { p.Agent = beta }))
	forged := prove()
	forged.Signature = good.Signature
	_, wrong := d.Prove(t.Context(), forged)
	if natskit.CodeOf(strange) != session.SignatureInvalid || strange.Error() != wrong.Error() {
		t.Errorf("an outsider gets %q, and who is registered %q", strange, wrong)
	}
	for want, change := range map[session.Code]func(*api.ProveToken){
		session.SignatureInvalid:  func(p *api.ProveToken) { p.Audience = signer.Key() },
		session.StaleTimestamp:    func(p *api.ProveToken) { p.Timestamp = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano) },
		session.MalformedEnvelope: func(p *api.ProveToken) { p.Timestamp = "now" },
	} {
		if _, err := d.Prove(t.Context(), prove(change)); natskit.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
