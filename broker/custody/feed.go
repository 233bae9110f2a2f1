package custody

import (
	"context"
	"crypto/rand"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A feed's token stands in the URL that a calendar program reads. It reads what is due for one human,
// and lets nobody in anywhere else.

// maxFeeds are the feeds of one principal.
const maxFeeds = 10

// AddFeed makes the token of a feed; its secret is shown once.
func (c *Custody) AddFeed(ctx context.Context, a performatives.Agent) (api.Token, error) {
	if len(c.Feeds(a)) >= maxFeeds {
		return api.Token{}, session.Refuse(session.TooLarge, "you have %d feeds, and there are no more than that: remove one", maxFeeds)
	}
	id := make([]byte, idBytes)
	rand.Read(id)
	return c.make(ctx, api.Token{ID: lower.EncodeToString(id), Agent: a, Name: "calendar", ReadOnly: true, Feed: true}, "", 0)
}

// Feeds are the tokens of a principal's feeds, by id.
func (c *Custody) Feeds(a performatives.Agent) (all []api.Token) {
	now := c.o.Now()
	for _, t := range c.tokensOf(a) {
		if t.Feed && !t.over(now) {
			all = append(all, c.shown(t))
		}
	}
	return all
}

// RemoveFeed removes the token of one of a principal's own feeds.
func (c *Custody) RemoveFeed(ctx context.Context, a performatives.Agent, id string) error {
	for _, t := range c.tokensOf(a) {
		if t.Feed && t.ID == id && !t.Removed {
			return c.removeToken(ctx, t)
		}
	}
	return session.Refuse(session.UnknownAgent, "you have no feed %.40q", id)
}

// AdmitFeed finds whose feed a token reads, or returns ErrToken.
func (c *Custody) AdmitFeed(ctx context.Context, token string) (performatives.Agent, error) {
	pass, err := c.admit(ctx, token, true)
	return pass.Agent, err
}
