package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A Reason says why an agent refuses a task.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	NoSkills          Reason = "no_skills_advertised"
	InputUnsupported  Reason = "input_mime_unsupported"
	OutputUnsupported Reason = "output_mime_unsupported"
	ToolMissing       Reason = "required_tool_missing"
	ToolForbidden     Reason = "forbidden_tool_present"
	TooExpensive      Reason = "cost_exceeds_budget"
	TooSlow           Reason = "latency_exceeds_constraint"
	BelowThreshold    Reason = "score_below_threshold"
)

// An Assessment is an agent's answer to a task. A refusal by a constraint has the first
// four members alone.
type Assessment struct {
	Accepted            bool       `json:"accepted"`
	Score               float64    `json:"score"`
	Confidence          float64    `json:"confidence"` // how much the agent knew, not how well it fits
	Rejection           Reason     `json:"rejection_reason,omitzero"`
	Matches             []Match    `json:"skill_matches,omitzero"` // best first
	MatchedTags         []string   `json:"matched_tags,omitzero"`
	MatchedCapabilities []string   `json:"matched_capabilities,omitzero"`
	Latency             *float64   `json:"latency_estimate_ms,omitzero"`
	QueueDepth          *int       `json:"queue_depth,omitzero"`
	Subscores           *Subscores `json:"subscores,omitzero"`
}

// Fault says what no assessment says, "" for nothing: a number that is out of range.
func (a Assessment) Fault() string {
	parts := map[string]float64{"score": a.Score, "confidence": a.Confidence}
	if s := a.Subscores; s != nil {
		parts["subscores/skill_match"], parts["subscores/io_compatibility"] = s.SkillMatch, s.IOCompatibility
		parts["subscores/performance"], parts["subscores/load"], parts["subscores/cost"] = s.Performance, s.Load, s.Cost
	}
	for i, match := range a.Matches {
		parts[fmt.Sprintf("skill_matches/%d/score", i)] = match.Score
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !(parts[name] >= 0 && parts[name] <= 1) {
			return name + " is a number from 0 to 1"
		}
	}
	if a.QueueDepth != nil && *a.QueueDepth < 0 || a.Latency != nil && !(*a.Latency >= 0) {
		return "queue_depth and latency_estimate_ms are at least 0"
	}
	return ""
}

// A Match is a skill that fits.
type Match struct {
	Skill   string   `json:"skill_id"`
	Name    string   `json:"skill_name"`
	Score   float64  `json:"score"`
	Reasons []string `json:"reasons"`
}

// Subscores are what the score is the weighted sum of.
type Subscores struct {
	SkillMatch      float64 `json:"skill_match"`
	IOCompatibility float64 `json:"io_compatibility"`
	Load            float64 `json:"load"`
	Cost            float64 `json:"cost"`
	Performance     float64 `json:"performance"`
}

// QueueDepth is the length of a queue that is known.
func QueueDepth(n int) *int { return &n }

// Similarity returns the cosine similarity of the task and the skill at an index. Only a
// positive one counts.
type Similarity func(skill int) float64

// A Profile is what an agent says of itself, read once for all tasks.
type Profile struct {
	skills   []skill
	inputs   map[string]bool
	outputs  map[string]bool
	tools    map[string]bool
	patterns int // of all skills
	price    float64
	priced   bool
	latency  float64
}

// unknownLatency is the estimate of an agent that declares none, in milliseconds.
const unknownLatency = 5000

// NewProfile reads the skills and the price of a card.
func NewProfile(skills []Skill, pricing jsontext.Value) *Profile {
	p := &Profile{inputs: map[string]bool{}, outputs: map[string]bool{}, tools: map[string]bool{}}
	p.price, p.priced = price(pricing)
	declared := false
	for _, s := range skills {
		read := readSkill(s)
		p.skills = append(p.skills, read)
		p.patterns += len(read.antiPatterns) + len(read.specializations)
		for _, of := range []struct {
			all   map[string]bool
			names []string
		}{{p.inputs, s.InputModes}, {p.outputs, s.OutputModes}, {p.tools, s.AllowedTools}} {
			for _, name := range of.names {
				of.all[name] = true
			}
		}
		if ms, ok := s.milliseconds(); ok {
			if !declared || ms > p.latency {
				p.latency = ms
			}
			declared = true
		}
	}
	if !declared {
		p.latency = unknownLatency
	}
	return p
}

// Assess answers a task. A nil queue is an unknown one; without a similarity keywords
// decide alone.
func (p *Profile) Assess(t *Prepared, queue *int, similar Similarity) Assessment {
	if reason := p.constrained(t); reason != "" {
		return Assessment{Confidence: 1, Rejection: reason}
	}
	found := p.match(t, similar)
	cost := p.cost(t)
	if cost == 0 {
		return Assessment{Confidence: 0.9, Rejection: TooExpensive}
	}
	if len(found.matches) > 0 {
		found.latency = &p.latency
	}
	if t.MaxLatency != 0 && found.latency != nil && *found.latency != 0 && *found.latency > 2*t.MaxLatency {
		return Assessment{Confidence: 0.9, Rejection: TooSlow, Latency: found.latency}
	}
	subscores := Subscores{SkillMatch: found.best(t), IOCompatibility: 1, Load: load(queue), Cost: cost, Performance: 1}
	if found.latency != nil && t.MaxLatency > 0 {
		subscores.Performance = max(0, 1-*found.latency/t.MaxLatency)
	}
	w := t.weights
	score := sum(w.SkillMatch*subscores.SkillMatch, w.IOCompatibility*subscores.IOCompatibility,
		w.Load*subscores.Load, w.Cost*subscores.Cost, w.Performance*subscores.Performance)
	a := Assessment{
		Accepted: score >= t.MinScore && subscores.SkillMatch > 0, Score: round4(score), Confidence: round4(t.confidence(found, queue)),
		Matches: found.matches, MatchedTags: found.tags, MatchedCapabilities: found.capabilities,
		Latency: found.latency, QueueDepth: queue, Subscores: &subscores,
	}
	if !a.Accepted {
		a.Rejection = BelowThreshold
	}
	return a
}

// constrained looks for a constraint that the agent does not meet.
func (p *Profile) constrained(t *Prepared) Reason {
	if len(p.skills) == 0 {
		return NoSkills
	}
	some := func(wanted []string, all map[string]bool) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(mode string) bool { return all[mode] })
	}
	has := func(tool string) bool { return p.tools[tool] }
	switch {
	case !some(t.InputTypes, p.inputs):
		return InputUnsupported
	case !some(t.OutputTypes, p.outputs):
		return OutputUnsupported
	case slices.ContainsFunc(t.RequiredTools, func(tool string) bool { return !has(tool) }):
		return ToolMissing
	case slices.ContainsFunc(t.ForbiddenTools, has):
		return ToolForbidden
	}
	return ""
}

// matched is what the skills have in common with a task.
type matched struct {
	matches            []Match
	tags, capabilities []string
	latency            *float64
}

// best is the score of the skill that fits best. A task that says nothing fits by half.
func (m matched) best(t *Prepared) float64 {
	switch {
	case len(t.keywords) == 0 && t.Summary == "":
		return 0.5
	case len(m.matches) == 0:
		return 0
	}
	return m.matches[0].Score
}

func (p *Profile) match(t *Prepared, similar Similarity) (m matched) {
	if len(t.keywords) == 0 && t.Summary == "" {
		return m
	}
	var tags, capabilities found
	for i := range p.skills {
		s := &p.skills[i]
		if t.Summary != "" && slices.ContainsFunc(s.antiPatterns, func(pattern string) bool { return t.text.contains(pattern, p.patterns) }) {
			continue
		}
		one := Match{Skill: s.id, Name: s.name, Reasons: make([]string, 0, 2)}
		score, common := jaccard(t.keywords, s.keywords)
		if similar != nil && t.Summary != "" {
			if alike := similar(i); alike > 0 {
				score = 0.7*alike + 0.3*score
				one.Reasons = append(one.Reasons, "semantic similarity: "+strconv.FormatFloat(alike, 'f', 2, 64))
			}
		}
		for _, of := range s.specializations {
			if t.Summary != "" && t.summary.contains(of.Domain, p.patterns) {
				score = min(1, score+of.Boost)
			}
		}
		if common > 0 {
			if why := matching("tags: ", s.tags, t.keywords, &tags); why != "" {
				one.Reasons = append(one.Reasons, why)
			}
			if why := matching("capabilities: ", s.capabilities, t.keywords, &capabilities); why != "" {
				one.Reasons = append(one.Reasons, why)
			}
		}
		if score > 0 {
			one.Score = round4(score)
			if m.matches == nil {
				m.matches = make([]Match, 0, len(p.skills)-i)
			}
			m.matches = append(m.matches, one)
		}
	}
	m.tags, m.capabilities = tags.names, capabilities.names
	slices.SortStableFunc(m.matches, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return m
}

// jaccard is the part of both sets' keywords that they have in common.
func jaccard(task set, skill []string) (part float64, common int) {
	for _, keyword := range skill {
		if task[keyword] {
			common++
		}
	}
	if len(task) == 0 && len(skill) == 0 {
		return 0, 0
	}
	return float64(common) / float64(len(task)+len(skill)-common), common
}

// load falls with the queue.
func load(queue *int) float64 {
	if queue == nil {
		return 0.5
	}
	return round4(1 / (1 + float64(*queue)))
}

// cost is 0 only for a price beyond the cap. A price at the cap scores half.
func (p *Profile) cost(t *Prepared) float64 {
	switch {
	case !p.priced:
		return 1
	case !t.capped, t.maxCost <= 0, math.IsNaN(t.maxCost), math.IsNaN(p.price):
		return 0.5
	case p.price > t.maxCost:
		return 0
	case math.IsInf(t.maxCost, 1):
		return 1
	}
	return round4(1 - p.price/t.maxCost*0.5)
}

// confidence grows with what the agent had to go by.
func (t *Prepared) confidence(m matched, queue *int) float64 {
	c := 0.5
	switch {
	case len(m.matches) == 0:
	case m.matches[0].Score > 0.3:
		c += 0.2
	default:
		c += 0.1
	}
	for _, known := range []bool{len(t.InputTypes) > 0 || len(t.OutputTypes) > 0, t.MaxLatency != 0, queue != nil} {
		if known {
			c += 0.1
		}
	}
	return min(c, 1)
}
