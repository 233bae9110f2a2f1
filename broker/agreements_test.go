package broker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/testkit"
)

// agree opens a session with a policy in which a price is agreed.
func agree(w *testkit.World, policy string) (performatives.SessionID, agreement.ID) {
	w.Helper()
	a, b, id := w.Principal(alpha), w.Principal(beta), testkit.NewSession()
	terms := fmt.Appendf(nil, `{"participants":[%q],"policy":%s}`, beta, policy)
	a.Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a deal", Terms: terms})
	b.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	a.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "x", Subject: "x", Terms: []byte(`{"price":5,"secret":"s"}`)})
	b.Say(id, &performatives.AcceptBody{ReferenceID: "p1"})
	a.Say(id, owes("k1", "p1"))
	b.Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
	return id, agreement.IDOf(id, "p1")
}

// owes is a commitment of alpha's that carries a proposal out.
func owes(id, of string) *performatives.CommitBody {
	return &performatives.CommitBody{CommitmentID: id, ReferenceID: of, Terms: &performatives.CommitmentTerms{
		Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}},
	}}
}

// get asks for an agreement until it has its position in the log.
func get(w *testkit.World, request string) (data []byte, d agreement.Document) {
	w.Helper()
	for d.Log == nil {
		if w.Ctx.Err() != nil {
			w.Fatal("the agreement does not come into the log")
		}
		data = w.Principal(alpha).Call(api.AgreementGet.Name, request).Data
		testkit.Must(w, json.Unmarshal(data, &d))
	}
	return data, d
}

// GATEWAYS.md G4: an agreement is there for its parties as soon as the ACCEPT is answered, with its
// position in the log soon after, and decides offline.
func TestAgreement(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	id, deal := agree(w, `{}`)
	var at agreement.Document
	testkit.Must(t, json.Unmarshal(w.Principal(beta).Call(api.AgreementGet.Name, fmt.Sprintf(`{"agreementId":%q}`, deal)).Data, &at))
	if at.ID != deal || at.Negotiation.Session() != id {
		t.Errorf("right after the ACCEPT: %+v", at)
	}
	key, err := inclusion.ParseKey(w.Server.Broker.Parts.Ledger.VerifierKey())
	testkit.Must(t, err)
	data, d := get(w, fmt.Sprintf(`{"sessionId":%q}`, id))
	report := agreement.Verify(data, agreement.Trust{Broker: w.Server.Broker.Command.Key(), Log: key})
	if len(report.Faults) > 0 || !report.Logged {
		t.Errorf("%+v", report)
	}
	if string(d.Log.Leaf) != fmt.Sprintf(`{"at":%q,"hash":%q,"type":"agreement"}`, acceptedAt(t, d), d.Hash) {
		t.Errorf("the leaf is %s", d.Log.Leaf)
	}
	for i := 0; i < len(data); i += 13 { // TestEveryByte in package agreement changes all
		changed := append([]byte{}, data...)
		changed[i] ^= 1
		if r := agreement.Verify(changed, agreement.Trust{Broker: w.Server.Broker.Command.Key(), Log: key}); len(r.Faults) == 0 {
			around := string(changed[max(0, i-30):min(len(changed), i+30)])
			t.Errorf("byte %d can be changed: …%s…", i, around)
		}
	}
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+"/log/checkpoint", nil)
	testkit.Must(t, err)
	answer, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	signed, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	if c, err := inclusion.Open(string(signed), key); err != nil || c.Tree.N != 1 {
		t.Errorf("the checkpoint is %s, %v", signed, err)
	}
}

func acceptedAt(t *testing.T, d agreement.Document) string {
	t.Helper()
	_, stamp, _, err := performatives.ReadDelivered(d.Evidence.Acceptance)
	testkit.Must(t, err)
	return stamp.Receipt.AcceptedAt
}

// terms.policy.publish lets a leaf show terms.
func TestPublishedTerms(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	for policy, terms := range map[string]string{`{"publish":"hash"}`: "", `{"publish":"terms"}`: `{"obligations":[{"action":"pay","party":"` + string(alpha) + `"}],"price":5,"secret":"s"}`, `{"publish":["price"]}`: `{"price":5}`} {
		id, _ := agree(w, policy)
		_, d := get(w, fmt.Sprintf(`{"sessionId":%q}`, id))
		leaf, err := inclusion.ReadLeaf(d.Log.Leaf)
		testkit.Must(t, err)
		if got := len(leaf.Terms); got > 0 != (terms != "") || terms != "" && !strings.Contains(string(d.Log.Leaf), `"terms":`+terms+`,"type"`) {
			t.Errorf("%s: the leaf is %s", policy, d.Log.Leaf)
		}
	}
	a := w.Principal(alpha)
	for _, policy := range []string{`{"publish":"all"}`, `{"publish":[1]}`, `{"publish":{}}`} {
		id := testkit.NewSession()
		terms := fmt.Appendf(nil, `{"participants":[%q],"policy":%s}`, beta, policy)
		testkit.Refused(t, a.Submit(id, a.Envelope(id, &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: terms,
		})), session.SchemaInvalid)
	}
}

// agreement.list: the newest session first, page by page; outsiders see and learn nothing.
func TestAgreementList(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	var deals []agreement.ID
	for range 5 {
		_, deal := agree(w, `{}`)
		deals = append([]agreement.ID{deal}, deals...)
	}
	last, both := w.Principal(alpha), testkit.NewSession()
	last.Say(both, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "two deals", Terms: fmt.Appendf(nil, `{"participants":[%q]}`, beta)})
	w.Principal(beta).Say(both, &performatives.AcceptBody{ReferenceID: "inv"})
	for _, p := range []string{"p1", "p2"} {
		last.Say(both, &performatives.ProposeBody{ProposalID: p, Type: "x", Subject: "x", Terms: []byte(`{"price":6}`)})
		w.Principal(beta).Say(both, &performatives.AcceptBody{ReferenceID: p})
	}
	last.Say(both, owes("k1", "p1"))
	last.Say(both, owes("k2", "p2"))
	for _, k := range []string{"k1", "k2"} {
		w.Principal(beta).Say(both, &performatives.AcceptBody{ReferenceID: k})
	}
	deals = append([]agreement.ID{agreement.IDOf(both, "p1"), agreement.IDOf(both, "p2")}, deals...)
	var found []agreement.ID
	cursor := ""
	for range 10 {
		var page api.Agreements
		testkit.Must(t, json.Unmarshal(w.Principal(beta).Call(api.AgreementList.Name, fmt.Sprintf(`{"limit":3,"cursor":%q}`, cursor)).Data, &page))
		for _, row := range page.Agreements {
			found = append(found, row.Agreement)
			if price := map[bool]float64{true: 6, false: 5}[row.Session == both]; row.Subject != "x" || row.Amount == nil || row.Amount.Value != price || row.Amount.Path != "terms.price" {
				t.Errorf("the row of %s is about %q, %+v", row.Agreement, row.Subject, row.Amount)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(deals) {
		t.Errorf("listed %v, want %v", found, deals)
	}
	outsider := w.Principal(gamma)
	var none api.Agreements
	testkit.Must(t, json.Unmarshal(outsider.Call(api.AgreementList.Name, `{}`).Data, &none))
	unknown := outsider.Call(api.AgreementGet.Name, `{"agreementId":"agr_00000000000000000000000000"}`)
	another := outsider.Call(api.AgreementGet.Name, fmt.Sprintf(`{"agreementId":%q}`, deals[0]))
	if len(none.Agreements) > 0 || string(unknown.Data) != string(another.Data) {
		t.Errorf("an outsider sees %+v, %s, %s", none, unknown.Data, another.Data)
	}
	testkit.Refused(t, another, session.UnknownSession)
	testkit.Refused(t, outsider.Call(api.AgreementGet.Name, `{}`), session.MalformedEnvelope)
	testkit.Refused(t, outsider.Call(api.AgreementGet.Name, `{"agreementId":"agr_*"}`), session.UnknownSession)
	testkit.Refused(t, outsider.Call(api.AgreementList.Name, `{"cursor":"x.-1"}`), session.MalformedEnvelope)

	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: alpha})
	testkit.Must(t, err)
	for path, want := range map[string]int{"/agreements?limit=2": 200, "/agreements/" + url.PathEscape(string(deals[0])): 200, "/agreements/agr_x": 404} {
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+"/v1/asp"+path, nil)
		testkit.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+token.Token)
		answer, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
}

// BenchmarkAgreements makes agreements in 16 sessions at once. s/log is how long after the last
// ACCEPT the last of them is in a checkpoint.
func BenchmarkAgreements(b *testing.B) {
	w := testkit.NewWorld(b, testkit.Options{Dev: true, Sync: time.Minute})
	const talks = 16
	var talking sync.WaitGroup
	last := make([]agreement.ID, talks)
	begin := time.Now()
	for i := range talks {
		one, two := w.Principal(performatives.Agent(fmt.Sprintf("agent://acme.com/a%d", i))), w.Principal(performatives.Agent(fmt.Sprintf("agent://widgets.co/b%d", i)))
		one.Conn()
		two.Conn()
		talking.Go(func() {
			id := w.Open(one, two)
			for n := range b.N / talks {
				offer := fmt.Sprintf("p%d", n)
				one.Say(id, testkit.Offer(offer, n))
				two.Say(id, &performatives.AcceptBody{ReferenceID: offer})
				last[i] = agreement.IDOf(id, offer)
			}
		})
	}
	talking.Wait()
	said := time.Now()
	for _, id := range last {
		for proof := (*inclusion.Proof)(nil); proof == nil && id != ""; {
			var err error
			proof, err = w.Server.Broker.Parts.Ledger.Proof(w.Ctx, inclusion.Agreement, string(id))
			testkit.Must(b, err)
		}
	}
	b.ReportMetric(float64(b.N)/said.Sub(begin).Seconds(), "agreements/s")
	b.ReportMetric(time.Since(said).Seconds(), "s/log")
}

// GATEWAYS.md G4: in bilateral/1 the ACCEPT makes the agreement, or, where people confirm it, the
// last confirmation does, which the document then has; it decides offline.
func TestMatch(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	key, err := inclusion.ParseKey(w.Server.Broker.Parts.Ledger.VerifierKey())
	testkit.Must(t, err)
	trust := agreement.Trust{Broker: w.Server.Broker.Command.Key(), Log: key}
	a, b := w.Principal(alpha), w.Principal(beta)
	remarks := performatives.Remarks{Assessment: []byte(`{"reasoning":"it fits","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}`)}
	match := func(policy string) (id performatives.SessionID, offer, accept api.Acceptance) {
		id = testkit.NewSession()
		a.Say(id, &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a match", Terms: fmt.Appendf(nil, `{"mode":"bilateral/1","participants":[%q],"policy":%s}`, beta, policy)})
		b.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
		offer = a.Say(id, &performatives.ProposeBody{ProposalID: "p1", Type: "opportunity", Subject: "x", Terms: []byte(`{"case":"both","private_note":"n"}`), Remarks: remarks})
		return id, offer, b.Say(id, &performatives.AcceptBody{ReferenceID: "p1", Remarks: remarks})
	}

	id, _, _ := match(`{"publish":["case"]}`)
	data, d := get(w, fmt.Sprintf(`{"sessionId":%q}`, id))
	if r := agreement.Verify(data, trust); len(r.Faults) > 0 || !r.Logged || d.ID != agreement.IDOf(id, "p1") || len(d.Terms) != 2 {
		t.Errorf("%v, logged %t: %s", r.Faults, r.Logged, data)
	}
	if !strings.Contains(string(d.Log.Leaf), `"terms":{"case":"both"}`) {
		t.Errorf("the leaf is %s", d.Log.Leaf)
	}

	people := []*testkit.Principal{w.Principal("human://acme.com/alice"), w.Principal("human://widgets.co/bob")}
	id, offer, accept := match(`{"confirm":true}`)
	people[0].Say(id, testkit.Ruling(offer.Message, performatives.Approved))
	testkit.Refused(t, a.Call(api.AgreementGet.Name, fmt.Sprintf(`{"sessionId":%q}`, id)), session.ProposalUnknown)
	last := people[1].Say(id, testkit.Ruling(accept.Message, performatives.Approved))
	data, d = get(w, fmt.Sprintf(`{"sessionId":%q}`, id))
	if r := agreement.Verify(data, trust); len(r.Faults) > 0 || !r.Logged || len(d.Evidence.Confirmed) != 2 || d.EffectiveFrom != last.AcceptedAt {
		t.Errorf("%v, logged %t, confirmed %d times, from %s: %s", r.Faults, r.Logged, len(d.Evidence.Confirmed), d.EffectiveFrom, data)
	}
	for i := 0; i < len(data); i += 7 {
		changed := append([]byte{}, data...)
		changed[i] ^= 1
		if r := agreement.Verify(changed, trust); len(r.Faults) == 0 {
			t.Errorf("byte %d can be changed: …%s…", i, changed[max(0, i-30):min(len(changed), i+30)])
		}
	}
	confirmed := d.Evidence.Confirmed
	for name, rulings := range map[string][]jsontext.Value{
		"none": nil, "one": confirmed[1:], "the other": confirmed[:1], "one twice": {confirmed[0], confirmed[0], confirmed[1]},
		"another order": {confirmed[1], confirmed[0]}, "an offer": {d.Evidence.Offer, confirmed[1]},
	} {
		d.Evidence.Confirmed = rulings
		data, err := d.Bytes()
		testkit.Must(t, err)
		if r := agreement.Verify(data, trust); len(r.Faults) == 0 {
			t.Errorf("it holds with %s of its confirmations", name)
		}
	}

	id, offer, accept = match(`{"confirm":true}`)
	people[0].Say(id, testkit.Ruling(offer.Message, performatives.Approved))
	people[1].Say(id, testkit.Ruling(accept.Message, performatives.Denied))
	testkit.Refused(t, a.Call(api.AgreementGet.Name, fmt.Sprintf(`{"sessionId":%q}`, id)), session.ProposalUnknown)
}
