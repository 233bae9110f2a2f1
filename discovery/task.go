// Package discovery scores how well agents fit a task, and ranks them.
//
//	profile := discovery.NewProfile(skills, pricing)
//	task := discovery.Task{Summary: "Extract tables from PDF invoices"}
//	a := profile.Assess(task.Prepare(), discovery.QueueDepth(2), nil)
//	fmt.Println(a.Accepted, a.Score) // true 0.8967
//
// The self-assessment is Bindu's, digit for digit: an agent is scored by its skills, its
// price and its queue alone. The order of skills changes a score only where two match
// equally well. Scores, confidences and subscores are from 0 to 1.
//
// The package is pure. What anybody sends is bounded by its caller, and no input makes
// it panic.
package discovery

import (
	"index/suffixarray"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxText is how many code points of a summary, and of details, are read for keywords.
const MaxText = 10_000

// A Task is what somebody wants done. Only Summary is needed. An empty list, and a zero,
// constrains nothing.
type Task struct {
	Summary        string         `json:"task_summary"`
	Details        string         `json:"task_details,omitzero"`
	InputTypes     []string       `json:"input_mime_types,omitzero"`  // the agent reads one of them
	OutputTypes    []string       `json:"output_mime_types,omitzero"` // the agent writes one of them
	RequiredTools  []string       `json:"required_tools,omitzero"`
	ForbiddenTools []string       `json:"forbidden_tools,omitzero"`
	MaxLatency     float64        `json:"max_latency_ms,omitzero"`  // an estimate beyond twice of it is refused
	MaxCost        jsontext.Value `json:"max_cost_amount,omitzero"` // a decimal string or a number
	MinScore       float64        `json:"min_score,omitzero"`
	Weights        Weights        `json:"weights,omitzero"`
}

// Weights say how much each subscore counts. A nil one has its default; only their
// proportions matter.
type Weights struct {
	SkillMatch      *float64 `json:"skill_match,omitzero"`      // 0.55
	IOCompatibility *float64 `json:"io_compatibility,omitzero"` // 0.20
	Performance     *float64 `json:"performance,omitzero"`      // 0.15
	Load            *float64 `json:"load,omitzero"`             // 0.05
	Cost            *float64 `json:"cost,omitzero"`             // 0.05
}

// Negative names the first weight below zero, "" for none.
func (w Weights) Negative() string {
	for _, weight := range []struct {
		name  string
		value *float64
	}{
		{"skill_match", w.SkillMatch},
		{"io_compatibility", w.IOCompatibility},
		{"performance", w.Performance},
		{"load", w.Load},
		{"cost", w.Cost},
	} {
		if weight.value != nil && *weight.value < 0 {
			return weight.name
		}
	}
	return ""
}

// normalised returns the weights divided by their sum.
func (w Weights) normalised() Subscores {
	or := func(value *float64, standard float64) float64 {
		if value == nil {
			return standard
		}
		return *value
	}
	n := Subscores{
		SkillMatch:      or(w.SkillMatch, 0.55),
		IOCompatibility: or(w.IOCompatibility, 0.20),
		Performance:     or(w.Performance, 0.15),
		Load:            or(w.Load, 0.05),
		Cost:            or(w.Cost, 0.05),
	}
	total := n.SkillMatch + n.IOCompatibility + n.Performance + n.Load + n.Cost
	if total == 0 {
		return Subscores{0.2, 0.2, 0.2, 0.2, 0.2}
	}
	return Subscores{n.SkillMatch / total, n.IOCompatibility / total, n.Load / total, n.Cost / total, n.Performance / total}
}

// A Prepared task can be assessed by many agents.
type Prepared struct {
	Task
	keywords set
	summary  searched // in lower case
	text     searched // summary and details in lower case
	maxCost  float64
	capped   bool // there is a cost cap
	weights  Subscores
}

// Prepare reads what all agents need of the task.
func (t Task) Prepare() *Prepared {
	p := &Prepared{Task: t, weights: t.Weights.normalised()}
	p.summary.text = lower(t.Summary)
	p.text.text = p.summary.text
	text := truncate(t.Summary)
	if t.Details != "" {
		p.text.text += " " + lower(t.Details)
		text += " " + truncate(t.Details)
	}
	p.keywords = set{}
	p.keywords.addTokens(text)
	p.maxCost, p.capped = costCap(t.MaxCost)
	return p
}

func truncate(text string) string {
	if len(text) <= MaxText {
		return text
	}
	points := 0
	for at := range text {
		if points++; points > MaxText {
			return text[:at]
		}
	}
	return text
}

// A searched text is searched for many patterns in little more time than for one.
type searched struct {
	text  string
	once  sync.Once
	index *suffixarray.Index
}

// scanned is how many bytes are compared at most before an index pays.
const scanned = 1 << 20

// contains reports whether a pattern, which is one of so many, is in the text.
func (s *searched) contains(pattern string, patterns int) bool {
	if pattern == "" || patterns*len(s.text) <= scanned {
		return strings.Contains(s.text, pattern)
	}
	s.once.Do(func() { s.index = suffixarray.New([]byte(s.text)) })
	return len(s.index.Lookup([]byte(pattern), 1)) > 0
}

// A set holds keywords.
type set map[string]bool

// addTokens adds the words of 2 to 100 letters a to z and digits.
func (s set) addTokens(text string) {
	for token := range strings.FieldsFuncSeq(lower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if len(token) >= 2 && len(token) <= 100 {
			s[token] = true
		}
	}
}
