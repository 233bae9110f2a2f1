package discovery

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A Source says who assessed an agent.
type Source string

// The two of them.
const (
	ByAgent    Source = "agent"    // the agent answered the call itself
	ByRegistry Source = "registry" // its card was assessed
	ByURL      Source = "url"      // it is elsewhere, and was asked there
)

// A Candidate is an agent with its assessment.
type Candidate struct {
	Agent  performatives.Agent `json:"agentId,omitzero"`
	URL    string              `json:"url,omitzero"` // of an agent elsewhere, instead
	Source Source              `json:"source"`
	Assessment
	Trust   *float64       `json:"trustScore,omitzero"` // 0 to 100, the registry's
	Pricing jsontext.Value `json:"pricing,omitzero"`
	Why     string         `json:"why,omitzero"` // what the policy went by; empty for one that refuses
}

// A Policy ranks candidates.
type Policy struct {
	order func(a, b *Candidate) int // negative if a comes first
	why   func(*Candidate) string
}

// best orders by whether the agent accepts, score, confidence and trust, and last by the
// agent's URI, so that no two candidates are equal.
func best(a, b *Candidate) int {
	return cmp.Or(
		accepted(a, b),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.Confidence, a.Confidence),
		cmp.Compare(b.trust(), a.trust()),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.URL, b.URL),
	)
}

// Rank sorts candidates. Those that refuse come last in any policy; those that are equal by
// it are ordered by best.
func (p Policy) Rank(candidates []Candidate) {
	sorted := make([]*Candidate, len(candidates)) // a candidate is large
	for i := range candidates {
		sorted[i] = &candidates[i]
	}
	slices.SortFunc(sorted, func(a, b *Candidate) int {
		if order := cmp.Or(accepted(a, b), p.order(a, b)); order != 0 {
			return order
		}
		return best(a, b)
	})
	ranked := make([]Candidate, len(candidates))
	for i, c := range sorted {
		ranked[i] = *c
	}
	copy(candidates, ranked)
}

// Explain says of each candidate what the policy went by.
func (p Policy) Explain(candidates []Candidate) {
	for i := range candidates {
		if c := &candidates[i]; c.Accepted {
			c.Why = p.why(c)
		}
	}
}

func accepted(a, b *Candidate) int {
	switch {
	case a.Accepted == b.Accepted:
		return 0
	case a.Accepted:
		return -1
	}
	return 1
}

func (c *Candidate) trust() float64 {
	if c.Trust == nil {
		return -1
	}
	return *c.Trust
}

// price is infinite for an agent that names none.
func (c *Candidate) price() float64 {
	if value, ok := price(c.Pricing); ok && !math.IsNaN(value) {
		return value
	}
	return math.Inf(1)
}

// queue is infinite where it is unknown.
func (c *Candidate) queue() float64 {
	if c.QueueDepth == nil {
		return math.Inf(1)
	}
	return float64(*c.QueueDepth)
}

// ParsePolicy reads a policy: best, cheapest, queue, trust, each with an optional least
// score as in cheapest:0.6, or weights as in score=3,trust=1,cost=1.
func ParsePolicy(text string) (Policy, error) {
	if strings.Contains(text, "=") {
		return parseWeighted(text)
	}
	name, least, bounded := strings.Cut(text, ":")
	by, known := policies[cmp.Or(name, "best")]
	if !known {
		return Policy{}, fmt.Errorf("there is no ranking %.40q; there is best, cheapest, queue, trust, or weights such as score=3,trust=1", name)
	}
	if !bounded {
		return by, nil
	}
	threshold, err := strconv.ParseFloat(least, 64)
	if err != nil || !(threshold >= 0 && threshold <= 1) {
		return Policy{}, fmt.Errorf("%.40q is not a least score from 0 to 1", least)
	}
	below := func(c *Candidate) int {
		if c.Score >= threshold {
			return 0
		}
		return 1
	}
	return Policy{
		order: func(a, b *Candidate) int { return cmp.Or(cmp.Compare(below(a), below(b)), by.order(a, b)) },
		why: func(c *Candidate) string {
			return by.why(c) + "; score " + number(c.Score) + []string{" is at least ", " is below "}[below(c)] + number(threshold)
		},
	}, nil
}

// policies are the rankings that have a name.
var policies = map[string]Policy{
	"best": {best, func(c *Candidate) string {
		return "score " + number(c.Score) + ", confidence " + number(c.Confidence) + ", " + c.trusted()
	}},
	"cheapest": {
		func(a, b *Candidate) int { return cmp.Compare(a.price(), b.price()) },
		func(c *Candidate) string { return known("price ", c.price(), "no price") },
	},
	"queue": {
		func(a, b *Candidate) int { return cmp.Compare(a.queue(), b.queue()) },
		func(c *Candidate) string { return known("queue ", c.queue(), "queue unknown") },
	},
	"trust": {func(a, b *Candidate) int { return cmp.Compare(b.trust(), a.trust()) }, (*Candidate).trusted},
}

func (c *Candidate) trusted() string {
	if c.Trust == nil {
		return "no trust score"
	}
	return "trust " + number(*c.Trust)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// known names a value that is not infinite.
func known(name string, value float64, otherwise string) string {
	if math.IsInf(value, 0) {
		return otherwise
	}
	return name + number(value)
}

// measures are what a weighted policy adds up, each from 0 to 1.
var measures = map[string]func(*Candidate) float64{
	"score":      func(c *Candidate) float64 { return c.Score },
	"confidence": func(c *Candidate) float64 { return c.Confidence },
	"trust":      func(c *Candidate) float64 { return max(0, c.trust()) / 100 },
	"skill":      func(c *Candidate) float64 { return c.subscores().SkillMatch },
	"load":       func(c *Candidate) float64 { return c.subscores().Load },
	"cost":       func(c *Candidate) float64 { return c.subscores().Cost },
	"latency":    func(c *Candidate) float64 { return c.subscores().Performance },
}

func (c *Candidate) subscores() Subscores {
	if c.Subscores == nil {
		return Subscores{}
	}
	return *c.Subscores
}

func parseWeighted(text string) (Policy, error) {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		weight, err := strconv.ParseFloat(number, 64)
		if measures[name] == nil || err != nil || !(weight >= 0 && weight <= 1000) {
			return Policy{}, fmt.Errorf("%.40q is not a weight: write score, confidence, trust, skill, load, cost or latency, = and a number from 0 to 1000", part)
		}
		weights[name] = weight
	}
	total := func(c *Candidate) (total float64) {
		for _, name := range measured {
			total += weights[name] * measures[name](c)
		}
		return total
	}
	return Policy{
		order: func(a, b *Candidate) int { return cmp.Compare(total(b), total(a)) },
		why: func(c *Candidate) string {
			var terms []string
			for _, name := range measured {
				if weights[name] > 0 {
					terms = append(terms, number(weights[name])+" × "+name+" "+number(round4(measures[name](c))))
				}
			}
			return strings.Join(terms, " + ") + " = " + number(round4(total(c)))
		},
	}, nil
}

// measured are the names of measures in the order in which they are added.
var measured = []string{"score", "confidence", "trust", "skill", "load", "cost", "latency"}
