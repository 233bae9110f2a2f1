package insights

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Summary adds digests up.
type Summary struct {
	since, until time.Time
	mode         string
	ours         func(performatives.Organisation) bool

	reply                   api.Insights
	modes                   map[string]*api.Ends
	agents                  map[performatives.Agent]*api.AgentEnds
	turns                   map[int]int
	types                   map[string]*api.TypeEnds
	scenarios               map[string]*scenario
	objections              map[string]int
	terms, rejects, asked   map[string]int
	agreements, escalations []time.Duration
}

// New begins a summary of the sessions that ended in a time, in a mode ("" is any), with one
// of some agents (nil is any). ours tells whose escalations count.
func New(since, until time.Time, mode string, with []performatives.Agent, ours func(performatives.Organisation) bool) *Summary {
	s := &Summary{
		since: since, until: until, mode: mode, ours: ours,
		types: map[string]*api.TypeEnds{}, scenarios: map[string]*scenario{}, objections: map[string]int{},
		modes: map[string]*api.Ends{}, agents: map[performatives.Agent]*api.AgentEnds{}, turns: map[int]int{}, terms: map[string]int{}, rejects: map[string]int{}, asked: map[string]int{},
	}
	for _, a := range with {
		s.agents[a] = &api.AgentEnds{Agent: a}
	}
	return s
}

// Counts reports whether a session with these participants counts.
func (s *Summary) Counts(participants []performatives.Agent) bool {
	return len(s.agents) == 0 || slices.ContainsFunc(participants, func(a performatives.Agent) bool { return s.agents[a] != nil })
}

// AddOpen counts a session that has not ended.
func (s *Summary) AddOpen(participants []performatives.Agent) {
	s.reply.Open++
	for _, a := range participants {
		if of := s.agents[a]; of != nil {
			of.Open++
		}
	}
}

// Add counts a session that has ended.
func (s *Summary) Add(d *Digest, participants []performatives.Agent) {
	if d.Last.Before(s.since) || !d.Last.Before(s.until) || s.mode != "" && d.Mode != s.mode {
		return
	}
	if s.modes[d.Mode] == nil {
		s.modes[d.Mode] = &api.Ends{}
	}
	counts := append(s.kinds(d), &s.reply.Ends, s.modes[d.Mode])
	for _, a := range participants {
		if of := s.agents[a]; of != nil {
			counts = append(counts, &of.Ends)
		}
	}
	for _, ends := range counts {
		switch d.End {
		case Agreed:
			ends.Agreed++
		case Rejected:
			ends.Rejected++
		case Stalled:
			ends.Stalled++
		case Failed:
			ends.Failed++
		}
	}
	s.reply.Sessions++
	s.turns[d.Turns]++
	if d.End == Agreed {
		s.agreements = append(s.agreements, d.Agreed.Sub(d.Began))
	}
	for counts, names := range map[*map[string]int][]string{&s.objections: d.Objections, &s.terms: d.Countered, &s.rejects: d.Rejects, &s.asked: d.Asked} {
		for _, name := range names {
			(*counts)[name]++
		}
	}
	for _, e := range d.Escalations {
		if s.ours(e.By) {
			s.escalated(e)
		}
	}
}

// A scenario is what is counted of sessions between agents of some kinds.
type scenario struct {
	api.Ends
	turns map[int]int
}

// kinds are the counts of the digest's type of match and of its scenario.
func (s *Summary) kinds(d *Digest) (counts []*api.Ends) {
	if d.Type != "" {
		if s.types[d.Type] == nil {
			s.types[d.Type] = &api.TypeEnds{Type: d.Type}
		}
		counts = append(counts, &s.types[d.Type].Ends)
	}
	if d.Scenario != "" {
		if s.scenarios[d.Scenario] == nil {
			s.scenarios[d.Scenario] = &scenario{turns: map[int]int{}}
		}
		s.scenarios[d.Scenario].turns[d.Turns]++
		counts = append(counts, &s.scenarios[d.Scenario].Ends)
	}
	return counts
}

// byKind are the types of matches that came most often, and the scenarios.
func (s *Summary) byKind() (types []api.TypeEnds, scenarios []api.ScenarioEnds) {
	types, scenarios = []api.TypeEnds{}, []api.ScenarioEnds{}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		types = append(types, *s.types[name])
	}
	all := func(e api.Ends) int { return e.Agreed + e.Rejected + e.Stalled + e.Failed }
	slices.SortStableFunc(types, func(a, b api.TypeEnds) int { return cmp.Compare(all(b.Ends), all(a.Ends)) })
	for _, name := range slices.Sorted(maps.Keys(s.scenarios)) {
		of := s.scenarios[name]
		scenarios = append(scenarios, api.ScenarioEnds{Scenario: name, Ends: of.Ends, Turns: distribution(of.turns)})
	}
	return types[:min(len(types), most)], scenarios
}

func distribution(turns map[int]int) []api.TurnCount {
	all := []api.TurnCount{}
	for _, n := range slices.Sorted(maps.Keys(turns)) {
		all = append(all, api.TurnCount{Turns: n, Sessions: turns[n]})
	}
	return all
}

func (s *Summary) escalated(e Escalation) {
	c := &s.reply.Escalated
	switch e.Decision {
	case performatives.Approved:
		c.Approved++
	case performatives.Denied:
		c.Denied++
	case performatives.Modified:
		c.Modified++
	case "":
		c.Expired++
		return
	default:
		c.Guidance++
	}
	s.escalations = append(s.escalations, e.Done.Sub(e.At))
}

// most is how many names a list has.
const most = 20

// Insights is the sum.
func (s *Summary) Insights() api.Insights {
	r := s.reply
	r.Since, r.Until = api.Timestamp(s.since), api.Timestamp(s.until)
	r.Modes, r.Turns = []api.ModeEnds{}, distribution(s.turns)
	r.Types, r.Scenarios = s.byKind()
	r.Objections = frequent(recurring(s.objections))
	for _, mode := range slices.Sorted(maps.Keys(s.modes)) {
		r.Modes = append(r.Modes, api.ModeEnds{Mode: mode, Ends: *s.modes[mode]})
	}
	for _, a := range slices.Sorted(maps.Keys(s.agents)) {
		r.Agents = append(r.Agents, *s.agents[a])
	}
	r.Terms, r.Rejects, r.Asked = frequent(s.terms), frequent(s.rejects), frequent(s.asked)
	r.Agreed, r.Escalated.Time = times(s.agreements), times(s.escalations)
	return r
}

// frequent are the names that came most often.
func frequent(counts map[string]int) []api.Frequency {
	all := []api.Frequency{}
	for name, n := range counts {
		all = append(all, api.Frequency{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b api.Frequency) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name)) })
	return all[:min(len(all), most)]
}

func times(all []time.Duration) api.Times {
	if len(all) == 0 {
		return api.Times{}
	}
	slices.Sort(all)
	at := func(share float64) int64 { return all[int(share*float64(len(all)-1))].Milliseconds() }
	return api.Times{Count: len(all), Median: at(0.5), P90: at(0.9)}
}
