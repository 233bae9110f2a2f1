package demo

import (
	"context"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// bilateralMatch is a session in bilateral/1: two agents, each for its user, assess
// in turns whether a match is good for both.
func bilateralMatch() scene {
	const (
		maya  = performatives.Agent("agent://index.example/negotiators/maya")
		jonas = performatives.Agent("agent://jonas.example/assistant")
	)
	score := 78.0
	return scene{
		name: "bilateral", title: "A match, assessed in turns (bilateral/1)",
		shows: "Two sides take turns, eight at most, each with an assessment. Each side names its own role in the agreement.",
		opening: client.Invitation{
			With: []performatives.Agent{jonas}, Purpose: "Maya's climate atlas and Jonas's map rendering", Mode: "bilateral/1", MaxDuration: sessionTime,
			SeedAssessment: &performatives.SeedAssessment{
				Score: &score, Reasoning: "She looks for a cartographer, he for a project with a public", ValencyRole: "patient",
				Actors: []performatives.SeedActor{{UserID: "maya", Role: "patient"}, {UserID: "jonas", Role: "agent"}},
			},
		},
		cast: []role{
			{agent: maya, name: "Maya's negotiator", kind: performatives.KindSystem, rules: seeksCartographer},
			{agent: jonas, name: "Jonas's assistant", kind: performatives.KindPersonal, rules: assessesWork},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → CLARIFY → INFORM → COUNTER → ACCEPT",
		agreed:  "match_2",
		outcome: "pending",
	}
}

type match struct {
	Work         string `json:"work"`
	HoursPerWeek int    `json:"hoursPerWeek"`
	Credit       string `json:"credit"`
}

// An assessment goes with every turn of bilateral/1.
type assessment struct {
	Reasoning string `json:"reasoning"`
	Roles     struct {
		Own   string `json:"ownUser"`
		Other string `json:"otherUser"`
	} `json:"suggestedRoles"`
}

// assessed adds an assessment: the reasoning, and a role for each user.
func assessed(reasoning, own, other string) client.ActOption {
	a := assessment{Reasoning: reasoning}
	a.Roles.Own, a.Roles.Other = own, other
	return client.Assess(a)
}

// seeksCartographer speaks for the user who looks for help, the patient.
func seeksCartographer(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	switch body := m.Body().(type) {
	case *performatives.AcceptBody:
		if m.State() != session.Introduced {
			return nil
		}
		return sent(s.Propose(ctx, client.Proposal{
			ID: "match_1", Type: "collaboration", Subject: "Render the maps of a climate atlas",
			Terms: match{Work: "40 regional maps", HoursPerWeek: 10, Credit: "named on the cover"},
		}, assessed("His renderer does what her atlas lacks", "patient", "agent")))
	case *performatives.ClarifyBody:
		answers := map[string]any{}
		for _, q := range body.Questions {
			answers[q.Field] = "an upper bound"
		}
		return sent(s.Answer(ctx, body.ReferenceID, answers))
	case *performatives.CounterBody:
		offer, err := client.Terms[match](m)
		if err != nil {
			return err
		}
		if offer.HoursPerWeek < 5 {
			return sent(s.Reject(ctx, m.Ref(), client.Rejection{Reason: "The atlas would not be done in time"},
				assessed("Too few hours to finish", "peer", "peer")))
		}
		return sent(s.Accept(ctx, m.Ref(), assessed("Six hours are enough for forty maps", "patient", "agent")))
	default:
		return nil
	}
}

// assessesWork speaks for the user who would do the work. In this mode only a
// personal agent may ask questions.
func assessesWork(ctx context.Context, _ *actor, m *client.Message) error {
	const most = 6 // hours per week
	s := m.Session()
	switch body := m.Body().(type) {
	case *performatives.ProposeBody:
		if isInvitation(m) {
			return sent(s.Accept(ctx, m.Ref()))
		}
		return sent(s.Say(ctx, &performatives.ClarifyBody{
			ReferenceID: m.Ref(),
			Questions:   []performatives.Question{{Field: "terms.hoursPerWeek", Question: "Is that an upper bound or what you expect every week?"}},
		}, assessed("The work fits; the hours may not", "agent", "patient")))
	case *performatives.InformBody:
		given, ok := body.Answers()
		if !ok {
			return nil
		}
		return sent(s.Counter(ctx, given.ReferenceID, client.Proposal{
			ID: "match_2", Terms: match{Work: "40 regional maps", HoursPerWeek: most, Credit: "named on the cover"},
		}, client.Because("He has six hours a week"), assessed("Good for both, in the time he has", "agent", "patient")))
	default:
		return nil
	}
}
