package client

import (
	"context"
	"maps"
	"slices"

	"github.com/parley-asp/parley/performatives"
)

// A Question is about one field of an offer. Make it with [Ask].
type Question struct {
	Field   string // dotted path into the offer's body, such as terms.storageLimit
	Text    string
	Options []any // suggested answers
}

// Ask is a question about one field, with the answers that would do.
func Ask(field, question string, options ...any) Question { return Question{field, question, options} }

// Clarify asks what fields of an offer or commitment mean. Until its author has
// answered every question, it can be neither accepted nor rejected. The
// receipt's ID is the clarification's. In bilateral/1 it needs [Assess].
func (s *Session) Clarify(ctx context.Context, offer string, questions []Question, options ...ActOption) (Receipt, error) {
	body := &performatives.ClarifyBody{ReferenceID: offer, Questions: []performatives.Question{}}
	for _, q := range questions {
		asked := performatives.Question{Field: q.Field, Question: q.Text}
		for _, o := range q.Options {
			raw, err := value("an option", o)
			if err != nil {
				return Receipt{}, err
			}
			asked.Options = append(asked.Options, raw)
		}
		body.Questions = append(body.Questions, asked)
	}
	return s.Say(ctx, body, options...)
}

// Answer answers a clarification, by field; id is the clarification's, or the
// offer's for all that was asked about it. Fields may be answered in parts.
func (s *Session) Answer(ctx context.Context, id string, answers map[string]any, options ...ActOption) (Receipt, error) {
	data := performatives.AnswersData{ReferenceID: id, Answers: []performatives.Answer{}}
	for _, field := range slices.Sorted(maps.Keys(answers)) {
		raw, err := value("the answer about "+field, answers[field])
		if err != nil {
			return Receipt{}, err
		}
		if raw == nil {
			raw = []byte("null")
		}
		data.Answers = append(data.Answers, performatives.Answer{Field: field, Answer: raw})
	}
	return s.Inform(ctx, performatives.Fact, data, options...)
}

// Inform tells something, of a kind such as [performatives.Result]. A human's
// resolution of an escalation is [Session.Rule].
func (s *Session) Inform(ctx context.Context, kind string, data any, options ...ActOption) (Receipt, error) {
	raw, err := value("the information", data)
	if err != nil {
		return Receipt{}, err
	}
	return s.Say(ctx, &performatives.InformBody{Type: kind, Data: raw}, options...)
}

// A Query asks for information.
type Query struct {
	ID         string // by default a new one
	Type       string // what kind of question
	Subject    string // what it is about
	Parameters any    // what becomes a JSON object
}

// Query asks for information. The receipt's ID is the query's.
func (s *Session) Query(ctx context.Context, q Query, options ...ActOption) (Receipt, error) {
	parameters, err := object("Parameters", q.Parameters)
	if err != nil {
		return Receipt{}, err
	}
	return s.Say(ctx, &performatives.QueryBody{
		QueryID: q.ID, QueryType: q.Type, Subject: q.Subject, Parameters: parameters,
	}, options...)
}

// Observe makes a remark that asks for no reply; data may be nil.
func (s *Session) Observe(ctx context.Context, subject string, data any, options ...ActOption) (Receipt, error) {
	raw, err := value("the remark", data)
	if err != nil {
		return Receipt{}, err
	}
	return s.Say(ctx, &performatives.ObserveBody{Subject: subject, Data: raw}, options...)
}
