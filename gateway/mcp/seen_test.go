package mcpgateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// says has an agent say an act by HTTP.
func (w world) says(by performatives.Agent, id performatives.SessionID, p, body string) {
	w.Helper()
	w.Send("POST", testkit.SessionPath(id)+"/messages", w.Tokens[by], fmt.Sprintf(`{"performative":%q,"body":%s}`, p, body)).Is(http.StatusOK, nil)
}

// offers has the seller offer cups at a price, about a subject.
func (w world) offers(id performatives.SessionID, proposal, subject string, price int) {
	w.Helper()
	w.says(seller, id, "PROPOSE", fmt.Sprintf(`{"proposalId":%q,"type":"service-agreement","subject":%q,"terms":{"price":%d}}`, proposal, subject, price))
}

// offered is a session in which the seller offers p1.
func (w world) offered() performatives.SessionID {
	w.Helper()
	var opened said
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller)).Is(http.StatusCreated, &opened)
	w.says(seller, opened.Session, "ACCEPT", `{"referenceId":"invitation"}`)
	w.offers(opened.Session, "p1", "cups", 120)
	return opened.Session
}

// assessed is what the tools of Index's agents are called with.
func assessed(id performatives.SessionID, action string) anything {
	return anything{"negotiationId": id, "action": action, "reasoning": "r", "suggestedRoles": anything{"ownUser": "peer", "otherUser": "peer"}}
}

// GATEWAYS.md G9: what names nothing is not said about an offer that came after what was shown; with the
// view that the refusal shows, it is.
func TestMCPDecidesOnWhatItShowed(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	kit, all := w.trader(cron).assistant, w.assistant(w.Tokens[cron])
	shown := func(tool string, more anything) func(assistant, performatives.SessionID) {
		return func(a assistant, id performatives.SessionID) {
			args := anything{}
			for name, value := range more {
				if args[name] = value; value == "id" {
					args[name] = id
				}
			}
			a.does(tool, args, nil)
		}
	}
	got, listed := shown("get_negotiation", anything{"negotiationId": "id"}), shown("list_negotiations", anything{"limit": 1})
	for name, of := range map[string]struct {
		by     assistant
		show   func(assistant, performatives.SessionID)
		action string
		index  bool
	}{
		"got, accept":         {kit, got, "accept", false},
		"got, reject":         {kit, got, "reject", false},
		"got, counter":        {kit, got, "counter", false},
		"got, as Index":       {kit, got, "accept", true},
		"waited, accept":      {kit, shown("wait_for_turn", anything{"negotiationId": "id", "seconds": 1}), "accept", false},
		"listed, accept":      {kit, listed, "accept", false},
		"all: got, accept":    {all, got, "accept", true},
		"all: got, counter":   {all, got, "counter", true},
		"all: listed, accept": {all, listed, "accept", true},
		"all: waited, accept": {all, shown("wait_for_turn", anything{"sessionId": "id", "seconds": 1}), "accept", true},
		"all: read, accept":   {all, shown("get_transcript", anything{"sessionId": "id"}), "accept", true},
	} {
		id := w.offered()
		of.show(of.by, id)
		w.says(seller, id, "OBSERVE", `{"subject":"this changes no offer"}`)
		w.offers(id, "p2", "cups", 999)
		args := anything{"negotiationId": id, "action": of.action, "reason": "r"}
		if of.index {
			args = assessed(id, of.action)
		}
		if of.action == "counter" {
			args["terms"] = anything{"count": 5}
		}
		if text := textOf(of.by.refused("respond_to_negotiation", "chain_conflict", args)); !strings.Contains(text, `"price":999`) {
			t.Errorf("%s: refused without the view: %s", name, text)
		}
		if now := w.trader(cron).call("get_negotiation", anything{"negotiationId": id}); now.Agreed != "" || len(now.Offers) != 2 || now.Offers[1].Status != "open" {
			t.Errorf("%s: something was said: %+v", name, now.Offers)
		}
		of.by.does("respond_to_negotiation", args, nil)
	}
}

// Of two commitments the one that was shown is accepted; what changes no offer holds nothing up.
func TestMCPCommitmentShown(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, id := w.trader(cron), w.offered()
	buyer.call("get_negotiation", anything{"negotiationId": id})
	w.says(seller, id, "OBSERVE", `{"subject":"this changes no offer"}`)
	buyer.respond(id, "accept", nil)
	commit := func(commitment, does string) {
		w.says(seller, id, "COMMIT", fmt.Sprintf(`{"commitmentId":%q,"referenceId":"p1","terms":{"obligations":[{"party":%q,"action":%q}]}}`, commitment, seller, does))
	}
	commit("c1", "deliver")
	buyer.call("get_negotiation", anything{"negotiationId": id})
	w.says(seller, id, "WITHDRAW", `{"referenceId":"c1"}`)
	commit("c2", "deliver half")
	accept := anything{"negotiationId": id, "action": "accept"}
	if text := textOf(buyer.refused("respond_to_negotiation", "chain_conflict", accept)); !strings.Contains(text, "deliver half") {
		t.Errorf("refused without the commitment: %s", text)
	}
	buyer.respond(id, "accept", nil)
}

// What another process may have shown, before a restart, is not what is decided on.
func TestMCPForgotten(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer, one, two := w.trader(cron), w.offered(), w.offered()
	w.offers(two, "p2", "cups", 999)
	buyer.respond(one, "accept", nil)
	accept := anything{"negotiationId": two, "action": "accept"}
	if text := textOf(buyer.refused("respond_to_negotiation", "chain_conflict", accept)); !strings.Contains(text, `"price":999`) {
		t.Errorf("refused without the offer: %s", text)
	}
	buyer.respond(two, "accept", nil)
}

// Who opened a negotiation and looked at nothing since accepts nothing by accident.
func TestMCPOpenerSawNothing(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	buyer := w.trader(cron)
	opened := buyer.call("open_negotiation", anything{"with": []any{seller}, "purpose": "cups"})
	w.says(seller, opened.ID, "ACCEPT", `{"referenceId":"invitation"}`)
	w.offers(opened.ID, "p1", "cups", 120)
	buyer.refused("respond_to_negotiation", "chain_conflict", anything{"negotiationId": opened.ID, "action": "accept"})
}

// An acceptance of other terms is none.
func TestMCPAcceptTakesNoTerms(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	kit, all, id := w.trader(cron).assistant, w.assistant(w.Tokens[cron]), w.offered()
	for _, action := range []string{"accept", "reject"} {
		plain := anything{"negotiationId": id, "action": action, "reason": "r", "terms": anything{"price": 1}}
		index := assessed(id, action)
		index["terms"] = plain["terms"]
		for name, text := range map[string]string{
			"kit":          textOf(kit.refused("respond_to_negotiation", "malformed", plain)),
			"kit as Index": textOf(kit.refused("respond_to_negotiation", "malformed", index)),
			"all":          textOf(all.refused("respond_to_negotiation", "malformed", index)),
		} {
			if !strings.Contains(text, "counter offers other terms") {
				t.Errorf("%s: %s with terms is refused %s", name, action, text)
			}
		}
	}
}

// Of two offers an acceptance that names none asks which, by Index's tool as well.
func TestMCPAsksWhichOffer(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	id := w.offered()
	w.offers(id, "p2", "lids", 9)
	for _, a := range []assistant{w.trader(cron).assistant, w.assistant(w.Tokens[cron])} {
		if text := textOf(a.refused("respond_to_negotiation", "malformed", assessed(id, "accept"))); !strings.Contains(text, "p1, p2") {
			t.Errorf("refused %s", text)
		}
	}
}
