package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A domain vouches for a key: the card says so as long as the agent has that key. Nobody
// but an operator vouches for another (GATEWAYS.md G5).
func TestDomainVerified(t *testing.T) {
	t.Parallel()
	s := testkit.StartServer(t)
	const agent, other performatives.Agent = "agent://acme.com/alpha", "agent://widgets.co/beta"
	keys := []performatives.Key{testkit.Signer(t, testkit.NewKey(t)).Key(), testkit.Signer(t, testkit.NewKey(t)).Key()}
	b, _ := s.OpenBroker(func(o *server.BrokerOptions) {
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
	owner, another := as(agent), as(other)
	for _, claim := range []api.Card{
		{Key: keys[0], DomainVerified: true},
		{Key: keys[0], Registry: api.Registry{Domain: &api.DomainProof{Key: keys[0]}}},
	} {
		if _, err := owner.Register(t.Context(), claim); !errors.Is(err, client.Refused(session.SchemaInvalid)) {
			t.Errorf("a card that claims its domain's word: %v", err)
		}
	}
	_, err := owner.Register(t.Context(), api.Card{Key: keys[0]})
	testkit.Must(t, err)
	_, err = another.Register(t.Context(), api.Card{})
	testkit.Must(t, err)
	verified := func(want bool) {
		t.Helper()
		card, err := another.Card(t.Context(), agent)
		if err != nil || card.DomainVerified != want {
			t.Errorf("domainVerified is %t: %v", card.DomainVerified, err)
		}
		found, err := client.Do(t.Context(), another, api.AgentSearch, api.SearchAgents{Verified: true})
		if err != nil || len(found.Agents) > 0 != want {
			t.Errorf("a search finds %d: %v", len(found.Agents), err)
		}
		if shown := slices.Collect(b.Proposals.Agents("")); len(shown) != 2 || shown[0].DomainVerified != want { // to everybody, too
			t.Errorf("the public list has %+v", shown)
		}
	}
	verified(false)
	for _, refused := range []struct {
		by  *client.Client
		how string
	}{{owner, api.ByFile}, {owner, api.ByOperator}, {another, api.ByDNS}} {
		if _, err := client.Do(t.Context(), refused.by, api.AgentVerify, api.VerifyDomain{Agent: agent, By: refused.how}); !errors.Is(err, client.Refused(session.Unauthorized)) {
			t.Errorf("%s: %v", refused.how, err)
		}
	}
	if _, err := client.Do(t.Context(), owner, api.AgentVerify, api.VerifyDomain{Agent: agent, By: "hearsay"}); !errors.Is(err, client.Refused(session.SchemaInvalid)) {
		t.Error(err)
	}
	verified(false)
	card, err := client.Do(t.Context(), owner, api.AgentVerify, api.VerifyDomain{Agent: agent, By: api.ByDNS})
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
	claims := api.Card{Agent: agent, Key: keys[1], DomainVerified: true}
	if _, err := client.Do(t.Context(), operator, api.AgentAdd, api.AddAgent{Card: &claims}); !errors.Is(err, client.Refused(session.SchemaInvalid)) || !strings.Contains(err.Error(), "agent.verify") {
		t.Errorf("an operator's card that claims the domain's word: %v", err)
	}
	verified(false)
	_, err = client.Do(t.Context(), operator, api.AgentVerify, api.VerifyDomain{Agent: agent, By: api.ByOperator})
	testkit.Must(t, err)
	verified(true)
	_, err = client.Do(t.Context(), operator, api.AgentAdd, api.AddAgent{Card: &claims}) // as it was read
	testkit.Must(t, err)
	verified(true)
}

// Each organisation has slots of its own, however many of its agents ask: many slow ones hold up no other.
func TestDomainsInTurn(t *testing.T) {
	t.Parallel()
	s := testkit.StartServer(t)
	const alpha performatives.Agent = "agent://acme.com/alpha"
	const slow, each = 6, 2 // organisations, and slots of one
	asked, goOn := make(chan string, 100), make(chan struct{})
	b, _ := s.OpenBroker(func(o *server.BrokerOptions) {
		o.Prove = func(_ context.Context, host string, _ performatives.Key, _ string) error {
			if host != string(alpha.Organisation()) {
				asked <- host
				<-goOn
			}
			return nil
		}
	})
	defer func() { testkit.Must(t, b.Close(t.Context())) }()
	verify := func(a performatives.Agent) func(context.Context) error {
		c, err := client.Connect(t.Context(), s.URL, a, client.Unsigned())
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = c.Register(t.Context(), api.Card{Key: testkit.Signer(t, testkit.NewKey(t)).Key()})
		testkit.Must(t, err)
		return func(ctx context.Context) error {
			_, err := client.Do(ctx, c, api.AgentVerify, api.VerifyDomain{Agent: a, By: api.ByFile})
			return err
		}
	}
	innocent := verify(alpha)
	var attacks sync.WaitGroup
	for n := range slow {
		for _, name := range []string{"one", "two"} {
			attack := verify(performatives.Agent(fmt.Sprintf("agent://slow%d.example/%s", n, name)))
			for range 2 {
				attacks.Go(func() { attack(t.Context()) })
			}
		}
	}
	of := map[string]int{}
	for range slow * each {
		of[<-asked]++
	}
	soon, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := innocent(soon); err != nil {
		t.Errorf("another's domain is not asked: %v", err)
	}
	if n := len(asked); n > 0 {
		t.Errorf("%d more are asked", n)
	}
	for host, n := range of {
		if n != each {
			t.Errorf("%s is asked %d times at once", host, n)
		}
	}
	close(goOn)
	attacks.Wait()
}
