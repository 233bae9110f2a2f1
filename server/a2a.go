package server

import (
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

// pushTimeout is how long a webhook of a client has to answer.
const pushTimeout = 10 * time.Second

// a2a is the gateway by which clients of A2A reach hosted agents.
func (s *Server) a2a(o Options, public addressLimiter) *a2agateway.Gateway {
	private := o.PrivateWebhooks || s.Broker.Options.Dev
	return a2agateway.New(a2agateway.Options{
		Service: s.Broker.Service, Records: s.Broker.A2ARecords, Served: s.servesA2A,
		Owns: func(id performatives.SessionID) bool {
			_, elsewhere := s.Broker.Parts.Members.Owner(id)
			return !elsewhere
		},
		CheckURL: func(url string) error { return publicnet.Check(url, private) },
		Allow:    public.allow, URL: o.HTTPURL, Push: publicnet.Client(pushTimeout, private),
		Version: api.Version,
	})
}

// servesA2A finds the card of an agent that clients of A2A reach.
func (s *Server) servesA2A(a performatives.Agent) (api.Card, bool) {
	card, known := s.Broker.Parts.Registry.Card(a)
	_, held := s.Broker.Parts.Registry.KeysOf(a)
	return card, known && card.A2A && (held != "" || s.Broker.Options.Dev)
}

// a2aCard is where an agent's A2A card is, "" for one that A2A does not reach.
func (s *Server) a2aCard(card api.Card) string {
	if !card.A2A {
		return ""
	}
	if _, served := s.servesA2A(card.Agent); !served {
		return ""
	}
	return strings.TrimPrefix(a2agateway.Base, "/") + card.Agent.Token() + "/" + a2agateway.CardPath
}

// remotes talk to agents that speak A2A elsewhere.
func (s *Server) remotes(o Options, gateway *a2agateway.Gateway) *a2agateway.Remotes {
	return a2agateway.NewRemotes(a2agateway.RemoteOptions{
		Gateway: gateway, Private: o.PrivateWebhooks || s.Broker.Options.Dev, Agents: s.Broker.Parts.Registry.RemoteAgents,
	})
}
