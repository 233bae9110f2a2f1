package client

import (
	"context"

	"github.com/parley-asp/parley/api"
)

// Insights say how the sessions went that ended in a time: of an agent its own, of a human
// who may decide those of the organisation. While Complete is false, ask again for more.
func (c *Client) Insights(ctx context.Context, q api.GetInsights) (api.Insights, error) {
	return call(ctx, &c.calls, api.InsightsGet, q)
}

// Insights say how all sessions went that ended in a time.
func (o *Operator) Insights(ctx context.Context, q api.GetInsights) (api.Insights, error) {
	return call(ctx, &o.calls, api.InsightsGet, q)
}
