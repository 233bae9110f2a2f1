package session

import (
	"slices"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Inform, deed{refers: informs, happens: informed, answers: answersQuestions})

func informs(t *Command) error {
	ruling, ok := t.ruling()
	if !ok {
		return nil
	}
	if _, known := t.items.Get(escalation.ID(ruling.EscalationID)); !known {
		return unknownReference(ruling.EscalationID, "escalation")
	}
	return nil
}

func informed(t *Command) {
	if ruling, ok := t.ruling(); ok {
		t.ruled(ruling)
		return
	}
	if effect := t.Mode.Effects[performatives.Inform]; effect != nil {
		effect(t)
		return
	}
	for _, a := range t.settles {
		t.settleQuestion(a.question, a.open)
	}
}

// answersQuestions are the questions that the INFORM answers, under whichever id
// it names them, or a query.
func answersQuestions(t *Command) []string {
	var ids []string
	for _, a := range t.settles {
		ids = append(ids, a.question.ID)
	}
	if inform, ok := t.Message.Body.(*performatives.InformBody); ok {
		ids = append(ids, ofQuery(inform.Query()))
	}
	return ids
}

// An answering is what an INFORM leaves open of a question that it answers.
type answering struct {
	question Question
	open     []string
}

// findAnswers finds the questions about offers of the sender's side that an
// INFORM answers, at least in part.
func (t *Command) findAnswers() {
	inform, ok := t.Message.Body.(*performatives.InformBody)
	if !ok {
		return
	}
	data, ok := inform.Answers()
	if !ok {
		return
	}
	for _, q := range t.answeredQuestions(data.ReferenceID) {
		if open := unanswered(q, data.Answers); len(open) < len(q.Open) {
			t.settles = append(t.settles, answering{q, open})
		}
	}
}

// AnswersQuestion tells whether the act is an INFORM that answers an open
// question about an offer of the sender's side.
func (t *Command) AnswersQuestion() bool { return len(t.settles) > 0 }

// SettleAnswered takes a question as answered with the first answer to any of
// its fields.
func (t *Command) SettleAnswered() {
	for _, a := range t.settles {
		t.settleQuestion(a.question, nil)
	}
}

// answeredQuestions are the clarifications that answers under this id settle,
// by number of the entry: the one named, or all those open on the offer named.
// Only the offer's author answers (PROTOCOL.md §5), and only about what may
// still be carried out.
func (t *Command) answeredQuestions(id string) []Question {
	var found []Question
	if q, ok := t.questions.Get(id); ok {
		found = append(found, *q)
	} else if o, ok := t.State.Offer(id); ok && o.questions.Len() > 0 {
		for qid := range o.questions.All() {
			if q, ok := t.questions.Get(qid); ok {
				found = append(found, *q)
			}
		}
	}
	found = slices.DeleteFunc(found, func(q Question) bool {
		o, ok := t.State.Offer(q.Offer)
		return !ok || o.Side != t.Side || o.StatusAt(t.Now) > Accepted
	})
	slices.SortFunc(found, func(a, b Question) int { return int(a.Sequence) - int(b.Sequence) }) //nolint:gosec // far below 2^63
	return found
}

func unanswered(q Question, answers []performatives.Answer) []string {
	var open []string
	for _, field := range q.Open {
		if !slices.ContainsFunc(answers, func(a performatives.Answer) bool { return a.Field == field }) {
			open = append(open, field)
		}
	}
	return open
}
