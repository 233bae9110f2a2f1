package httpgateway

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/session"
)

// A sessionReader reads a session's entries in order, with the states that they bring about.
type sessionReader struct {
	c     *call
	from  uint64 // the sequence number of the first entry wanted
	seen  bool   // the client has seen the entry before
	state string // after the entry before
	feed  *gateway.Feed
}

// A stateChange is the data of session_state.
type stateChange struct {
	State    string `json:"state"`
	Previous string `json:"previous"`
	At       string `json:"timestamp"`
}

// open finds where to begin; over means that no entry comes any more.
func (r *sessionReader) open(ctx context.Context) (changed <-chan struct{}, stop func(), over bool, err error) {
	if r.feed, err = r.c.Follow(ctx, r.c.session(), 0); err != nil {
		return nil, nil, false, err
	}
	if over, err = r.first(ctx); err != nil {
		r.feed.Close()
	}
	return r.feed.Changed, r.feed.Close, over, err
}

func (r *sessionReader) first(ctx context.Context) (over bool, err error) {
	r.state = session.Idle.String()
	page, err := r.c.Messages(ctx, api.ListMessages{Session: r.c.session(), Since: max(r.from, 1) - 1, Limit: 1})
	if err != nil || r.from == 0 {
		return false, err
	}
	if len(page.Messages) == 0 { // from is beyond the end: what comes before it is read for its state
		view, err := r.c.View(ctx, r.c.session())
		if err == nil && view.Head.Sequence != nil {
			r.feed.Next, r.state = *view.Head.Sequence+1, view.State.String()
		}
		if r.seen { // in the store before it was restored
			r.from = r.feed.Next
		}
		return view.State.Over(), err
	}
	var e gateway.Entry
	err = json.Unmarshal(page.Messages[0], &e)
	r.feed.Next, r.state = r.from, e.Integrity.Receipt.State
	return isOver(r.state), err
}

func isOver(state string) bool {
	phase, _ := session.ParsePhase(state)
	return phase.Over()
}

// read emits the entries that are there. changed is nil for an entry that leaves the state as it is.
func (r *sessionReader) read(ctx context.Context, emit func(changed *stateChange, e gateway.Entry) error) (over bool, err error) {
	return r.feed.Read(ctx, func(e gateway.Entry) (bool, error) {
		receipt := e.Integrity.Receipt
		var changed *stateChange
		if receipt.State != r.state {
			changed = &stateChange{receipt.State, r.state, receipt.AcceptedAt}
		}
		if e.Sequence >= r.from {
			if err := emit(changed, e); err != nil {
				return false, err
			}
		}
		r.state = receipt.State
		return isOver(r.state), nil
	})
}
