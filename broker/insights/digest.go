// Package insights counts how sessions went: how they ended, after how many turns and how
// long, what was countered, rejected and asked.
//
//	d, err := insights.Read(entries)
//	s := insights.New(since, until, "", nil, ours)
//	s.Add(d, participants)
//	reply := s.Insights()
//
// A digest is made from the delivered envelopes of one session that is over, and never
// changes. It has counts and names, and none of what was offered.
package insights

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// An End is how a session ended.
type End uint8

// The ends.
const (
	Failed End = iota
	Agreed
	Rejected
	Stalled
)

// A Digest is what is counted of one session.
type Digest struct {
	Mode        string
	Principals  []performatives.Agent
	Began, Last time.Time
	Agreed      time.Time // when an agreement was made; zero for none
	End         End
	Turns       int
	Countered   []string // top-level terms that a COUNTER changed, once for each
	Rejects     []string // codes
	Asked       []string // fields
	Type        string   // of the first offer
	Scenario    string   // by the kinds of two principals
	Objections  []string // words of the reasons of COUNTER, REJECT and CLARIFY
	Escalations []Escalation
}

// An Escalation is one escalation.
type Escalation struct {
	By       performatives.Organisation
	At, Done time.Time
	Decision string // "" if nobody decided
}

// maxNames bounds what is kept of one session, and the bytes of a name.
const (
	maxNames = 64
	maxName  = 80
)

// entry is what is read of a delivered envelope.
type entry struct {
	Message string `json:"messageId"`
	Act     string `json:"performative"`
	Sender  struct {
		Agent performatives.Agent `json:"agentId"`
	} `json:"sender"`
	Content struct {
		Body body `json:"body"`
	} `json:"content"`
	Recipient jsontext.Value `json:"recipient"`
	Integrity struct {
		OnBehalfOf performatives.Agent `json:"onBehalfOf"`
		Joined     []struct {
			Agent     performatives.Agent `json:"agentId"`
			Authority string              `json:"authority"`
			Kind      string              `json:"kind"`
		} `json:"joined"`
		Receipt struct {
			At    time.Time `json:"acceptedAt"`
			State string    `json:"state"`
		} `json:"receipt"`
	} `json:"integrity"`
}

type body struct {
	Proposal  string         `json:"proposalId"`
	Commits   string         `json:"commitmentId"`
	Reference string         `json:"referenceId"`
	Type      string         `json:"type"`
	Terms     jsontext.Value `json:"terms"`
	Code      string         `json:"code"`
	Reason    string         `json:"reason"`
	Outcome   string         `json:"outcome"`
	Questions []struct {
		Field string `json:"field"`
	} `json:"questions"`
	Data       jsontext.Value `json:"data"`
	Assessment struct {
		Reasoning string `json:"reasoning"`
	} `json:"assessment"`
}

// Read makes the digest of a session that is over.
func Read(entries [][]byte) (*Digest, error) {
	r := reader{digest: &Digest{}, offers: map[string]offer{}, commitments: map[string]*commitment{}, open: map[string]int{}}
	for _, data := range entries {
		var e entry
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, err
		}
		r.add(e)
	}
	r.finish()
	return r.digest, nil
}

// A reader folds entries into a digest.
type reader struct {
	digest *Digest
	offers map[string]offer
	open   map[string]int // escalations by id: the index in the digest
	last   entry

	confirming bool // people are asked to confirm what was agreed

	commitments map[string]*commitment // of asp/1
	terms       bool                   // and a proposal was accepted there, which binds nobody yet
	state       string                 // the newest but ESCALATED
}

type offer struct {
	terms   jsontext.Value
	message string
	side    performatives.Agent
}

// turnActs are the acts that are counted as turns.
var turnActs = map[string]bool{"PROPOSE": true, "COUNTER": true, "ACCEPT": true, "REJECT": true, "CLARIFY": true, "COMMIT": true}

func (r *reader) add(e entry) {
	d, b, at := r.digest, e.Content.Body, e.Integrity.Receipt.At
	if d.Began.IsZero() {
		r.invited(e)
		r.last = e
		return
	}
	side := cmp.Or(e.Integrity.OnBehalfOf, e.Sender.Agent)
	replaced, about := r.offers[b.Reference]
	invitation := r.last.Integrity.Receipt.State == "INVITED"
	switch e.Act {
	case "PROPOSE":
		d.Type = cmp.Or(d.Type, clip(b.Type))
		if b.Type != performatives.Amendment {
			r.offers[b.Proposal] = offer{b.Terms, e.Message, side}
		}
	case "COUNTER":
		if !invitation {
			d.Countered = keep(d.Countered, changed(replaced.terms, b.Terms)...)
			r.offers[b.Proposal] = offer{b.Terms, e.Message, side}
		}
	case "ACCEPT":
		switch {
		case !about:
			r.accepts(b.Reference, side, at)
		case e.Integrity.Receipt.State == "ESCALATED": // people have to confirm it
			r.confirming = true
			r.escalated(replaced.message, replaced.side, at)
			if side.Organisation() != replaced.side.Organisation() {
				r.escalated(e.Message, side, at)
			}
		case d.Mode == modes.ASP.Name:
			r.terms = true
		case d.Mode != modes.Convergent.Name:
			d.Agreed = at
		}
	case "REJECT":
		d.Rejects = keep(d.Rejects, b.Code)
	case "CLARIFY":
		for _, q := range b.Questions {
			d.Asked = keep(d.Asked, q.Field)
		}
	case "COMMIT":
		r.commits(e, at)
	case "CLOSE":
		r.completes(e, at)
	case "ESCALATE":
		r.escalated(e.Message, side, at)
	case "INFORM":
		r.decided(e)
	}
	if turnActs[e.Act] && !invitation {
		d.Turns++
	}
	switch e.Act {
	case "COUNTER", "REJECT", "CLARIFY":
		d.Objections = keep(d.Objections, themes(cmp.Or(b.Assessment.Reasoning, b.Reason))...)
	}
	if state := e.Integrity.Receipt.State; state != session.Escalated.String() {
		r.state = state
	}
	r.last, d.Last = e, at
}

func (r *reader) escalated(id string, side performatives.Agent, at time.Time) {
	d := r.digest
	r.open[id] = len(d.Escalations)
	if len(d.Escalations) < maxNames {
		d.Escalations = append(d.Escalations, Escalation{By: side.Organisation(), At: at})
	}
}

// invited reads the entry that opens the session.
func (r *reader) invited(e entry) {
	var terms struct {
		Mode string `json:"mode"`
	}
	if json.Unmarshal(e.Content.Body.Terms, &terms) != nil {
		terms.Mode = ""
	}
	d := r.digest
	d.Mode, d.Began, d.Last = cmp.Or(clip(terms.Mode), "asp/1"), e.Integrity.Receipt.At, e.Integrity.Receipt.At
	var kinds []string
	for _, m := range e.Integrity.Joined {
		if m.Authority == performatives.AuthorityPrincipal {
			d.Principals = append(d.Principals, unique.Make(m.Agent).Value())
			kinds = append(kinds, m.Kind)
		}
	}
	d.Scenario = scenarioOf(kinds)
}

// decided notes a human's ruling.
func (r *reader) decided(e entry) {
	var ruling struct {
		Escalation string `json:"escalationId"`
		Decision   string `json:"decision"`
	}
	if e.Content.Body.Type != performatives.Resolution || json.Unmarshal(e.Content.Body.Data, &ruling) != nil {
		return
	}
	if i, ok := r.open[ruling.Escalation]; ok && i < len(r.digest.Escalations) {
		r.digest.Escalations[i].Decision, r.digest.Escalations[i].Done = ruling.Decision, e.Integrity.Receipt.At
	}
	if r.confirming && ruling.Decision == performatives.Approved && e.Integrity.Receipt.State == "CLOSED" {
		r.digest.Agreed = e.Integrity.Receipt.At
	}
}

// finish says how the session ended.
func (r *reader) finish() {
	d, e := r.digest, r.last
	switch {
	case !d.Agreed.IsZero():
		d.End = Agreed
	case r.confirming && !e.Sender.Agent.IsBroker():
		d.End = Rejected
	case e.Act == "REJECT", e.Act == "WITHDRAW", e.Act == "COMMIT":
		d.End = Rejected
	case e.Sender.Agent.IsBroker() && e.Content.Body.Reason != "invitation_timeout" && e.Content.Body.Reason != "escalation_expired":
		d.End = Stalled
	case e.Act != "CLOSE": // the cap of turns
		d.End = Stalled
	case len(d.Rejects) > 0 && e.Content.Body.Outcome != "failed":
		d.End = Rejected
	default:
		d.End = Failed
	}
}

// keep adds names, once each.
func keep(names []string, more ...string) []string {
	for _, name := range more {
		if name = clip(name); name != "" && len(names) < maxNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func clip(name string) string {
	return unique.Make(strings.ToValidUTF8(name[:min(len(name), maxName)], "")).Value()
}

// changed are the top-level terms in which two offers differ.
func changed(before, after jsontext.Value) (names []string) {
	var was, is map[string]jsontext.Value
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	for name, value := range is {
		if string(was[name]) != string(value) {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, still := is[name]; !still {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
