package natsgateway

import (
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

const (
	pulls = "$JS.API.CONSUMER.MSG.NEXT."
	infos = "$JS.API.CONSUMER.INFO."

	// infoCosts is how many pulls the server could answer in the time that information on a consumer takes.
	infoCosts = 4
)

// openAsked begins to receive a copy of what principals ask of JetStream, which answers by itself. Of all brokers, one
// receives each. They have a connection of their own, so that nothing waits behind a flood of them.
func (g *Gateway) openAsked() error {
	for n := range max(1, g.o.Shards) {
		stream := api.ShardName(api.InboxStream, n)
		for subject, count := range map[string]func(performatives.Agent){
			pulls + stream + ".*": func(a performatives.Agent) { g.o.Seen(a); g.countFlood(a, 1) },
			infos + stream + ".*": func(a performatives.Agent) { g.countFlood(a, infoCosts) },
		} {
			s, err := g.o.Asked.QueueSubscribe(subject, api.ServiceName, func(m *nats.Msg) {
				if a, ok := asker(m.Subject); ok {
					count(a)
				}
			})
			if err != nil {
				return err
			}
			g.asked = append(g.asked, s)
		}
	}
	return g.o.Asked.Flush()
}

// ignoreAsked stops receiving those copies.
func (g *Gateway) ignoreAsked() {
	for _, s := range g.asked {
		_ = s.Unsubscribe() // fails only if it has ended
	}
}

// asker is whose consumer a subject ends with: the one of an inbox, or of one session of it. No other may ask for it.
func asker(subject string) (performatives.Agent, bool) {
	consumer := subject[strings.LastIndexByte(subject, '.')+1:]
	token, _, _ := strings.Cut(consumer, "+")
	a, err := performatives.ParseToken(token)
	return a, err == nil
}
