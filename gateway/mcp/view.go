package mcpgateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	act "github.com/parley-asp/parley/performatives"
)

// Bounds of a view.
const (
	briefOffers = 2       // of what a move or a wait brings
	mostSaid    = 10      // entries
	maxBody     = 4 << 10 // bytes of an entry's body
)

// A view is a snapshot in short.
type view struct {
	Success bool               `json:"success"`
	Status  string             `json:"status"` // as of wait_for_turn
	ID      act.SessionID      `json:"negotiationId,omitzero"`
	Purpose string             `json:"purpose,omitzero"`
	Mode    string             `json:"mode,omitzero"`
	State   string             `json:"state,omitzero"`
	Head    act.Hash           `json:"head,omitzero"`
	You     api.SnapshotCaller `json:"you,omitzero"`
	Others  []act.Agent        `json:"others,omitzero"`
	Offers  []viewedOffer      `json:"offers,omitzero"` // oldest first
	Earlier int                `json:"earlierOffers,omitzero"`
	Agreed  string             `json:"agreed,omitzero"` // id of the offer
	Open    []api.OpenItem     `json:"open,omitzero"`
	Said    []viewedEntry      `json:"said,omitzero"`
	Moves   []viewedMove       `json:"moves,omitzero"`
	Due     string             `json:"deadline,omitzero"` // when the negotiation ends if nobody answers
	Outcome string             `json:"outcome,omitzero"`
	Publish jsontext.Value     `json:"publish,omitzero"`
	Consent string             `json:"consent,omitzero"`
	Private jsontext.Value     `json:"private,omitzero"`
	Cursor  api.Cursor         `json:"cursor,omitzero"`
	Next    *next              `json:"next,omitzero"`
	Notice  string             `json:"notice,omitzero"`
	Cut     string             `json:"truncated,omitzero"` // where the rest is
}

type viewedOffer struct {
	ID      string         `json:"id"`
	By      act.Agent      `json:"by"`
	Mine    bool           `json:"mine"`
	Text    string         `json:"text"`
	Terms   jsontext.Value `json:"terms,omitzero"`
	Status  string         `json:"status"`
	Expires string         `json:"expires,omitzero"`
	Binding bool           `json:"binding,omitzero"`
}

type viewedMove struct {
	Action    string          `json:"action"`
	Reference string          `json:"referenceId,omitzero"`
	Fill      []string        `json:"fill,omitempty"`
	Optional  []string        `json:"optional,omitempty"` // what it may fill besides
	Limits    []api.MoveLimit `json:"limits,omitempty"`
	Says      string          `json:"says,omitzero"`
}

// A viewedEntry is what somebody said, without what the offers show.
type viewedEntry struct {
	N    uint64         `json:"n"`
	From act.Agent      `json:"from"`
	Mine bool           `json:"mine,omitzero"`
	Act  string         `json:"performative"`
	Body jsontext.Value `json:"body,omitzero"`
}

// look is get_negotiation: the whole view.
func (c *call) look(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		ID act.SessionID `json:"negotiationId"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: q.ID})
	if err != nil {
		return result{}, err
	}
	if len(now.Others) > 0 { // else it has yet to accept a delegation
		page, err := ask(ctx, c, api.SessionMessages, api.ListMessages{Session: q.ID, Since: now.Head.N + 1 - min(now.Head.N+1, mostSaid), Limit: mostSaid})
		if err != nil {
			return result{}, err
		}
		now.News, now.Sealed = page.Messages, page.Sealed
	}
	v, err := c.viewOf(&now, false)
	return result{value: v}, err
}

// watch is wait_for_turn with a view.
func (c *call) watch(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		ID      act.SessionID `json:"negotiationId"`
		Since   api.Cursor    `json:"since"`
		Seconds *float64      `json:"seconds"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	left := api.LongestWait
	if q.Seconds != nil {
		left = time.Duration(*q.Seconds * float64(time.Second))
	}
	v, err := c.viewNext(ctx, q.ID, q.Since, left)
	return result{value: v}, err
}

// viewNext waits for what comes after a cursor, and views it.
func (c *call) viewNext(ctx context.Context, id act.SessionID, since api.Cursor, left time.Duration) (v view, err error) {
	found, err := c.await(ctx, id, since, left)
	if err != nil {
		return v, err
	}
	if found.Snapshot == nil {
		v = view{Success: true, Status: waitNone, ID: id, Cursor: found.Cursor}
		v.Next = c.wakeup(id, found.Cursor, "nothing happened yet: call it again")
		return v, nil
	}
	if v, err = c.viewOf(found.Snapshot, true); err != nil {
		return v, err
	}
	v.Cursor = found.Cursor
	if v.Status == waitNews {
		v.Next = c.wakeup(id, found.Cursor, "")
	}
	return v, nil
}

// wakeup is the next wait.
func (c *call) wakeup(id act.SessionID, since any, why string) *next {
	args := map[string]any{"since": since}
	if id != "" {
		args["negotiationId"] = id
	}
	return &next{api.TurnWait.Tool, args, why}
}

// viewOf is the view of a snapshot. A brief one has the newest offers, and moves without sentences.
func (c *call) viewOf(now *api.Snapshot, brief bool) (view, error) {
	v := view{
		Success: true, Status: waitNews, ID: now.Session, Purpose: now.Purpose, Mode: now.Mode, State: now.State.String(), Head: now.Head.Hash, You: now.You,
		Open: now.Open, Outcome: now.Outcome, Publish: now.Publish, Consent: render.Consents(now.Publish), Private: now.Private, Notice: notice,
	}
	switch {
	case now.State.Over():
		v.Status = waitOver
	case now.Waiting != nil && now.Waiting.Yours:
		v.Status, v.Due = waitTurn, now.Waiting.Deadline
	}
	for _, o := range now.Others {
		v.Others = append(v.Others, o.Agent)
	}
	offers := now.Offers
	if v.Earlier = now.Omitted; brief && len(offers) > briefOffers {
		v.Earlier += len(offers) - briefOffers
		offers = offers[len(offers)-briefOffers:]
	}
	for _, o := range offers {
		v.Offers = append(v.Offers, viewedOffer{o.ID, o.By, o.Mine, o.Text, withoutAssessment(o.Terms), o.Status, o.Expires, o.Binding})
	}
	if now.Agreed != nil {
		v.Agreed = now.Agreed.ID
	}
	for _, m := range now.Moves {
		one := viewedMove{Action: actionNamed(m), Reference: m.Reference, Fill: m.Fill, Optional: optional(m), Limits: m.Limits}
		if !brief {
			one.Says = m.Says
		} else if one.Limits = nil; slices.ContainsFunc(v.Moves, func(o viewedMove) bool { return o.Action == one.Action && o.Reference == one.Reference }) {
			continue
		}
		v.Moves = append(v.Moves, one)
	}
	if now.Truncated {
		v.Cut = "parley://session/" + string(now.Session)
	}
	if err := c.addSaid(&v, now, brief); err != nil {
		return v, err
	}
	c.shows(now.Session, now.Head.N)
	return v, nil
}

// addSaid adds what was said last; to a brief view, by the others.
func (c *call) addSaid(v *view, now *api.Snapshot, brief bool) error {
	said, err := c.entries(api.Messages{Messages: now.News, Sealed: now.Sealed})
	if err != nil {
		return err
	}
	whole := "parley://session/" + string(now.Session) + "/transcript"
	for _, e := range said {
		if brief && !e.Others {
			continue
		}
		one := viewedEntry{N: e.Sequence, From: e.From, Mine: !e.Others, Act: e.Performative}
		var body map[string]jsontext.Value
		if json.Unmarshal(e.Body, &body) == nil {
			for _, shown := range []string{"terms", "proposalId", "type", "subject", "agreementSalt", "agreementSignature"} {
				if e.Performative == act.Propose.String() || e.Performative == act.Counter.String() || strings.HasPrefix(shown, "agreement") {
					delete(body, shown)
				}
			}
			if one.Body, err = json.Marshal(body, json.Deterministic(true)); err != nil {
				return err
			}
		}
		if len(one.Body) > maxBody {
			one.Body, v.Cut = nil, whole
		}
		v.Said = append(v.Said, one)
	}
	if n := len(v.Said); n > mostSaid {
		v.Said, v.Cut = v.Said[n-mostSaid:], whole
	}
	return nil
}

// withoutAssessment is an offer's terms without what Index's agents keep there.
func withoutAssessment(terms jsontext.Value) jsontext.Value {
	var members map[string]jsontext.Value
	if json.Unmarshal(terms, &members) != nil || members["assessment"] == nil {
		return terms
	}
	delete(members, "assessment")
	plain, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return terms
	}
	return plain
}
