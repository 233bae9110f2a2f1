package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// mcpPath is where the broker's HTTP serves MCP.
const mcpPath = "/mcp"

// overMCP is pattern 6 between two assistants that speak MCP.
func overMCP() scene {
	sc := escalationToHuman()
	sc.name, sc.title = "mcp", "Escalation to a human, over MCP"
	sc.shows = "Two assistants negotiate with tools. The price exceeds the buyer's limit: it escalates, and waits for the human's ruling as for any turn."
	sc.script = func(ctx context.Context, t *talk) error {
		seller, err := t.assistant(ctx, t.cast[0])
		if err != nil {
			return err
		}
		defer seller.Close() //nolint:errcheck // each request stands for itself
		buyer, err := t.assistant(ctx, t.cast[1])
		if err != nil {
			return err
		}
		defer buyer.Close() //nolint:errcheck // the same
		return negotiateByTools(ctx, t, seller, buyer)
	}
	return sc
}

func negotiateByTools(ctx context.Context, t *talk, seller, buyer *assistant) error {
	const offer = "prop_050"
	asks := plan{Seats: 300, Support: "24/7", PricePerMonth: 15000}
	opened, err := seller.call(ctx, "open_session", map[string]any{
		"with": t.scene.opening.With, "purpose": t.scene.opening.Purpose,
	})
	if err != nil {
		return err
	}
	if opened, err = buyer.wait(ctx, opened); err != nil {
		return err
	}
	said, err := buyer.call(ctx, "accept", map[string]any{"referenceId": opened.Reference})
	if err != nil {
		return err
	}
	if _, err := seller.wait(ctx, said); err != nil {
		return err
	}
	said, err = seller.call(ctx, "propose", map[string]any{
		"proposalId": offer, "type": "service-agreement", "subject": "Enterprise plan", "terms": asks,
	})
	if err != nil {
		return err
	}
	if _, err := buyer.wait(ctx, said); err != nil {
		return err
	}
	said, err = buyer.call(ctx, "escalate", map[string]any{
		"reason": "authority-limit", "urgency": "high", "referenceId": offer,
		"context": "Proposed commitment of " + dollars(asks.PricePerMonth) + "/month exceeds my limit of $5,000/month",
	})
	if err != nil {
		return err
	}
	human := t.cast[2]
	if err := human.approve(ctx, human.Session(t.id), string(said.Message)); err != nil {
		return err
	}
	if _, err := buyer.wait(ctx, said); err != nil {
		return err
	}
	if said, err = buyer.call(ctx, "accept", map[string]any{"referenceId": offer}); err != nil {
		return err
	}
	if _, err := seller.wait(ctx, said); err != nil {
		return err
	}
	_, err = seller.call(ctx, "close", map[string]any{"summary": "Agreed on " + offer, "outcome": performatives.Completed})
	return err
}

// An assistant is an agent that calls tools.
type assistant struct {
	*mcp.ClientSession
	*talk
	as *actor
}

func (t *talk) assistant(ctx context.Context, a *actor) (*assistant, error) {
	s, err := mcp.NewClient(&mcp.Implementation{Name: "parley-demo", Version: api.Version}, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: t.stage.http + mcpPath, HTTPClient: &http.Client{Transport: bearer{a.token}}, DisableStandaloneSSE: true,
	}, nil)
	return &assistant{s, t, a}, err
}

// An answer is of the result of a tool what an assistant needs.
type answer struct {
	Session   performatives.SessionID `json:"sessionId"`
	Message   performatives.MessageID `json:"messageId"`
	Sequence  uint64                  `json:"sequenceNumber"`
	Reference string                  `json:"referenceId"`
	State     string                  `json:"state"`
	Status    string                  `json:"status"` // of a wait
	Heard     []string                `json:"heard"`
}

// call calls a tool, in the talk's session.
func (a *assistant) call(ctx context.Context, tool string, args map[string]any) (got answer, err error) {
	if tool != "open_session" {
		args["sessionId"] = a.id
	}
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return got, err
	}
	if r.IsError {
		why, _ := json.Marshal(r.Content)
		return got, fmt.Errorf("%s is refused: %s", tool, why)
	}
	data, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return got, err
	}
	a.id = got.Session
	result := got.State
	if got.Status != "" {
		result = fmt.Sprintf("%s, %s; heard would be %s", got.Status, got.State, strings.Join(got.Heard, ", "))
	}
	return got, a.did(ctx, a.as, "calls "+tool+" → "+result)
}

// wait waits for what comes after an act of the other side's, or for its own turn.
func (a *assistant) wait(ctx context.Context, after answer) (answer, error) {
	return a.call(ctx, "wait_for_turn", map[string]any{"since": after.Sequence})
}
