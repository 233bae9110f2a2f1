package session

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Inform, deed{refers: informs, happens: informed, answers: answersQuestions})

func informs(t *Command) error {
	ruling, ok := t.ruling()
	if !ok && t.executing {
		if err := t.executes(); err != nil {
			return err
		}
	}
	if !ok {
		return t.chooses()
	}
	if _, known := t.items.Get(escalation.ID(ruling.EscalationID)); !known {
		return unknown("data.escalationId", ruling.EscalationID, "escalation")
	}
	return nil
}

func informed(t *Command) {
	if ruling, ok := t.ruling(); ok {
		t.ruled(ruling)
		return
	}
	if t.executing {
		t.executed()
	}
	t.reports()
	t.answersQuery()
	if effect := t.mode().Effects[performatives.Inform]; effect != nil {
		effect(t)
		return
	}
	for _, a := range t.answerings {
		t.answerQuestion(a.question, a.open)
	}
}

// reports notes a delegate's result.
func (t *Command) reports() {
	inform, ok := t.Message.Body.(*performatives.InformBody)
	if ok && t.Grant != nil && inform.Kind() == performatives.Result {
		t.Grant.Result = t.Next
		t.grants = t.grants.With(t.Grant.ID, *t.Grant)
	}
}

// answersQuestions are the questions that the INFORM answers, under whichever id
// it names them, or a query.
func answersQuestions(t *Command) []string {
	var ids []string
	for _, a := range t.answerings {
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
	t.answersTo = data.ReferenceID
	answered := map[string]bool{}
	for _, a := range data.Answers {
		answered[a.Field] = true
	}
	for _, q := range t.answeredQuestions(data.ReferenceID) {
		if open := unanswered(q, answered); len(open) < len(q.Open) {
			t.answerings = append(t.answerings, answering{q, open})
		}
	}
}

// AnswersQuestion reports whether the act is an INFORM that answers an open
// question about an offer of the sender's side.
func (t *Command) AnswersQuestion() bool { return len(t.answerings) > 0 }

// CloseAnswered takes a question as answered with the first answer to any of
// its fields.
func (t *Command) CloseAnswered() {
	for _, a := range t.answerings {
		t.answerQuestion(a.question, nil)
	}
}

// answeredQuestions are the clarifications that answers under this id complete,
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

// chooses refuses an answer that is none of the options which a strict question offered.
func (t *Command) chooses() error {
	inform, ok := t.Message.Body.(*performatives.InformBody)
	if !ok || len(t.answerings) == 0 || t.Before(2) {
		return nil
	}
	var faults []Fault
	data, _ := inform.Answers()
	for i, a := range data.Answers {
		for _, answer := range t.answerings {
			if options := answer.question.options[a.Field]; len(faults) < mostFaults && options != nil && !among(options, a.Answer) {
				faults = append(faults, Fault{
					Path: fmt.Sprintf("/data/answers/%d/answer", i), Rule: "enum",
					Message: fmt.Sprintf("the answer about %.120q is none of the options of the question", a.Field),
				})
				break
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return RefuseSchema(faults...)
}

// mostFaults is how many faults a refusal lists.
const mostFaults = 32

func among(options map[string]bool, answer jsontext.Value) bool {
	canonical, err := performatives.Canonical(answer)
	return err == nil && options[string(canonical)]
}

// offers notes the options of a question. Two questions about one field offer the
// options of both.
func (q *Question) offers(asked performatives.Question) {
	for _, option := range asked.Options {
		if canonical, err := performatives.Canonical(option); err == nil {
			if q.options == nil {
				q.options = map[string]map[string]bool{}
			}
			if q.options[asked.Field] == nil {
				q.options[asked.Field] = map[string]bool{}
			}
			q.options[asked.Field][string(canonical)] = true
		}
	}
}

func unanswered(q Question, answered map[string]bool) []string {
	var open []string
	for _, field := range q.Open {
		if !answered[field] {
			open = append(open, field)
		}
	}
	return open
}
