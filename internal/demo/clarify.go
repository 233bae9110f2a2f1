package demo

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// clarificationRound is pattern 4.
func clarificationRound() scene {
	const (
		seller = performatives.Agent("agent://stores.example/sales/replicas")
		buyer  = performatives.Agent("agent://acme.example/platform/databases")
	)
	return scene{
		name: "clarification-round", title: "Clarification round",
		shows:   "Two terms are ambiguous: CLARIFY blocks the proposal until its author has answered both questions.",
		opening: client.Invitation{With: []performatives.Agent{buyer}, Purpose: "Offer database replication", MaxDuration: sessionTime},
		cast: []role{
			{agent: seller, name: "Replica sales", kind: performatives.KindSystem, rules: sellsReplicas},
			{agent: buyer, name: "Database platform", kind: performatives.KindSystem, rules: buysReplicas()},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → CLARIFY → INFORM → ACCEPT → CLOSE",
		agreed:  "prop_030",
		outcome: performatives.Completed,
	}
}

type replication struct {
	ReplicationFactor int    `json:"replicationFactor"`
	ConsistencyLevel  string `json:"consistencyLevel"`
	StorageLimit      string `json:"storageLimit"`
}

// sellsReplicas answers questions about its own terms.
func sellsReplicas(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	switch body := m.Body().(type) {
	case *performatives.AcceptBody:
		if m.State() == session.Introduced {
			return sent(s.Propose(ctx, client.Proposal{
				ID: "prop_030", Type: "service-agreement", Subject: "Database replication service",
				Terms: replication{ReplicationFactor: 3, ConsistencyLevel: "strong", StorageLimit: "500 GB"},
			}))
		}
		return sent(s.Close(ctx, client.Closing{Summary: "Agreed on " + body.ReferenceID, Outcome: performatives.Completed}))
	case *performatives.ClarifyBody:
		answers := map[string]any{}
		for _, q := range body.Questions {
			switch q.Field {
			case "terms.consistencyLevel":
				answers[q.Field] = "linearizable"
			case "terms.storageLimit":
				answers[q.Field] = "per-replica"
			default:
				answers[q.Field] = "See documentation"
			}
		}
		return sent(s.Answer(ctx, body.ReferenceID, answers))
	default:
		return nil
	}
}

// buysReplicas asks about ambiguous terms, and accepts if the answers are the
// expected ones.
func buysReplicas() rules {
	wanted := map[string]jsontext.Value{
		"terms.consistencyLevel": jsontext.Value(`"linearizable"`),
		"terms.storageLimit":     jsontext.Value(`"per-replica"`),
	}
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch body := m.Body().(type) {
		case *performatives.ProposeBody:
			if isInvitation(m) {
				return sent(s.Accept(ctx, m.Ref()))
			}
			return sent(s.Clarify(ctx, m.Ref(), []client.Question{
				client.Ask("terms.consistencyLevel", "Does 'strong' refer to linearizable or sequential consistency?", "linearizable", "sequential", "causal"),
				client.Ask("terms.storageLimit", "Is the 500 GB limit per replica or total across all replicas?", "per-replica", "total"),
			}))
		case *performatives.InformBody:
			given, ok := body.Answers()
			if !ok {
				return nil
			}
			for _, a := range given.Answers {
				if !performatives.Equal(a.Answer, wanted[a.Field]) {
					return sent(s.Reject(ctx, given.ReferenceID, client.Rejection{Reason: a.Field + " is not what we need", Retryable: true}))
				}
			}
			return sent(s.Accept(ctx, given.ReferenceID))
		default:
			return nil
		}
	}
}
