package httpgateway

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/calls"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A sessionReader reads a session's entries in order, with the states that they bring about.
type sessionReader struct {
	c     *call
	from  uint64 // the sequence number of the first entry wanted
	next  uint64 // of the next entry that is read
	state string // after the entry before
}

// received is what a stream needs of an entry.
type received struct {
	Sequence  uint64 `json:"sequenceNumber"`
	Integrity struct {
		Receipt performatives.Receipt `json:"receipt"`
	} `json:"integrity"`
}

// A stateChange is the data of session_state.
type stateChange struct {
	State    string `json:"state"`
	Previous string `json:"previous"`
	At       string `json:"timestamp"`
}

// first finds where to begin; over means that no entry comes any more.
func (r *sessionReader) first(ctx context.Context) (over bool, err error) {
	var page api.Messages
	request := api.ListMessages{Session: r.c.session(), Since: max(r.from, 1) - 1, Limit: 1}
	r.state = session.Idle.String()
	if err := r.c.ask(ctx, api.SessionMessages.Verb, request, &page); err != nil || r.from == 0 {
		return false, err
	}
	if len(page.Messages) == 0 { // from is beyond the end: what comes before it is read for its state
		var view api.SessionView
		if err := r.c.ask(ctx, api.SessionGet.Verb, api.GetSession{Session: r.c.session()}, &view); err != nil {
			return false, err
		}
		if view.Head.Sequence != nil {
			r.next, r.state = *view.Head.Sequence+1, view.State.String()
		}
		return view.State.Over(), nil
	}
	var entry received
	err = json.Unmarshal(page.Messages[0], &entry)
	r.next, r.state = r.from, entry.Integrity.Receipt.State
	return isOver(r.state), err
}

func isOver(state string) bool {
	phase, _ := session.ParsePhase(state)
	return phase.Over()
}

// read emits the entries that are there. changed is nil for an entry that leaves the state as it is.
func (r *sessionReader) read(ctx context.Context, emit func(changed *stateChange, entry received, data jsontext.Value) error) (over bool, err error) {
	for more := true; more; {
		var page api.Messages
		if err := r.c.ask(ctx, api.SessionMessages.Verb, api.ListMessages{Session: r.c.session(), Since: r.next, Limit: eventPage}, &page); err != nil {
			return false, err
		}
		for _, m := range page.Messages {
			var entry received
			if err := json.Unmarshal(m, &entry); err != nil {
				return false, err
			}
			receipt := entry.Integrity.Receipt
			var changed *stateChange
			if receipt.State != r.state {
				changed = &stateChange{receipt.State, r.state, receipt.AcceptedAt}
			}
			if entry.Sequence >= r.from {
				if err := emit(changed, entry, m); err != nil {
					return false, err
				}
			}
			r.next, r.state = entry.Sequence+1, receipt.State
			if isOver(r.state) {
				return true, nil
			}
		}
		more = page.Next != nil
	}
	return false, nil
}

// ask calls a verb and reads its reply.
func (c *call) ask(ctx context.Context, verb api.Verb, request, reply any) error {
	return calls.As(ctx, c.g.o.Broker, c.pass.Agent, verb, request, reply)
}
