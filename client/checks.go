package client

import (
	"context"
	"iter"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Checks are all that the filter selects; its Limit is the length of a page. An
// error ends them.
func (c *Client) Checks(ctx context.Context, filter api.ListChecks) iter.Seq2[api.Check, error] {
	return pages(func(cursor string) (api.Checks, error) {
		filter.Cursor = cursor
		return call(ctx, &c.Calls, api.CheckList, filter)
	}, func(p api.Checks) ([]api.Check, string) { return p.Checks, p.Next })
}

// Check is what was delegated to the client's principal in one session. Once it
// has joined, it has the offer at stake too.
func (c *Client) Check(ctx context.Context, id performatives.SessionID) (api.Check, error) {
	return call(ctx, &c.Calls, api.CheckGet, api.SessionRef{Session: id})
}

// A Finding is the result of a check.
type Finding struct {
	Assessment string   `json:"assessment"` // such as compliant or non-compliant
	Details    string   `json:"details"`
	Conditions []string `json:"conditions"`
	Offer      string   `json:"referenceId,omitzero"` // the offer that was checked
}

// Report sends the result of a check to the session.
func (s *Session) Report(ctx context.Context, f Finding, options ...ActOption) (Receipt, error) {
	if f.Conditions == nil {
		f.Conditions = []string{}
	}
	return s.Inform(ctx, performatives.Result, f, options...)
}
