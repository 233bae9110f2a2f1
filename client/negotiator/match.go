package negotiator

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Match is how a policy judges an offer without numbers, such as one of Index Network's that
// a connection would serve both users: by its assessments.
type Match struct {
	Accept float64 `yaml:"accept"` // the least score of the seed assessment, 0 to 100, to accept; by default 50
	Reject float64 `yaml:"reject"` // a lower score is rejected; by default 20
}

//go:embed default.yaml
var defaultPolicy []byte

// Default is the policy of who configures none: it judges matches by their assessments, and
// leaves all numbers to humans.
func Default() (*Policy, error) { return Parse(defaultPolicy) }

// Roles of the users in a match.
const (
	agentRole   = "agent"
	patientRole = "patient"
	peerRole    = "peer"
)

// complement is the role that goes with a role, "" for none.
var complement = map[string]string{agentRole: patientRole, patientRole: agentRole, peerRole: peerRole}

// An assessment is what goes with a turn of bilateral/1.
type assessment struct {
	Reasoning string `json:"reasoning"`
	Roles     struct {
		Own   string `json:"ownUser"`
		Other string `json:"otherUser"`
	} `json:"suggestedRoles"`
}

func assess(reasoning, own, other string) assessment {
	a := assessment{Reasoning: reasoning}
	a.Roles.Own, a.Roles.Other = own, other
	return a
}

// A seed is what the evaluator thinks of a match.
type seed struct {
	Score     *float64 `json:"score"` // 0 to 100
	Reasoning string   `json:"reasoning"`
	Role      string   `json:"valencyRole"`
}

// isMatch reports whether an offer has no numbers and no money, in texts or in names, but in the reasoning of its
// assessment, and obliges nobody.
func isMatch(terms map[string]any) bool {
	for name, value := range terms {
		if assessed, is := value.(map[string]any); is && name == "assessment" {
			if _, is := assessed["reasoning"].(string); is {
				assessed = maps.Clone(assessed)
				delete(assessed, "reasoning")
			}
			value = assessed
		}
		if binds(name, value) {
			return false
		}
	}
	return true
}

// binds reports whether a member has what a match has not.
func binds(name string, value any) bool {
	return value != nil && strings.EqualFold(name, "obligations") || numeric(name) || numeric(value)
}

func numeric(value any) bool {
	switch v := value.(type) {
	case float64:
		return true
	case string:
		return strings.ContainsFunc(v, unicode.IsNumber) || currency.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, numeric)
	case map[string]any:
		for name, value := range v {
			if binds(name, value) {
				return true
			}
		}
	}
	return false
}

// currency is how texts name money.
var currency = regexp.MustCompile(`(?i)\p{Sc}|\b(usd|eur|gbp|jpy|chf|cny|inr|dollars?|euros?|pounds?|yen|yuan|rupees?|francs?)\b`)

// match decides a turn in which a match is at stake; false is any other turn.
func (p *Policy) match(turn api.Turn, offer *api.OfferView, s Situation, ours int) (d Decision, is bool) {
	if p.Match == nil || !isMatch(s.Offer) || s.Offer == nil && len(p.Issues) > 0 {
		return d, false
	}
	var given seed
	if json.Unmarshal(turn.SeedAssessment, &given) != nil {
		given = seed{}
	}
	if s.Offer == nil {
		return p.present(given), true
	}
	theirs, last := newest(turn, offer), s.Last || ours >= p.Rounds
	own := theirs.Roles.Other
	if complement[own] == "" {
		own = peerRole
	}
	d = Decision{Terms: maps.Clone(s.Offer), assessment: assess("", own, complement[own])}
	score, known := 0.0, given.Score != nil
	if known {
		score = *given.Score
	}
	switch roles := theirs.Roles; {
	case known && score < p.Match.Reject:
		d.Act, d.Reason = Reject, fmt.Sprintf("the seed assessment gives this match %g of 100", score)
	case roles.Own != complement[own] && last:
		d.Act, d.Reason = Reject, "the roles still do not fit each other"
	case roles.Own != complement[own]:
		d.Act, d.Reason = Counter, fmt.Sprintf("the roles do not fit each other: yours is %q, ours %q", roles.Own, own)
	case (!known || score >= p.Match.Accept) && standingOnly(turn) && offer.Supersedes != "":
		d.Act, d.Reason = Propose, "the roles fit each other"
	case !known, score >= p.Match.Accept:
		d.Act, d.Reason = Accept, "the roles fit each other"
	case last:
		d.Act, d.Reason = Reject, fmt.Sprintf("nothing was added to the seed assessment, which gives this match %g of 100", score)
	default:
		d.Act, d.Reason = Counter, fmt.Sprintf("the seed assessment gives this match %g of 100: what else speaks for it?", score)
	}
	if given.Reasoning != "" && (d.Act == Accept || d.Act == Propose) {
		d.Reason += "; " + given.Reasoning
	}
	d.assessment.Reasoning = d.Reason
	d.Terms["assessment"] = d.assessment
	return d, true
}

// present is the first turn: the case for the match.
func (p *Policy) present(given seed) Decision {
	own, reason := given.Role, given.Reasoning
	if complement[own] == "" {
		own = peerRole
	}
	if reason == "" {
		reason = "the two were proposed to each other"
	}
	a := assess(reason, own, complement[own])
	return Decision{Act: Propose, Reason: reason, Terms: map[string]any{"assessment": a}, assessment: a}
}

// newest is the assessment that came with the offer, or that it has.
func newest(turn api.Turn, offer *api.OfferView) (a assessment) {
	var of struct {
		Assessment jsontext.Value `json:"assessment"`
	}
	for _, entry := range slices.Backward(turn.History) {
		if entry.Sequence != offer.Sequence {
			continue
		}
		if json.Unmarshal(entry.Body, &of) == nil && json.Unmarshal(of.Assessment, &a) == nil && a.Roles.Own != "" {
			return a
		}
	}
	if json.Unmarshal(offer.Terms, &of) != nil || json.Unmarshal(of.Assessment, &a) != nil {
		return assessment{}
	}
	return a
}

// standingOnly reports whether ACCEPT takes a PROPOSE only.
func standingOnly(turn api.Turn) bool {
	var terms struct {
		Policy struct {
			StandingOnly bool `json:"acceptStandingOnly"`
		} `json:"policy"`
	}
	return json.Unmarshal(turn.Terms, &terms) == nil && terms.Policy.StandingOnly
}

// sideOf is the side for which an agent takes the turn.
func sideOf(turn api.Turn, self performatives.Agent) performatives.Agent {
	if turn.OnBehalfOf != "" {
		return turn.OnBehalfOf
	}
	return self
}
