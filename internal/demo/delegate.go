package demo

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// delegationMidSession is pattern 5.
func delegationMidSession() scene {
	const (
		seller  = performatives.Agent("agent://insights.example/sales/analytics")
		buyer   = performatives.Agent("agent://acme.example/procurement/alpha")
		checker = performatives.Agent("agent://acme.example/specialists/compliance-checker")
	)
	return scene{
		name: "delegation", title: "Delegation mid-session",
		shows:   "The buyer delegates a check to its own specialist, who joins with advisory authority: it may inform, and the buyer decides.",
		opening: client.Invitation{With: []performatives.Agent{buyer}, Purpose: "Offer customer analytics", MaxDuration: sessionTime},
		cast: []role{
			{agent: seller, name: "Analytics sales", kind: performatives.KindSystem, rules: sellsAnalytics},
			{agent: buyer, name: "Procurement alpha", kind: performatives.KindSystem, rules: buysCompliant(seller, checker)},
			{agent: checker, name: "Compliance checker", kind: performatives.KindSystem, rules: checksGDPR},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → DELEGATE → ACCEPT → INFORM → ACCEPT → COMMIT → ACCEPT → CLOSE",
		agreed:  "prop_040",
		outcome: performatives.Completed,
	}
}

type analytics struct {
	DataCategories []string `json:"dataCategories"`
	Region         string   `json:"region"`
	Subprocessors  []string `json:"subprocessors"`
	RetentionDays  int      `json:"retentionDays"`
	PricePerMonth  float64  `json:"pricePerMonth"`
}

// sellsAnalytics proposes, and accepts a commitment that requires no more of it
// than an audit.
func sellsAnalytics(ctx context.Context, a *actor, m *client.Message) error {
	s := m.Session()
	switch body := m.Body().(type) {
	case *performatives.AcceptBody:
		if m.State() != session.Introduced {
			return nil
		}
		return sent(s.Propose(ctx, client.Proposal{
			ID: "prop_040", Type: "service-agreement", Subject: "Customer analytics",
			Terms: analytics{
				DataCategories: []string{"contact", "usage"}, Region: "eu-central-1",
				Subprocessors: []string{}, RetentionDays: 90, PricePerMonth: 1200,
			},
		}))
	case *performatives.CommitBody:
		for _, o := range body.Terms.Obligations {
			if o.Party == a.Agent() && !strings.Contains(o.Action, "audit") {
				return sent(s.Reject(ctx, m.Ref(), client.Rejection{Reason: "We owe no more than an audit"}))
			}
		}
		return sent(s.Accept(ctx, m.Ref()))
	default:
		return nil
	}
}

// findings are what the specialist reports.
type findings struct {
	Assessment string   `json:"assessment"`
	Details    string   `json:"details"`
	Conditions []string `json:"conditions"`
}

// buysCompliant has offers checked, accepts a compliant one, and turns the
// conditions into obligations of the seller.
func buysCompliant(seller, checker performatives.Agent) rules {
	offer, found := "", findings{}
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch body := m.Body().(type) {
		case *performatives.ProposeBody:
			if isInvitation(m) {
				return sent(s.Accept(ctx, m.Ref()))
			}
			offer = m.Ref()
			return sent(s.Delegate(ctx, checker, client.Delegation{
				Scope:     "Verify that proposed data handling terms comply with GDPR Article 28",
				Authority: client.Advisory, For: offer,
			}))
		case *performatives.InformBody:
			if m.From() != checker {
				return nil
			}
			if err := json.Unmarshal(body.Data, &found); err != nil {
				return err
			}
			if found.Assessment != "compliant" {
				return sent(s.Reject(ctx, offer, client.Rejection{
					Code: client.PolicyViolation, Reason: "Compliance check failed: " + found.Details, Retryable: true,
				}))
			}
			if _, err := s.Accept(ctx, offer); err != nil {
				return err
			}
			var owed []performatives.Obligation
			for _, condition := range found.Conditions {
				owed = append(owed, performatives.Obligation{Party: seller, Action: condition})
			}
			return sent(s.Commit(ctx, client.Commitment{ID: "commit_040", For: offer, Obligations: owed}))
		case *performatives.AcceptBody:
			if m.From() != seller {
				return nil // the specialist joined
			}
			return sent(s.Close(ctx, client.Closing{Summary: "Agreed, on the conditions of the compliance check", Outcome: performatives.Completed}))
		default:
			return nil
		}
	}
}

// checksGDPR joins, reads the terms of the offer, and reports.
func checksGDPR(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	asked, ok := m.Body().(*performatives.DelegateBody)
	if !ok {
		return nil
	}
	if _, err := s.Accept(ctx, m.Ref()); err != nil {
		return err
	}
	view, err := s.View(ctx)
	if err != nil {
		return err
	}
	for _, p := range view.Proposals {
		var terms analytics
		if p.Proposal != asked.ReferenceID {
			continue
		}
		if err := json.Unmarshal(p.Terms, &terms); err != nil {
			return err
		}
		return sent(s.Inform(ctx, performatives.Result, article28(terms)))
	}
	return sent(s.Inform(ctx, performatives.ErrorReport, "there is no proposal "+asked.ReferenceID))
}

func article28(terms analytics) findings {
	if !strings.HasPrefix(terms.Region, "eu-") || len(terms.Subprocessors) > 0 {
		return findings{Assessment: "non-compliant", Details: "The data leaves the processor or the Union", Conditions: []string{}}
	}
	return findings{
		Assessment: "compliant",
		Details:    "Data handling terms satisfy GDPR Article 28",
		Conditions: []string{"Have the processing audited once a year"},
	}
}
