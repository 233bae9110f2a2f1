package session

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Clarify, deed{refers: clarifies, happens: clarified, answers: answersReference})

func clarifies(t *Command) error {
	body := t.Message.Body.(*performatives.ClarifyBody) //nolint:errcheck,forcetypeassert // its act says so
	if err := t.newID(string(t.Message.ID)); err != nil {
		return err
	}
	if err := t.answers(body.ReferenceID); err != nil {
		return err
	}
	var offered any
	if err := json.Unmarshal(t.Offer.Body, &offered); err != nil {
		return RefuseSchema(Fault{Path: "/referenceId", Rule: "type", Message: "the offer has no fields to ask about"})
	}
	var faults []Fault
	for i, q := range body.Questions {
		if _, _, found := performatives.Find(offered, q.Field); !found {
			faults = append(faults, Fault{
				Path: fmt.Sprintf("/questions/%d/field", i), Rule: "field",
				Message: fmt.Sprintf("%q is no path into the body of %q", q.Field, t.Offer.ID),
			})
		}
	}
	if len(faults) > 0 {
		return RefuseSchema(faults...)
	}
	return nil
}

func clarified(t *Command) {
	body := t.Message.Body.(*performatives.ClarifyBody) //nolint:errcheck,forcetypeassert // its act says so
	q := &Question{ID: string(t.Message.ID), Offer: t.Offer.ID, By: t.Side, Sequence: t.Next}
	for _, asked := range body.Questions {
		if !slices.Contains(q.Open, asked.Field) {
			q.Open = append(q.Open, asked.Field)
		}
		if asked.Strict || t.Before(3) {
			q.offers(asked)
		}
	}
	t.questions, t.asking = t.questions.With(q.ID, q), t.asking.With(q.ID, true)
	t.change(t.Offer.ID, func(o *Offer) {
		o.questions, o.moved, o.movedAt = o.questions.With(q.ID, true), t.Next, t.Now
	})
}

// answerQuestion leaves only the fields that are still open; a clarification
// without any pauses its offer no longer.
func (t *Command) answerQuestion(q Question, open []string) {
	q.Open = open
	if len(open) == 0 {
		q.options, t.asking = nil, t.asking.Without(q.ID)
		t.unawait(q.ID)
	}
	t.questions = t.questions.With(q.ID, &q)
	if len(open) == 0 {
		t.change(q.Offer, func(o *Offer) {
			o.questions, o.moved, o.movedAt = o.questions.Without(q.ID), t.Next, t.Now
		})
	}
}
