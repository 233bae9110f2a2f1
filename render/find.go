package render

import (
	"fmt"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
)

// Proposals lists the candidates for a task, best first, with the subscores and the reasons.
func Proposals(p api.Proposals, s Style) string {
	var rows [][]span
	for i, c := range p.Candidates {
		score := fmt.Sprintf("%.4f", c.Score)
		if !c.Accepted {
			score = "-"
		}
		rows = append(rows, []span{
			said(fmt.Sprint(i + 1)), said(string(c.Agent)), said(score), said(string(c.Source)), hushed(subscores(c)), hushed(why(c)),
		})
	}
	text := table(s, "nobody could do it", []column{
		{"", fixed}, {"AGENT", fixed}, {"SCORE", fixed}, {"BY", optional}, {"SKILL IO SPEED LOAD COST", optional}, {"WHY", flexibleOptional},
	}, rows)
	return text + fmt.Sprintf("%d asked, %d answered themselves\n", p.Asked, p.Answered)
}

func subscores(c discovery.Candidate) string {
	s := c.Subscores
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.2f %.2f %.2f %.2f %.2f", s.SkillMatch, s.IOCompatibility, s.Performance, s.Load, s.Cost)
}

// why is the reason of a refusal, or of the best match, and what the ranking went by.
func why(c discovery.Candidate) string {
	if c.Rejection != "" {
		return string(c.Rejection)
	}
	var reasons []string
	if len(c.Matches) > 0 {
		reasons = []string{c.Matches[0].Name + ": " + strings.Join(c.Matches[0].Reasons, "; ")}
	}
	if c.Why != "" {
		reasons = append(reasons, c.Why)
	}
	return strings.Join(reasons, "; ")
}
