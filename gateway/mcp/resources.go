package mcpgateway

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Addresses of resources.
const (
	sessionURI = "parley://session/"
	schemaURI  = "parley://schema/"
	jsonType   = "application/json"
)

// maxResources are the sessions that a list of resources has.
const maxResources = 100

// callers is what no cache may give to others.
var callers = mcp.Cacheable{CacheScope: "private"}

// addResources adds sessions, their transcripts, and schemas.
func (g *server) addResources(s *mcp.Server) {
	for _, t := range []mcp.ResourceTemplate{
		{Name: "session", Title: "A session", URITemplate: sessionURI + "{id}", Description: "A session as it is now"},
		{Name: "transcript", Title: "A transcript", URITemplate: sessionURI + "{id}/transcript", Description: "What was said in a session: delivered envelopes in order, at most 200, then next"},
		{Name: "schema", Title: "A schema", URITemplate: schemaURI + "{name}", Description: "The JSON Schema of an act's body, or of terms"},
	} {
		t.MIMEType = jsonType
		s.AddResourceTemplate(&t, g.resource)
	}
	for _, p := range act.All() {
		s.AddResource(&mcp.Resource{Name: p.String(), Title: "The body of " + p.String(), URI: schemaURI + p.String(), MIMEType: jsonType}, g.resource)
	}
	s.AddReceivingMiddleware(g.listed)
}

// resource reads one.
func (g *server) resource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	ctx, cancel, c, err := g.enter(ctx, r.Extra)
	if err != nil {
		return nil, err
	}
	defer cancel()
	uri := r.Params.URI
	var data []byte
	if name, is := strings.CutPrefix(uri, schemaURI); is {
		var schema api.Schema
		schema, err = ask(ctx, c, api.SchemaGet, api.SchemaRef{Name: name})
		data = schema.Schema
	} else if id, is := strings.CutSuffix(strings.TrimPrefix(uri, sessionURI), "/transcript"); is {
		data, err = c.json(ctx, api.SessionMessages.Verb, api.ListMessages{Session: act.SessionID(id), Limit: maxEntries})
	} else {
		data, err = c.json(ctx, api.SessionGet.Verb, api.GetSession{Session: act.SessionID(id)})
	}
	if err != nil {
		refusal := c.refusal(err)
		if errors.Is(refusal, session.Busy()) {
			return nil, refusedError(refusal)
		}
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{Cacheable: callers, Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: jsonType, Text: spelt(data)}}}, nil
}

// json calls a verb, and returns the reply as it is.
func (c *call) json(ctx context.Context, verb api.Verb, request any) ([]byte, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return c.Call(ctx, verb.Name, data)
}

// listed adds the caller's newest sessions to a list of resources.
func (g *server) listed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, r)
		list, is := res.(*mcp.ListResourcesResult)
		if err != nil || !is || list.NextCursor != "" {
			return res, err
		}
		ctx, cancel, c, err := g.enter(ctx, r.GetExtra())
		if err != nil {
			return nil, err
		}
		defer cancel()
		page, err := ask(ctx, c, api.SessionList, api.ListSessions{Limit: maxResources})
		if err != nil {
			return nil, refusedError(c.refusal(err))
		}
		list.Cacheable = callers
		for _, s := range page.Sessions {
			list.Resources = append(list.Resources, &mcp.Resource{
				Name: "session " + string(s.Session), URI: sessionURI + string(s.Session), MIMEType: jsonType,
				Description: s.Mode + ", " + s.State.String() + ", opened by " + string(s.Inviter), // and nothing that others wrote
			})
		}
		return list, nil
	}
}
