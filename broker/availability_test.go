package broker_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/availability"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/test/testkit"
)

// A card shows whether its agent is online, and since when it is not: over NATS and HTTP, in
// lists and searches. What an agent says of that itself does not count.
func TestAvailability(t *testing.T) {
	t.Parallel()
	clock := &testkit.Clock{}
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0", Dev: true, Now: clock.Now})
	asks, shown := w.Client("agent://acme.com/alpha"), w.Client("agent://widgets.co/beta")
	if _, err := shown.Register(w.Ctx, api.Card{Capabilities: []string{"sell"}, Availability: []byte(`{"status":"online","lastSeen":"2099-01-01T00:00:00Z","timezone":"UTC"}`)}); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		for how, read := range map[string]func(context.Context) ([]api.Card, error){
			"agent.get": func(ctx context.Context) ([]api.Card, error) {
				card, err := asks.Card(ctx, shown.Agent())
				return []api.Card{card}, err
			},
			"agent.list": func(ctx context.Context) ([]api.Card, error) {
				page, err := client.Do(ctx, asks, api.AgentList, api.ListAgents{Organization: "widgets.co"})
				return page.Agents, err
			},
			"HTTP": func(ctx context.Context) ([]api.Card, error) {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.HTTPAddr+"/v1/asp/agents?capability=sell", nil)
				testkit.Must(t, err)
				r.Header.Set("Authorization", "Bearer agent://acme.com/alpha")
				reply, err := http.DefaultClient.Do(r)
				if err != nil {
					return nil, err
				}
				defer reply.Body.Close()
				var page api.Agents
				return page.Agents, json.UnmarshalRead(reply.Body, &page)
			},
		} {
			cards, err := read(w.Ctx)
			if err != nil || len(cards) != 1 || string(cards[0].Availability) != want {
				t.Errorf("%s: %+v %v, want %s", how, cards, err, want)
			}
		}
	}
	is(`{"status":"online","timezone":"UTC"}`)
	seen := clock.Now()
	if _, err := shown.Card(w.Ctx, shown.Agent()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(availability.OnlineFor + time.Second)
	card, err := asks.Card(w.Ctx, shown.Agent())
	testkit.Must(t, err)
	if online, last := card.Available(); online || last.Before(seen.Add(-time.Second)) || last.After(clock.Now().Add(-availability.OnlineFor)) {
		t.Errorf("a minute later: %s", card.Availability)
	}
	is(string(card.Availability))
	if _, err := shown.Card(w.Ctx, shown.Agent()); err != nil {
		t.Fatal(err)
	}
	is(`{"status":"online","timezone":"UTC"}`)
}
