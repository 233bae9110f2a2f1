package inbox

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// An entry is one act of a conversation, for reading.
type entry struct {
	Number uint64
	Act    string
	Who    string
	Org    string
	URI    performatives.Agent
	Behalf string
	Kind   string // theirs, ours, human or broker
	Line   string // what the act refers to
	Text   []prose
	Pairs  []pair
	At     time.Time
	Hash   string
	Stake  bool
}

type pair struct {
	Name  string
	Value prose
}

// asTalk reads a transcript as the side of an organisation sees it.
func asTalk(raw []jsontext.Value, us performatives.Organisation) []entry {
	all := make([]entry, 0, len(raw))
	for _, data := range raw {
		e, err := transcript.Read(data)
		if err != nil {
			all = append(all, entry{Act: "?", Who: "unreadable entry", Kind: "theirs", Text: []prose{asProse(string(data))}})
			continue
		}
		all = append(all, asEntry(e, us))
	}
	return all
}

func asEntry(e transcript.Entry, us performatives.Organisation) entry {
	m := e.Message
	v := entry{
		Number: e.Stamp.Sequence, Act: render.Clean(m.ActName), Who: called(m.Sender), Org: organisation(m.Sender), URI: m.Sender,
		Hash: string(e.Stamp.Hash),
	}
	if at, err := e.Stamp.AcceptedAt(); err == nil {
		v.At = at
	}
	if e.Stamp.OnBehalfOf != "" {
		v.Behalf = called(e.Stamp.OnBehalfOf)
	}
	switch {
	case strings.HasPrefix(string(m.Sender), "broker://"):
		v.Kind, v.Who, v.Org = "broker", "broker", ""
	case m.Sender.Organisation() != us:
		v.Kind = "theirs"
	case m.Sender.IsHuman():
		v.Kind = "human"
	default:
		v.Kind = "ours"
	}
	if m.DecodeBody() != nil {
		v.value(m.RawBody)
		return v
	}
	v.body(m.Body)
	return v
}

func (v *entry) text(texts ...string) {
	for _, t := range texts {
		if t != "" {
			v.Text = append(v.Text, asProse(t))
		}
	}
}

func (v *entry) pair(name, value string) {
	if value != "" {
		v.Pairs = append(v.Pairs, pair{render.Clean(name), asProse(value)})
	}
}

// value shows any JSON: a text as text, an object by its members.
func (v *entry) value(raw jsontext.Value) {
	switch raw.Kind() {
	case 0, 'n':
	case '{':
		v.members("", raw)
	default:
		v.text(valueText(raw))
	}
}

// maxPairs is how many members of one message are shown one by one.
const maxPairs = 60

func (v *entry) members(prefix string, raw jsontext.Value) {
	d := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if _, err := d.ReadToken(); err != nil {
		return
	}
	for d.PeekKind() == '"' && len(v.Pairs) < maxPairs {
		name, err := d.ReadToken()
		if err != nil {
			return
		}
		path := prefix + name.String()
		value, err := d.ReadValue()
		if err != nil {
			return
		}
		if value = value.Clone(); value.Kind() == '{' && len(value) > 2 {
			v.members(path+".", value)
		} else {
			v.pair(path, valueText(value))
		}
	}
}

func (v *entry) remarks(r performatives.Remarks) {
	v.text(r.Message)
	if len(r.Assessment) > 0 {
		v.members("assessment.", r.Assessment)
	}
}

func (v *entry) until(name string, t *time.Time) {
	if t != nil {
		v.pair(name, moment(*t))
	}
}

func (v *entry) line(parts ...string) {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	v.Line = oneLine(strings.Join(there, " · "))
}

func (v *entry) body(body performatives.Body) { //nolint:gocyclo // one case for each act
	switch b := body.(type) {
	case *performatives.ProposeBody:
		v.line(b.Subject, b.Type, b.ProposalID)
		v.remarks(b.Remarks)
		v.value(b.Terms)
		v.until("valid until", b.ValidUntil)
	case *performatives.CounterBody:
		v.line(b.Subject, b.ReferenceID+" → "+b.ProposalID)
		v.text(b.Reason)
		v.remarks(b.Remarks)
		v.value(b.Terms)
		v.until("valid until", b.ValidUntil)
	case *performatives.AcceptBody:
		v.line(b.ReferenceID)
		v.text(b.Reason)
		v.remarks(b.Remarks)
	case *performatives.RejectBody:
		v.line(b.ReferenceID, b.Code)
		v.text(b.Reason)
		v.remarks(b.Remarks)
	case *performatives.InformBody:
		v.inform(b)
	case *performatives.QueryBody:
		v.line(b.Subject, b.QueryType)
		v.value(b.Parameters)
	case *performatives.ClarifyBody:
		v.line(b.ReferenceID)
		for _, q := range b.Questions {
			v.pair(q.Field, q.Question)
		}
		v.remarks(b.Remarks)
	case *performatives.CommitBody:
		v.commit(b)
	case *performatives.DelegateBody:
		v.line(string(b.TargetAgent), b.Authority+" authority", b.ReferenceID)
		v.text(b.Scope)
		v.until("valid until", b.ValidUntil)
	case *performatives.EscalateBody:
		v.line(reasonText(b.Reason), b.Urgency, b.ReferenceID)
		v.value(b.Context)
		v.pair("suggests", b.SuggestedAction)
	case *performatives.WithdrawBody:
		v.line(b.ReferenceID)
		v.text(b.Reason)
	case *performatives.ObserveBody:
		v.line(b.Subject, b.ReferenceID)
		v.value(b.Data)
	case *performatives.CloseBody:
		v.line(b.Outcome, b.Reason)
		v.text(b.Summary)
	}
}

func (v *entry) inform(b *performatives.InformBody) {
	if answers, ok := b.Answers(); ok {
		v.line("answers about " + answers.ReferenceID)
		for _, a := range answers.Answers {
			v.pair(a.Field, valueText(a.Answer))
		}
		return
	}
	ruling, ok := b.Ruling()
	if !ok {
		v.line(b.Kind())
		v.value(b.Data)
		return
	}
	v.line("decision: " + ruling.Decision)
	v.text(ruling.Comment)
	if a := ruling.Authority; a != nil {
		if a.MaxAmount != nil {
			v.pair("at most", money(*a.MaxAmount, a.Currency))
		}
		v.pair("at", a.TermPath)
		v.until("until", a.ValidUntil)
	}
}

func (v *entry) commit(b *performatives.CommitBody) {
	v.line(b.CommitmentID, b.ReferenceID, b.Outcome, b.Action)
	v.text(b.Reason)
	if b.Terms != nil {
		for _, o := range b.Terms.Obligations {
			v.pair(called(o.Party), o.Action)
		}
		if b.Terms.Penalties != nil {
			if raw, err := json.Marshal(b.Terms.Penalties, json.Deterministic(true)); err == nil {
				v.pair("penalties", string(raw))
			}
		}
	}
	if b.Escrow != nil {
		v.pair("escrow", strings.TrimSpace(money(b.Escrow.Amount, b.Escrow.Currency)+" "+b.Escrow.ReleaseCondition))
	}
	v.until("deadline", b.Deadline)
}
