package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// A message may bind the next act that answers it: to some performatives, and
// to a trust score of who answers (PROTOCOL.md §3, §5).

// binding finds what binds the act: the demands of a message that it answers.
func (t *Command) binding() (string, Binding, bool) {
	if t.bound.Len() == 0 {
		return "", Binding{}, false
	}
	answers := acts[t.Act].answers
	if answers == nil {
		return "", Binding{}, false
	}
	for _, id := range answers(t) {
		b, ok := t.bound.Get(id)
		if ok && t.Message.Sender != b.by && (b.to == "" || b.to == t.Message.Sender || b.to == t.Side) {
			return id, b, true
		}
	}
	return "", Binding{}, false
}

func (t *Command) keepsBinding() error {
	_, b, bound := t.binding()
	if _, met := b.Met.Get(t.Side); !bound || met || len(b.Allowed) == 0 || slices.Contains(b.Allowed, t.Act.String()) {
		return nil
	}
	return Refuse(WrongState, "the message that you answer allows %s next, not %s", strings.Join(b.Allowed, ", "), t.Act).
		With(map[string]any{"state": t.Phase.String(), "allowedPerformatives": b.Allowed})
}

func (t *Command) trusted() error {
	_, b, bound := t.binding()
	if !bound || b.Trust == 0 {
		return nil
	}
	var score float64
	if s := t.From.TrustScore; s != nil {
		score = *s
	}
	if score >= b.Trust {
		return nil
	}
	return Refuse(InsufficientTrust, "the message that you answer asks for a trust score of %g; yours is %g", b.Trust, score).
		With(map[string]float64{"required": b.Trust, "trustScore": score})
}

// meetBinding notes that the sender's side has answered.
func (t *Command) meetBinding() {
	if id, b, bound := t.binding(); bound {
		b.Met = b.Met.With(t.Side, true)
		t.bound = t.bound.With(id, b)
		t.unawait(id)
	}
}

// answersReference is an answer to what the act's referenceId names.
func answersReference(t *Command) []string { return []string{t.Message.Body.Refers()} }

// ofQuery keeps the ids of queries, which need not be unique, apart from what a
// referenceId names: no query replaces what an offer demands.
func ofQuery(id string) string { return "query " + id }

// bind notes what the message demands of who answers it.
func (t *Command) bind() {
	c := t.Message.Constraints
	due := t.answerDue()
	if len(c.AllowedPerformatives) == 0 && c.RequiredTrustScore == nil && due.IsZero() {
		return
	}
	id := cmp.Or(t.Message.Body.ID(t.Message.ID), string(t.Message.ID))
	if t.Act == performatives.Query {
		id = ofQuery(id)
	}
	b := Binding{Allowed: c.AllowedPerformatives, by: t.Message.Sender, to: t.Message.Recipient, due: due}
	if c.RequiredTrustScore != nil {
		b.Trust = *c.RequiredTrustScore
	}
	t.unawait(id) // a query of the same id
	t.bound = t.bound.With(id, b)
	t.await(id, b)
}
