package adversary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const manyTerms = 20_000

// monsters are sessions that are hard to show, each of beta's making: what a human is asked to decide about.
var monsters = map[string]func(*world) performatives.SessionID{
	"an offer of very many terms": func(w *world) performatives.SessionID {
		id := w.opens(beta, alpha)
		var terms strings.Builder
		for n := range manyTerms {
			fmt.Fprintf(&terms, `,"k%05d":%d`, n, n%10)
		}
		w.Principal(beta).Say(id, &performatives.ProposeBody{ProposalID: "big", Type: "x", Subject: "s", Terms: jsontext.Value("{" + terms.String()[1:] + "}")})
		return id
	},
	"a long purpose": func(w *world) performatives.SessionID {
		id := testkit.NewSession()
		terms := fmt.Sprintf(`{"participants":[%q],"purpose":%q}`, alpha, strings.Repeat("p", 250_000))
		w.Principal(beta).Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: jsontext.Value(terms)})
		w.Principal(alpha).Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
		return id
	},
	"a subject of control characters, and a long remark": func(w *world) performatives.SessionID {
		id := w.opens(beta, alpha)
		w.Principal(beta).Say(id, &performatives.ProposeBody{ProposalID: "p", Type: "x", Subject: strings.Repeat("\x01", 41_000), Terms: jsontext.Value(`{"price":1}`)})
		w.Principal(beta).Say(id, &performatives.ObserveBody{Subject: "o", Data: jsontext.Value(`"` + strings.Repeat("x", 190_000) + `"`)})
		return id
	},
	"terms under a long name, countered": func(w *world) performatives.SessionID {
		id := w.opens(beta, alpha)
		var terms strings.Builder
		for n := range 5000 {
			fmt.Fprintf(&terms, `,"k%05d":%d`, n, n%10)
		}
		name := strings.Repeat("n", 100_000)
		w.Principal(beta).Say(id, &performatives.ProposeBody{ProposalID: "p", Type: "x", Subject: "s", Terms: jsontext.Value(`{"` + name + `":{` + terms.String()[1:] + `}}`)})
		w.Principal(alpha).Say(id, &performatives.CounterBody{ProposalID: "q", ReferenceID: "p", Terms: jsontext.Value(`{"price":1}`)})
		w.Principal(beta).Say(id, &performatives.CounterBody{ProposalID: "r", ReferenceID: "q", Terms: jsontext.Value(`{"` + name + `x":"` + strings.Repeat("v", 100_000) + `"}`)})
		return id
	},
}

// escalates has alpha escalate in each of the monsters, and in the deal.
func (w *world) escalates(urgency string) map[string]performatives.SessionID {
	w.Helper()
	all := map[string]performatives.SessionID{"the deal": w.deal}
	for name, monster := range monsters {
		all[name] = monster(w)
	}
	for _, id := range all {
		w.Principal(alpha).Say(id, &performatives.EscalateBody{Reason: "authority-limit", Urgency: urgency, Context: jsontext.Value(`"help"`)})
	}
	return all
}

// TestUndecidable: whatever the other side wrote, the item of its session can be read, by its id, in the queue
// and from the stream, says what was cut, is read in full by its parts, hides no other item, and is decided.
func TestUndecidable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sessions := w.escalates("high")
	a, js := w.Principal(alice), w.inside()
	items := map[performatives.SessionID]api.EscalationItem{}
	for cursor := ""; ; {
		page := answered[api.Escalations](t, a, api.EscalationList.Name, fmt.Sprintf(`{"cursor":%q}`, cursor))
		for _, item := range page.Escalations {
			items[item.Session] = item
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for name, id := range sessions {
		listed, there := items[id]
		if !there {
			t.Errorf("%s: the queue lacks it", name)
			continue
		}
		if size := fit.Size(listed); size > api.MaxItemBytes+4<<10 {
			t.Errorf("%s: it has %d bytes in the queue", name, size)
		}
		ref := fmt.Sprintf(`{"escalationId":%q`, listed.ID)
		item := answered[api.EscalationItem](t, a, api.EscalationGet.Name, ref+"}")
		if big := name != "the deal"; item.Truncated != big || listed.Truncated != big {
			t.Errorf("%s: that it was cut is said with %v, in the queue with %v", name, item.Truncated, listed.Truncated)
		}
		testkit.Must(t, w.Server.Broker.Command.Healthy(t.Context()))
		w.applied()
		stream, err := js.Stream(t.Context(), api.EscalationsStream)
		testkit.Must(t, err)
		if m, err := stream.GetLastMsgForSubject(t.Context(), api.Escalation("acme.com", "high", string(listed.ID))); err != nil || len(m.Data) > 1<<20 {
			t.Errorf("%s: the stream lacks it: %v", name, err)
		}
		var transcript []jsontext.Value
		for next := new(uint64); next != nil; {
			page := answered[api.EscalationItem](t, a, api.EscalationGet.Name, fmt.Sprintf(`%s,"part":"transcript","cursor":%d}`, ref, *next))
			transcript, next = append(transcript, page.Transcript...), page.Next
		}
		if messages := answered[api.Messages](t, a, api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q,"limit":1}`, id)); uint64(len(transcript)) != item.Head.Next.Sequence || string(transcript[0]) != string(messages.Messages[0]) {
			t.Errorf("%s: %d of %d entries were read", name, len(transcript), item.Head.Next.Sequence)
		}
		want(t, name, a.Call(api.EscalationGet.Name, ref+`,"part":"everything"}`), "malformed")
		w.Principal(alice).Say(id, testkit.Ruling(performatives.MessageID(listed.ID), performatives.Denied))
	}
}

// TestEveryTermCanBeRead: of an offer of 20,000 terms the item shows some, and its pages all.
func TestEveryTermCanBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := monsters["an offer of very many terms"](w)
	e := w.Principal(alpha).Say(id, &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: jsontext.Value(`"help"`)}).Message
	a, ref := w.Principal(alice), fmt.Sprintf(`{"escalationId":%q`, e)
	item := answered[api.EscalationItem](t, a, api.EscalationGet.Name, ref+"}")
	if shown, left := len(item.Changes), item.Omitted["changes"]; shown == 0 || left == 0 || shown+left != manyTerms || !item.Proposal.Truncated {
		t.Errorf("the item shows %d terms and says that it leaves out %d", shown, left)
	}
	read := map[string]string{}
	for next := new(uint64); next != nil; {
		page := answered[api.EscalationItem](t, a, api.EscalationGet.Name, fmt.Sprintf(`%s,"part":"changes","limit":1000,"cursor":%d}`, ref, *next))
		for _, c := range page.Changes {
			read[c.Path] = string(c.After)
		}
		next = page.Next
	}
	for n := range manyTerms {
		if got := read[fmt.Sprintf("terms.k%05d", n)]; got != fmt.Sprint(n%10) {
			t.Fatalf("term %d of %d is %q", n, len(read), got)
		}
	}
}

// TestUndecidableExpires: nobody answers, and each of the sessions ends when its time is over.
func TestUndecidableExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watches := w.Operates().Conn()
	over, err := watches.SubscribeSync(api.AllEvents)
	testkit.Must(t, err)
	testkit.Must(t, watches.Flush())
	left := map[performatives.SessionID]string{}
	for name, id := range w.escalates("critical") {
		left[id] = name
	}
	for len(left) > 0 {
		m, err := over.NextMsg(testkit.Patience)
		if err != nil {
			t.Fatalf("%v have not ended: %v", slices.Collect(maps.Values(left)), err)
		}
		var event struct {
			Kind    string                  `json:"kind"`
			Session performatives.SessionID `json:"sessionId"`
			Reason  string                  `json:"reason"`
		}
		testkit.Must(t, json.Unmarshal(m.Data, &event))
		if event.Kind == "closed" && event.Reason == "escalation_expired" {
			delete(left, event.Session)
		}
	}
}

// TestBigListsAreRead: six invitations of 250 KB and five cards of 64 KiB break nobody's list; each row says
// that it was cut.
func TestBigListsAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 6 {
		terms := fmt.Sprintf(`{"participants":[%q],"purpose":`, alpha) + `"` + strings.Repeat(`\u0002`, 36_000) + `"}`
		w.Principal(eve).Say(testkit.NewSession(), &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: jsontext.Value(terms)})
	}
	for _, who := range []performatives.Agent{eve, mallory, beta, bob, delta} {
		answered[api.Card](t, w.Principal(who), api.AgentRegister.Name, `{"card":{"description":"`+strings.Repeat(`\u0001`, 5_000)+fmt.Sprintf(`","kind":%q,"protocols":[%q]}}`,
			map[bool]string{true: "human", false: "personal"}[who.IsHuman()], strings.Repeat("p", 34_000)))
	}
	cut, rows := 0, 0
	for _, s := range answered[api.Sessions](t, w.Principal(alpha), api.SessionList.Name, `{}`).Sessions {
		if rows++; s.Truncated {
			cut++
		}
		if size := fit.Size(s); size > api.MaxRowBytes {
			t.Errorf("a row has %d bytes", size)
		}
	}
	if cut != 6 || rows != 7 {
		t.Errorf("alpha's list has %d sessions, of which %d are cut", rows, cut)
	}
	cut, rows = 0, 0
	for _, c := range answered[api.Agents](t, w.Principal(alpha), api.AgentList.Name, `{}`).Agents {
		if rows++; c.Truncated {
			cut++
		}
	}
	if cut != 5 || rows != len(everyone) {
		t.Errorf("agent.list has %d cards, of which %d are cut", rows, cut)
	}
	card := answered[api.Card](t, w.Principal(alpha), api.AgentGet.Name, fmt.Sprintf(`{"agentId":%q}`, eve))
	if card.Truncated || len(card.Protocols[0]) != 34_000 {
		t.Errorf("agent.get has only a part of a card")
	}
}

// answered is the reply to a call that must be answered.
func answered[A any](t testing.TB, p *testkit.Principal, verb, request string) (reply A) {
	t.Helper()
	m := p.Call(verb, request)
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		t.Fatalf("%s %.100s: %.300s", verb, request, m.Data)
	}
	testkit.Must(t, json.Unmarshal(m.Data, &reply))
	return reply
}
