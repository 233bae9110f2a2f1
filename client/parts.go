package client

import (
	"context"
	"iter"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// ViewPart returns one page of a part of a session's view, such as proposals; the
// page has that list and Next, the cursor of the next page.
func (c *calls) ViewPart(ctx context.Context, page api.GetSession) (api.SessionView, error) {
	return call(ctx, c, api.SessionGet, page)
}

// partOf goes through the pages of a part.
func partOf[E any](ctx context.Context, c *calls, id performatives.SessionID, part string, of func(api.SessionView) []E) iter.Seq2[E, error] {
	return pages(func(cursor string) (api.SessionView, error) {
		return c.ViewPart(ctx, api.GetSession{Session: id, Part: part, Limit: api.MaxPage, Cursor: cursor})
	}, func(v api.SessionView) ([]E, string) { return of(v), v.Next })
}

// Participants are all parties of a session, however many there are. An error ends them.
func (c *calls) Participants(ctx context.Context, id performatives.SessionID) iter.Seq2[api.PartyView, error] {
	return partOf(ctx, c, id, "participants", func(v api.SessionView) []api.PartyView { return v.Participants })
}

// Proposals are all proposals of a session in the order of the transcript. An error ends them.
func (c *calls) Proposals(ctx context.Context, id performatives.SessionID) iter.Seq2[api.OfferView, error] {
	return partOf(ctx, c, id, "proposals", func(v api.SessionView) []api.OfferView { return v.Proposals })
}

// Commitments are all commitments of a session in the order of the transcript. An error ends them.
func (c *calls) Commitments(ctx context.Context, id performatives.SessionID) iter.Seq2[api.OfferView, error] {
	return partOf(ctx, c, id, "commitments", func(v api.SessionView) []api.OfferView { return v.Commitments })
}

// Delegations are all delegations of a session in the order of the transcript. An error ends them.
func (c *calls) Delegations(ctx context.Context, id performatives.SessionID) iter.Seq2[api.GrantView, error] {
	return partOf(ctx, c, id, "delegations", func(v api.SessionView) []api.GrantView { return v.Delegations })
}
