package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
)

// The cache counts bytes, forgets the session that worked longest ago first, and never
// one that has something to do. What is forgotten is read again.
func TestCacheCountsBytes(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	l := limited(t, limits.Limits{})
	l.Server.Broker.Command.CacheBytes(most)
	var all []performatives.SessionID
	for range 8 {
		id := newID()
		l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
		l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
		l.accepted(l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p","type":"x","subject":"x","terms":{"x":%q}}`, strings.Repeat("x", 150_000))))
		all = append(all, id)
	}
	if n := l.Server.Broker.Command.Cached(); n > most {
		t.Errorf("%d bytes are cached, of at most %d", n, most)
	}
	if l.Server.Broker.Command.InMemory(all[0]) || !l.Server.Broker.Command.InMemory(all[7]) {
		t.Error("not the session that worked longest ago was forgotten")
	}
	letGo := l.Server.Broker.Command.Hold(all[6])
	for _, id := range all[:5] {
		l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"p"}`))
	}
	if !l.Server.Broker.Command.InMemory(all[6]) {
		t.Error("a session was forgotten while it worked")
	}
	letGo()
}

// Long offers that are over are not in memory, and are read for those who escalate about
// them: what a human is shown has the terms before, too.
func TestOffersThatAreOver(t *testing.T) {
	t.Parallel()
	const long = 100_000
	l := limited(t, limits.Limits{})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	terms := func(n int) string { return fmt.Sprintf(`{"price":%d,"x":%q}`, n, strings.Repeat("x", long)) }
	l.accepted(l.says(id, alpha, "PROPOSE", `{"proposalId":"p0","type":"x","subject":"x","terms":`+terms(0)+`}`))
	sides := []performatives.Agent{beta, alpha}
	for n := 1; n < 20; n++ {
		l.accepted(l.says(id, sides[(n-1)%2], "COUNTER", fmt.Sprintf(`{"proposalId":"p%d","referenceId":"p%d","terms":%s}`, n, n-1, terms(n))))
	}
	check := func(when string) {
		t.Helper()
		var view struct {
			Proposals []struct {
				Terms     json.RawMessage
				Truncated bool
			}
		}
		l.reads(api.SessionGet.Name, `{"sessionId":"`+string(id)+`"}`, &view)
		if n := len(view.Proposals); n != 20 || !view.Proposals[0].Truncated || view.Proposals[19].Truncated || view.Proposals[19].Terms == nil {
			t.Errorf("%s: the view has %d proposals, and not the open one whole and the others cut", when, n)
		}
		if n := l.Server.Broker.Command.Cached(); n < long || n > 6*long {
			t.Errorf("%s: %d bytes are cached for one open offer of %d", when, n, long)
		}
	}
	check("live")
	l.Down()
	l.Up()
	l.nc = l.Plain()
	check("after a restart")
	l.accepted(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x","referenceId":"p18"}`))
	var list api.Escalations
	l.reads(api.EscalationList.Name, `{}`, &list)
	if len(list.Escalations) != 1 {
		t.Fatalf("%d escalations", len(list.Escalations))
	}
	var item api.EscalationItem
	l.reads(api.EscalationGet.Name, fmt.Sprintf(`{"escalationId":%q}`, list.Escalations[0].ID), &item)
	if item.Amount == nil || item.Amount.Value != 18 || item.Proposal == nil || item.Previous == nil || len(item.Proposal.Terms) == 0 || len(item.Previous.Terms) == 0 {
		t.Errorf("amount %v, proposal %v, previous %v", item.Amount, item.Proposal != nil, item.Previous != nil)
	}
}
