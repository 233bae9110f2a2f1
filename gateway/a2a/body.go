package a2agateway

import (
	"cmp"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// fill completes a body.
func (s said) fill(act performatives.Performative, body object, c call, at snapshot) {
	message, _ := body["message"].(string)
	text := cmp.Or(s.text, message)
	or := func(name string, value any) {
		if _, has := body[name]; !has && value != nil && value != "" {
			body[name] = value
		}
	}
	reference := ""
	if waiting, _ := at.waiting(c.Agent); len(waiting) > 0 {
		reference = waiting[len(waiting)-1]
	} else if delivered := at.delivered(c.Agent); len(delivered) == 1 {
		reference = delivered[0]
	}
	subject := cmp.Or(at.view.Invitation.Subject, at.view.Purpose, clip(s.text), "offer")
	switch act { //nolint:exhaustive // the rest has nothing that can be guessed
	case performatives.Propose:
		or("proposalId", s.id)
		or("type", "offer")
		or("subject", subject)
		or("terms", object{})
		or("message", s.text)
	case performatives.Counter:
		or("proposalId", s.id)
		or("referenceId", reference)
		or("message", s.text)
	case performatives.Accept:
		or("referenceId", reference)
		or("message", s.text)
	case performatives.Reject:
		or("referenceId", reference)
		or("code", "unspecified")
		or("reason", cmp.Or(text, "rejected"))
		or("retryable", false)
	case performatives.Clarify:
		or("referenceId", reference)
		if text != "" {
			or("questions", []object{{"field": "terms", "question": text}})
		}
	case performatives.Query:
		delete(body, "message")
		or("queryId", s.id)
		or("queryType", "question")
		or("subject", text)
	case performatives.Inform:
		delete(body, "message")
		or("type", performatives.Fact)
		or("data", facts(text, c, at))
	case performatives.Commit:
		or("commitmentId", s.id)
	case performatives.Escalate:
		or("reason", "policy-ambiguous")
		or("urgency", "medium")
		or("context", object{"summary": text})
	case performatives.Close:
		or("summary", text)
	}
}

// facts are the data of an INFORM: answers to the newest question that the caller was asked, or
// to the last query, or just text.
func facts(text string, c call, at snapshot) object {
	if asked := at.asked(); asked.Reference != "" {
		answers := []object{}
		for _, a := range asked.Answers {
			answers = append(answers, object{"field": a.Field, "answer": text})
		}
		return object{"referenceId": asked.Reference, "answers": answers}
	}
	data := object{"text": text}
	if n := len(at.entries); n > 0 {
		last := at.entries[n-1]
		var query struct {
			ID string `json:"queryId"`
		}
		if last.Performative == performatives.Query.String() && last.From != c.Agent && json.Unmarshal(last.Body, &query) == nil {
			data["queryId"] = query.ID
		}
	}
	return data
}

// speak is an act with a body.
func speak(act performatives.Performative, body object) (api.Say, error) {
	raw, err := json.Marshal(body, json.Deterministic(true))
	return api.Say{Performative: act.String(), Body: raw}, err
}
