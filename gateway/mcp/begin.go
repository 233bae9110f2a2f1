package mcpgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An opened is what came of open_negotiation.
type opened struct {
	Success bool          `json:"success"` // true
	ID      act.SessionID `json:"negotiationId,omitzero"`
	State   string        `json:"state,omitzero"`
	Invited []act.Agent   `json:"invited,omitzero"`
	Found   []agent       `json:"found,omitzero"` // of find, the best first
	Offer   string        `json:"offer,omitzero"` // sent, or why not
	Ref     string        `json:"referenceId,omitzero"`
	Next    *next         `json:"next,omitzero"`
	Notice  string        `json:"notice,omitzero"`
}

// What became of the first offer.
const (
	offerSent  = "sent"
	offerWaits = "not sent: it can be made once the invitation is accepted. When wait_for_turn says so, say it with respond_to_negotiation"
	offerNot   = "not sent: the invitation was not accepted"
	offerThere = "not sent again: the negotiation went on"
)

// defaultOpening is how long the first offer waits for the invitation to be accepted.
const defaultOpening = 20 * time.Second

// begin finds agents, invites them, and makes the first offer once they have accepted.
func (c *call) begin(ctx context.Context, args jsontext.Value) (result, error) {
	var q struct {
		Find    string                    `json:"find"`
		With    []act.Agent               `json:"with"`
		Purpose string                    `json:"purpose"`
		Terms   map[string]jsontext.Value `json:"terms"`
		Mode    string                    `json:"mode"`
		Message string                    `json:"message"`
		Seconds *float64                  `json:"seconds"`
		Key     string                    `json:"idempotencyKey"`
	}
	if err := read(args, &q); err != nil {
		return result{}, err
	}
	o := opened{Success: true}
	switch {
	case (q.Find == "") == (len(q.With) == 0):
		return result{}, unreadable(&act.Malformed{Path: "/with", Why: "names whom to invite, or find says a task: give one of them"})
	case q.Find == "" && q.Purpose == "":
		return result{}, unreadable(&act.Malformed{Path: "/purpose", Why: "is missing"})
	case q.Find != "" && q.Purpose != "" && q.Key != "":
		return result{}, unreadable(&act.Malformed{Path: "/" + keyMember, Why: "goes with the agents that with names: who is found may be another the next time"})
	}
	if q.Find != "" {
		var err error
		if o.Found, err = c.rank(ctx, q.Find); err != nil {
			return result{}, err
		}
		o.Notice = notice
		if q.Purpose == "" {
			o.Next = &next{openTool, map[string]any{}, "with the agents to invite, and a purpose"}
			return result{value: o}, nil
		}
		best := slices.IndexFunc(o.Found, func(a agent) bool { return a.Agent != c.Agent() && a.Accepted != nil && *a.Accepted })
		if best < 0 {
			return result{}, session.Refuse(session.UnknownAgent, "nobody was found who takes the task, and nobody was invited")
		}
		q.With = []act.Agent{o.Found[best].Agent}
		o.Found = o.Found[best : best+1]
	}
	o.Invited = q.With
	s, err := c.invite(ctx, q.With, q.Purpose, q.Mode, q.Key)
	if err != nil {
		return result{}, err
	}
	o.ID, o.State = s.Session, s.State.String()
	o.Next = c.wakeup(s.Session, s.Sequence+1, "to hear the answer")
	if q.Terms == nil {
		return result{value: o}, nil
	}
	left := defaultOpening
	if q.Seconds != nil {
		left = time.Duration(*q.Seconds * float64(time.Second))
	}
	offer := chosen{Action: "propose", Terms: q.Terms, Message: q.Message, Key: q.Key}
	return result{value: o}, c.firstOffer(ctx, &o, offer, s.Duplicate, time.Now().Add(left))
}

// rank asks agents how well a task fits them.
func (c *call) rank(ctx context.Context, task string) ([]agent, error) {
	reply, err := ask(ctx, c, api.DiscoveryCall, api.CallForProposals{Task: discovery.Task{Summary: task}, Limit: 5})
	if err != nil {
		return nil, err
	}
	found := []agent{}
	for _, one := range reply.Candidates {
		found = append(found, agent{Agent: one.Agent, Accepted: &one.Accepted, Score: &one.Score, Trust: one.Trust, Pricing: one.Pricing})
	}
	return found, nil
}

// invite opens a session.
func (c *call) invite(ctx context.Context, with []act.Agent, purpose, mode, key string) (said, error) {
	terms := object{"purpose": purpose, "participants": with}
	if mode != "" {
		terms["mode"] = mode
	}
	raw, err := json.Marshal(terms, json.Deterministic(true))
	if err != nil {
		return said{}, err
	}
	return c.say(ctx, addressed{Key: key}, act.Propose, map[string]jsontext.Value{
		"proposalId": quoted("invitation"), "type": quoted(act.SessionInvitation), "subject": quoted(purpose), "terms": raw,
	})
}

// firstOffer makes the first offer if the invitation is accepted in time. The invitation was
// sent: what goes wrong from here on is told in the result.
func (c *call) firstOffer(ctx context.Context, o *opened, offer chosen, again bool, until time.Time) error {
	o.Offer = offerWaits
	for {
		now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: o.ID})
		if err != nil {
			return nil //nolint:nilerr // the next step finds out
		}
		o.State = now.State.String()
		o.Next = c.wakeup(o.ID, now.Cursor, "to hear the answer")
		switch {
		case now.State.Over():
			o.Offer, o.Next = offerNot, nil
			return nil
		case now.State != session.Invited && again && len(now.Offers) > 0:
			o.Offer = offerThere
			return nil
		case now.State != session.Invited:
			return c.offers(ctx, o, offer, &now)
		case time.Until(until) <= 0:
			return nil
		}
		if found, err := c.await(ctx, o.ID, api.Cursor(strconv.FormatUint(now.Cursor, 10)), time.Until(until)); err != nil || found.Nothing {
			return nil //nolint:nilerr // likewise
		}
	}
}

// offers makes the first offer.
func (c *call) offers(ctx context.Context, o *opened, offer chosen, now *api.Snapshot) error {
	body, err := offer.body(act.Propose, api.Move{}, now)
	if err != nil {
		return err
	}
	key := ""
	if offer.Key != "" {
		sum := sha256.Sum256([]byte(offer.Key))
		key = "offer " + hex.EncodeToString(sum[:])
	}
	s, err := c.say(ctx, addressed{Session: o.ID, Key: key}, act.Propose, body)
	if err != nil {
		refusal := c.refusal(err)
		o.Offer = fmt.Sprintf("not sent: %s: %s", refusal.Code, refusal.Message)
		return nil
	}
	o.Offer, o.Ref, o.State = offerSent, s.Reference, s.State.String()
	o.Next = c.wakeup(o.ID, s.Sequence+1, "to hear the answer")
	return nil
}
