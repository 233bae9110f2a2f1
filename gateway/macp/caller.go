package macpgateway

import (
	"cmp"
	"context"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/metadata"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A caller is who a call is for, and what MACP calls it.
type caller struct {
	gateway.Caller

	name string
}

// maxName is the length of a sender's name.
const maxName = 128

// enter finds whom a call is for. Under --dev any bearer is a sender, as MACP's runtime has it.
func (g *Gateway) enter(ctx context.Context) (c caller, err error) {
	if known, is := ctx.Value(callerKey{}).(caller); is {
		return known, nil
	}
	given := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(given) != 1 {
		return c, custody.ErrToken
	}
	bearer := custody.Bearer(given[0])
	if a, is := g.named(bearer); g.o.Service.Dev && is {
		c = caller{g.o.Service.As(a), bearer}
		return c, c.Metered(ctx)
	}
	c.Caller, err = g.o.Service.Admit(ctx, bearer)
	c.name = cmp.Or(c.Sender, g.nameOf(c.Agent))
	return c, err
}

// acting is enter for a call that changes something.
func (g *Gateway) acting(ctx context.Context) (caller, error) {
	c, err := g.enter(ctx)
	if err == nil && c.ReadOnly {
		err = problem{forbidden, "the token is read-only"}
	}
	return c, err
}

// Under --dev, a name that is no URI and nobody's macp_sender is of an agent of this host.
const (
	devHost = "agent://macp.local/"
	escaped = "x--" // begins the hex of a name that is no path segment
)

var segment = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// named is the principal that MACP knows by a name.
func (g *Gateway) named(name string) (performatives.Agent, bool) {
	if strings.HasPrefix(name, "parley_") || name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return "", false
	}
	if a, known := g.o.Sender(name); known {
		return a, true
	}
	uri := name
	if _, err := performatives.ParseAgent(name); err != nil {
		if !g.o.Service.Dev {
			return "", false
		}
		if !segment.MatchString(name) || strings.HasPrefix(name, escaped) {
			name = escaped + hex.EncodeToString([]byte(name))
		}
		uri = devHost + name
	}
	a, err := performatives.ParseAgent(uri)
	return a, err == nil
}

// nameOf is what MACP calls a principal, outside a session that was started with another name.
func (g *Gateway) nameOf(a performatives.Agent) string {
	if card, known := g.o.Card(a); known && card.MACPSender != "" {
		return card.MACPSender
	}
	name, local := strings.CutPrefix(string(a), devHost)
	if !local || !g.o.Service.Dev {
		return string(a)
	}
	if coded, is := strings.CutPrefix(name, escaped); is {
		if raw, err := hex.DecodeString(coded); err == nil {
			return string(raw)
		}
	}
	return name
}

// meet registers, under --dev, a principal that MACP names for the first time: it is met here.
func (g *Gateway) meet(ctx context.Context, a performatives.Agent) error {
	if _, known := g.o.Card(a); known || !g.o.Service.Dev {
		return nil
	}
	card := &api.Card{Agent: a, MACP: true}
	return g.o.Service.As(a).Call(ctx, api.AgentRegister.Verb, api.RegisterAgent{Card: card}, &api.Card{})
}

// view is a session as the caller sees it.
func (c caller) view(ctx context.Context, id performatives.SessionID) (v view, err error) {
	if v.SessionView, err = c.View(ctx, id); err != nil {
		return v, err
	}
	if v.Mode != mode {
		return v, session.Refuse(session.UnknownSession, "there is no such session in this mode")
	}
	return v, json.Unmarshal(v.ModePart, &v.part)
}

// A view is a session's, with what its mode adds.
type view struct {
	api.SessionView
	part struct {
		Projection struct {
			Accepted string `json:"acceptedProposal"`
			Phase    string `json:"phase"`
		} `json:"projection"`
	}
}
