package negotiator_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// seeds/index-network-negotiation.txt: without a policy of one's own, a match without numbers is
// judged by its assessments: it is never policy-ambiguous.
func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, invitation, terms, own, other string
		want                                []string // what the seller says, the buyer repeating its offer after a counter
	}{
		{"roles fit", ``, `{"topic":"boats"}`, "agent", "patient", []string{"ACCEPT"}},
		{"peers", ``, `{}`, "peer", "peer", []string{"ACCEPT"}},
		{"roles do not fit", ``, `{}`, "agent", "agent", []string{"COUNTER", "REJECT"}},
		{"a good seed", `"seedAssessment":{"score":80,"reasoning":"both build boats"}`, `{}`, "peer", "peer", []string{"ACCEPT"}},
		{"a poor seed", `"seedAssessment":{"score":10,"reasoning":"one word in common"}`, `{}`, "peer", "peer", []string{"REJECT"}},
		{"a middling seed", `"context":{"seedAssessment":{"score":40,"reasoning":"perhaps"}}`, `{}`, "peer", "peer", []string{"COUNTER", "REJECT"}},
		{"a standing offer", `"policy":{"acceptStandingOnly":true}`, `{}`, "peer", "peer", []string{"ACCEPT"}},
		{"a price", ``, `{"price":5}`, "peer", "peer", []string{"ESCALATE"}},
		{"obligations", `"policy":{"execution":true}`, `{"obligations":[{"party":"agent://widgets.co/seller","action":"pay","verificationMethod":"by eye"}]}`, "peer", "peer", []string{"ESCALATE"}},
		{"a price in words", ``, `{"offer":"5 EUR"}`, "peer", "peer", []string{"ESCALATE"}},
		{"full-width digits", ``, `{"offer":"１０ EUR"}`, "peer", "peer", []string{"ESCALATE"}},
		{"digits in a name", ``, `{"offer":{"10 EUR":true}}`, "peer", "peer", []string{"ESCALATE"}},
		{"a fee in letters", ``, `{"fee":"ten thousand EUR"}`, "peer", "peer", []string{"ESCALATE"}},
		{"a fee in the reasoning", ``, `{"assessment":{"reasoning":{"fee":10}}}`, "peer", "peer", []string{"ESCALATE"}},
		{"what it is worth", ``, `{"value":"European boats","cost":null}`, "peer", "peer", []string{"ACCEPT"}},
		{"a fee in the assessment", ``, `{"assessment":{"reasoning":"20 years at sea","fee":10}}`, "peer", "peer", []string{"ESCALATE"}},
		{"numbers in the reasoning", ``, `{"assessment":{"reasoning":"20 years at sea"}}`, "peer", "peer", []string{"ACCEPT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{Dev: true})
			policy, err := negotiator.Default()
			testkit.Must(t, err)
			sells := &negotiator.Agent{Self: seller, Policy: policy, Broker: w.Client(seller), Worker: "n"}
			buys := w.Principal(buyer)
			id := testkit.NewSession()
			terms := fmt.Appendf(nil, `{"participants":[%q],"mode":"bilateral/1"%s}`, seller, map[bool]string{true: "," + c.invitation}[c.invitation != ""])
			buys.Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: terms})
			haggle(w, sells)
			remark := performatives.Remarks{Assessment: performatives.Object(fmt.Appendf(nil, `{"reasoning":"r","suggestedRoles":{"ownUser":%q,"otherUser":%q}}`, c.own, c.other))}
			buys.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "opportunity", Subject: "s", Terms: []byte(c.terms), Remarks: remark})
			var did []string
			for i := range c.want {
				for _, what := range haggle(w, sells) {
					did = append(did, what[:len(what)-len(" in ")-len(id)])
				}
				if i+1 < len(c.want) {
					v := view(w, id)
					last := v.Proposals[len(v.Proposals)-1]
					var said struct {
						Assessment struct {
							Reasoning string `json:"reasoning"`
						} `json:"assessment"`
					}
					if err := json.Unmarshal(last.Terms, &said); err != nil || said.Assessment.Reasoning == "" {
						t.Errorf("the counter says %s", last.Terms)
					}
					buys.Say(id, &performatives.CounterBody{ProposalID: "p2", ReferenceID: last.Proposal, Terms: []byte(c.terms), Remarks: remark})
				}
			}
			if fmt.Sprint(did) != fmt.Sprint(c.want) {
				t.Errorf("the seller says %q, want %q", did, c.want)
			}
		})
	}
}

// The first turn presents the match, and both sides' negotiators agree on it; also where an ACCEPT
// takes a PROPOSE only and a counter came between.
func TestMatchAmongNegotiators(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	policy, err := negotiator.Default()
	testkit.Must(t, err)
	agents := []*negotiator.Agent{}
	for _, a := range []performatives.Agent{buyer, seller} {
		agents = append(agents, &negotiator.Agent{Self: a, Policy: policy, Broker: w.Client(a), Worker: "n"})
	}
	id := invite(w, "bilateral/1")
	did := haggle(w, agents...)
	if v := view(w, id); len(did) != 3 || len(v.Proposals) != 1 || v.Proposals[0].Status != "accepted" {
		t.Errorf("after %q it is %+v", did, v.Proposals)
	}

	s, err := w.Client(buyer).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller}, Purpose: "x", Mode: "bilateral/1", Policy: map[string]bool{"acceptStandingOnly": true}})
	testkit.Must(t, err)
	haggle(w, agents[1])
	peers := performatives.Remarks{Assessment: performatives.Object(`{"reasoning":"r","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}`)}
	w.Principal(buyer).Say(s.ID(), &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "s", Terms: []byte(`{}`), Remarks: peers})
	w.Principal(seller).Say(s.ID(), &performatives.CounterBody{ProposalID: "p2", ReferenceID: "p1", Terms: []byte(`{"when":"?"}`), Remarks: peers})
	haggle(w, agents...)
	if v := view(w, s.ID()); len(v.Proposals) != 3 || v.Proposals[2].Status != "accepted" || v.Proposals[2].From != buyer {
		t.Errorf("the offers are %+v", v.Proposals)
	}
}
