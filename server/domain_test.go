package server_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A domain vouches for a key: the card says so as long as the agent has that key. Nobody
// but an operator vouches for another (GATEWAYS.md G5).
func TestDomainVerified(t *testing.T) {
	t.Parallel()
	s := testkit.StartServer(t)
	const agent, other performatives.Agent = "agent://acme.com/alpha", "agent://widgets.co/beta"
	keys := []performatives.Key{testkit.Signer(t, testkit.NewKey(t)).Key(), testkit.Signer(t, testkit.NewKey(t)).Key()}
	b, _ := s.OpenBroker(func(o *broker.Options) {
		o.Prove = func(_ context.Context, host string, key performatives.Key, by string) error {
			if host != "acme.com" || key != keys[0] || by != api.ByDNS {
				return errors.New("no such record")
			}
			return nil
		}
	})
	defer func() { testkit.Must(t, b.Close(t.Context())) }()
	as := func(a performatives.Agent) *client.Client {
		t.Helper()
		c, err := client.Connect(t.Context(), s.URL, a, client.Unsigned())
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	owner, stranger := as(agent), as(other)
	_, err := owner.Register(t.Context(), api.Card{Key: keys[0], DomainVerified: true, Registry: api.Registry{Domain: &api.DomainProof{Key: keys[0]}}})
	testkit.Must(t, err)
	_, err = stranger.Register(t.Context(), api.Card{})
	testkit.Must(t, err)
	verified := func(want bool) {
		t.Helper()
		card, err := stranger.Card(t.Context(), agent)
		if err != nil || card.DomainVerified != want {
			t.Errorf("domainVerified is %t: %v", card.DomainVerified, err)
		}
		found, err := stranger.SearchAgents(t.Context(), api.SearchAgents{Verified: true})
		if err != nil || len(found.Agents) > 0 != want {
			t.Errorf("a search finds %d: %v", len(found.Agents), err)
		}
		if shown := slices.Collect(b.Proposals().Agents("")); len(shown) != 2 || shown[0].DomainVerified != want { // to everybody, too
			t.Errorf("the public list has %+v", shown)
		}
	}
	verified(false)
	for _, refused := range []struct {
		by  *client.Client
		how string
	}{{owner, api.ByFile}, {owner, api.ByOperator}, {stranger, api.ByDNS}} {
		if _, err := refused.by.VerifyDomain(t.Context(), agent, refused.how); !errors.Is(err, client.Refused(session.Unauthorized)) {
			t.Errorf("%s: %v", refused.how, err)
		}
	}
	if _, err := owner.VerifyDomain(t.Context(), agent, "hearsay"); !errors.Is(err, client.Refused(session.SchemaInvalid)) {
		t.Error(err)
	}
	verified(false)
	card, err := owner.VerifyDomain(t.Context(), agent, api.ByDNS)
	if err != nil || !card.DomainVerified || card.Registry.Domain.By != api.ByDNS {
		t.Errorf("%+v %v", card, err)
	}
	verified(true)
	_, err = owner.Register(t.Context(), api.Card{Key: keys[1]})
	testkit.Must(t, err)
	verified(false)
	operator, err := client.ConnectOperator(t.Context(), s.URL, client.Unsigned())
	testkit.Must(t, err)
	defer operator.Close()
	_, err = operator.VerifyDomain(t.Context(), agent, api.ByOperator)
	testkit.Must(t, err)
	verified(true)
}
