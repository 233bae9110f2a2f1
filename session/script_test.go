package session_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

var (
	hashes = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	stamps = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
)

// An act is one line of a script, ready to be sent:
//
//	who PERFORMATIVE words… [{json}] [-> recipient] [name=value…]
//
// The words and what the JSON is are the act's own:
//
//	PROPOSE id {terms}        invite id -> one or more {terms}
//	COUNTER id of {terms}     ACCEPT of              REJECT of
//	COMMIT id [of] [party…]   WITHDRAW of            OBSERVE
//	CLARIFY label of field…   QUERY id               CLOSE [outcome]
//	DELEGATE label target authority [of]             ESCALATE label urgency [of]
//	INFORM kind {data}        answers of field…      rules label decision
//	amend id of {terms}       again label               the very bytes again
//
// Elsewhere than in terms and data, JSON is merged into the body. @name stands
// for a URI or a message id. as= labels a message, id= reuses a message id, by=
// merges constraints, binds= signs an agreement, until= is validUntil from now on, link= is a sequence
// number, or "right". without= leaves a field out. roles= is an assessment.
type act struct {
	draft performatives.Draft
	label string
	again []byte
}

type body map[string]any

func (c *conversation) read(said string) (act, error) {
	var a act
	said, object := cutObject(said)
	if object != "" {
		object = c.resolved(object)
	}
	said, to, _ := strings.Cut(said, "->")
	words, options := c.words(said)
	more, options2 := c.words(to)
	maps.Copy(options, options2)
	if len(words) < 2 {
		return a, errors.New("who does what?")
	}
	if a.draft.Sender = principals[words[0]]; a.draft.Sender == "" {
		return a, fmt.Errorf("who is %s?", words[0])
	}
	if words[1] == "again" {
		if a.again = c.sent[words[len(words)-1]]; a.again == nil {
			return a, errors.New("what again?")
		}
		return a, nil
	}
	performative, b, label, err := c.compose(words[1], words[2:], more, object)
	if err != nil {
		return a, err
	}
	a.label = label
	if len(more) == 1 {
		a.draft.Recipient = principals[strings.Trim(more[0], ",")]
	}
	if err := c.apply(&a, b, options); err != nil {
		return a, err
	}
	text, err := json.Marshal(b, json.Deterministic(true))
	a.draft.Body = anyBody{act: performative, text: text}
	return a, err
}

// compose makes the body of an act.
func (c *conversation) compose(verb string, words, to []string, object string) (p performatives.Performative, b body, label string, err error) {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	ref := func(i int) any {
		if id := c.ids[arg(i)]; id != "" {
			return id
		}
		return arg(i)
	}
	given := jsontext.Value(object)
	if object == "" {
		given = jsontext.Value("{}")
	}
	b, p = body{}, performatives.Parse(verb)
	merge := true
	switch verb {
	case "invite":
		p, merge = performatives.Propose, false
		terms := body{}
		if err := json.Unmarshal(given, &terms); err != nil {
			return p, nil, "", err
		}
		if len(to) > 1 {
			var participants []string
			for _, name := range to {
				participants = append(participants, string(principals[strings.Trim(name, ",")]))
			}
			terms["participants"] = participants
		}
		b["proposalId"], b["type"], b["subject"], b["terms"] = arg(0), performatives.SessionInvitation, "a talk", terms
	case "PROPOSE":
		b["proposalId"], b["type"], b["subject"], b["terms"], merge = arg(0), "service-agreement", "service "+arg(0), given, false
	case "COUNTER":
		b["proposalId"], b["referenceId"], b["terms"], merge = arg(0), ref(1), given, false
	case "ACCEPT", "WITHDRAW":
		b["referenceId"] = ref(0)
	case "REJECT":
		b["referenceId"], b["code"], b["reason"], b["retryable"] = ref(0), "budget_exceeded", "too much", true
	case "INFORM":
		b["type"], b["data"], merge = arg(0), given, false
	case "answers":
		p, label = performatives.Inform, ""
		var answers []body
		for _, field := range words[min(len(words), 1):] {
			answers = append(answers, body{"field": field, "answer": "yes"})
		}
		b["type"], b["data"] = performatives.Fact, body{"referenceId": ref(0), "answers": answers}
	case "rules":
		p, merge = performatives.Inform, false
		data := body{}
		if err := json.Unmarshal(given, &data); err != nil {
			return p, nil, "", err
		}
		data["escalationId"], data["decision"] = ref(0), arg(1)
		b["type"], b["data"] = performatives.Resolution, data
	case "QUERY":
		b["queryId"], b["queryType"], b["subject"] = arg(0), "status", "how is it going"
	case "CLARIFY":
		label = arg(0)
		var questions []body
		for _, field := range words[min(len(words), 2):] {
			questions = append(questions, body{"field": field, "question": "what is meant?"})
		}
		b["referenceId"], b["questions"] = ref(1), questions
	case "COMMIT":
		parties := words[min(len(words), 2):]
		if len(parties) == 0 {
			parties = []string{"alpha"}
		}
		var obligations []body
		for _, name := range parties {
			obligations = append(obligations, body{"party": principals[name], "action": "deliver"})
		}
		b["commitmentId"], b["terms"] = arg(0), body{"obligations": obligations}
		if arg(1) != "" && arg(1) != "-" {
			b["referenceId"] = ref(1)
		}
	case "DELEGATE":
		label = arg(0)
		b["targetAgent"], b["scope"], b["authority"] = principals[arg(1)], "the price", arg(2)
		if arg(3) != "" {
			b["referenceId"] = ref(3)
		}
	case "ESCALATE":
		label = arg(0)
		b["reason"], b["urgency"], b["context"] = "authority-limit", arg(1), "over my limit"
		if arg(2) != "" {
			b["referenceId"] = ref(2)
		}
	case "OBSERVE":
		b["subject"] = "the weather"
	case "CLOSE":
		if arg(0) != "" {
			b["outcome"] = arg(0)
		}
	case "amend":
		p, merge = performatives.Propose, false
		b["proposalId"], b["type"], b["subject"], b["referenceId"], b["terms"] = arg(0), performatives.Amendment, "other obligations", arg(1), given
	default:
		return p, nil, "", fmt.Errorf("what is %s?", verb)
	}
	if merge && object != "" {
		more := body{}
		err = json.Unmarshal(given, &more)
		maps.Copy(b, more)
	}
	return p, b, label, err
}

func (c *conversation) apply(a *act, b body, options map[string]string) error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(options))) { // binds= signs what the names after it say
		value := options[name]
		switch name {
		case "as":
			a.label = value
		case "id":
			a.draft.ID = performatives.MessageID(c.ids[value])
		case "until":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			b["validUntil"] = c.now.Add(d).Format(time.RFC3339Nano)
		case "by":
			a.draft.Constraints = new(performatives.Constraints)
			if err := json.Unmarshal([]byte(value), a.draft.Constraints); err != nil {
				return err
			}
		case "roles":
			own, other, _ := strings.Cut(value, "/")
			b["assessment"] = body{"reasoning": "as " + value, "suggestedRoles": body{"ownUser": own, "otherUser": other}}
		case "without":
			delete(b, value)
		case "binds": // signs as the agreement that the offer makes, with the key of that name
			if err := c.bind(a, b, value); err != nil {
				return err
			}
		case "link":
			a.draft.Link = &performatives.Link{Sequence: c.state.Next, PreviousHash: c.state.Head}
			if value != "right" {
				if _, err := fmt.Sscan(value, &a.draft.Link.Sequence); err != nil {
					return err
				}
			}
		case "schema", "type", "subject", "code", "maxDepth", "terms", "outcome", "assessment",
			"round", "category", "effectiveFrom", "effectiveUntil", "agreementSalt", "agreementSignature":
			var v any = value
			if name == "maxDepth" || name == "round" || name == "terms" || name == "assessment" {
				v = jsontext.Value(value)
			}
			b[name] = v
		default:
			return fmt.Errorf("what is %s=?", name)
		}
	}
	return nil
}

// words are the plain ones, and the name=value options.
func (c *conversation) words(s string) (words []string, options map[string]string) {
	options = map[string]string{}
	for _, word := range strings.Fields(s) {
		if name, value, ok := strings.Cut(word, "="); ok {
			options[name] = value
		} else {
			words = append(words, word)
		}
	}
	return words, options
}

// cutObject takes the JSON object that stands by itself out of a line.
func cutObject(s string) (rest, object string) {
	start := strings.Index(s, " {")
	if start < 0 {
		return s, ""
	}
	depth, quoted := 0, false
	for i := start + 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted:
		case s[i] == '{':
			depth++
		case s[i] == '}':
			if depth--; depth == 0 {
				return s[:start] + s[i+1:], s[start+1 : i+1]
			}
		}
	}
	return s, ""
}

var (
	later  = regexp.MustCompile(`"T\+[0-9a-z]+"`)
	number = regexp.MustCompile(`"#[0-9]+"`)
)

var mention = regexp.MustCompile(`@[a-z0-9]+`)

func (c *conversation) resolved(object string) string {
	object = later.ReplaceAllStringFunc(object, func(s string) string {
		d, err := time.ParseDuration(strings.Trim(s, `"T+`))
		if err != nil {
			return s
		}
		return `"` + curtain.Add(d).Format(time.RFC3339Nano) + `"`
	})
	object = number.ReplaceAllStringFunc(object, func(s string) string {
		n, err := strconv.Atoi(strings.Trim(s, `"#`))
		if err != nil || n >= len(c.entries) {
			return s
		}
		_, stamp, _, err := performatives.ReadDelivered(c.entries[n])
		if err != nil {
			return s
		}
		return `"` + string(stamp.Hash) + `"`
	})
	return mention.ReplaceAllStringFunc(object, func(at string) string {
		if agent, ok := principals[at[1:]]; ok {
			return string(agent)
		}
		if id, ok := c.ids[at[1:]]; ok {
			return id
		}
		if asked := c.state.NewestEscalations(); at == "@terms" && len(asked) > 0 {
			return string(asked[0].Terms)
		}
		return at
	})
}

func jsonOf(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
