package mcpgateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/signing"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A crossed caller's next snapshot is asked for after meanwhile.
type crossed struct {
	mcpgateway.Caller
	meanwhile *func()
}

func (c crossed) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	if do := *c.meanwhile; do != nil && verb == api.SessionSnapshot.Name {
		*c.meanwhile = nil
		do()
	}
	return c.Caller.Call(ctx, verb, request)
}

// Models call several tools in one step: an answer was decided on before what another of them shows.
func TestMCPCallsThatCross(t *testing.T) {
	t.Parallel()
	const alpha, beta = performatives.Agent("agent://acme.com/alpha"), performatives.Agent("agent://widgets.co/beta")
	w := testkit.NewWorld(t, testkit.Options{})
	w.Principal(alpha)
	w.Principal(beta)
	id := w.Open(w.Principal(alpha), w.Principal(beta))
	vendor := w.Client(beta).Session(id)
	offers := func(proposal string, price int) {
		_, err := vendor.Propose(w.Ctx, client.Proposal{ID: proposal, Type: "service-agreement", Subject: "cups", Terms: map[string]any{"price": price}})
		testkit.Must(t, err)
	}
	offers("p1", 50)

	var meanwhile func()
	here, there := mcp.NewInMemoryTransports()
	go mcpgateway.New(mcpgateway.Options{Caller: mcpgateway.Only(crossed{signing.New(w.Client(alpha)), &meanwhile})}).Run(w.Ctx, there) //nolint:errcheck // it ends with the test
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(w.Ctx, here, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close() })
	buyer := assistant{world{w}, s}
	read, accept := anything{"negotiationId": id}, anything{"negotiationId": id, "action": "accept"}
	buyer.does("get_negotiation", read, nil)
	offers("p2", 900)
	meanwhile = func() { buyer.does("get_negotiation", read, nil) }
	if text := textOf(buyer.refused("respond_to_negotiation", "chain_conflict", accept)); !strings.Contains(text, `"price":900`) {
		t.Errorf("it is refused without the offer: %s", text)
	}
	buyer.does("respond_to_negotiation", accept, nil)
}
