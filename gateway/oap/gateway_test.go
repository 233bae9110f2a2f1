package oapgateway_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	seller, other = testkit.Seller, testkit.Other

	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
)

// A world is a broker with parties that have a key of their own and are hosted.
type world struct {
	*testkit.World
	signers map[performatives.Agent]performatives.Signer
}

func newWorld(t *testing.T, cards ...api.Card) world {
	t.Helper()
	w := world{testkit.NewHosted(t, testkit.Options{}), map[performatives.Agent]performatives.Signer{}}
	for _, card := range append(cards, api.Card{Agent: alpha}, api.Card{Agent: beta}) {
		if w.signers[card.Agent] != nil {
			continue
		}
		pair := testkit.NewKey(t)
		signer, err := performatives.NewSigner(pair)
		testkit.Must(t, err)
		card.Key = signer.Key()
		_, err = w.OperatorClient().AddHosted(w.Ctx, card)
		testkit.Must(t, err)
		w.signers[card.Agent], w.Tokens[card.Agent] = signer, w.Token(api.AddToken{Agent: card.Agent})
	}
	return w
}

// oap sends a request as a party.
func (w world) oap(method, path string, as performatives.Agent, body any) answer {
	w.Helper()
	text, is := body.(string)
	if !is && body != nil {
		data, err := json.Marshal(body, json.Deterministic(true))
		testkit.Must(w, err)
		text = string(data)
	}
	return answer{w.Send(method, "/oap/negotiation/"+path, w.Tokens[as], text)}
}

// An answer is one of OAP's paths.
type answer struct{ testkit.Answer }

// blocked asserts OAP's form of an error.
func (a answer) blocked(status int, code string) {
	a.Helper()
	var e struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if err := json.Unmarshal(a.Body, &e, json.MatchCaseInsensitiveNames(true)); err != nil || a.StatusCode != status || e.Error.Code != code || e.Error.Message == "" {
		a.Errorf("answered %d %s, want %d %s", a.StatusCode, a.Body, status, code)
	}
}

// An oapState is a negotiation as OAP shows it.
type oapState struct {
	ID        string           `json:"negotiation_id"`
	State     string           `json:"state"`
	Round     int              `json:"round"`
	Proposal  string           `json:"proposal_id"`
	Agreement agreement.ID     `json:"agreement_id"`
	Hash      agreement.Digest `json:"agreement_hash"`
	Next      string           `json:"next"`
	Publish   jsontext.Value   `json:"publish"`
	CCC       jsontext.Value   `json:"ccc"`
	Unsigned  []agreement.DID  `json:"unsigned"`
	Penalty   string           `json:"withdrawal_penalty_terms"`
	History   []struct {
		Act      string         `json:"act"`
		Status   string         `json:"status"`
		Document jsontext.Value `json:"document"`
	} `json:"history"`
}

func (w world) opens() (id string) {
	w.Helper()
	var opened oapState
	w.oap("POST", "open", alpha, map[string]any{"to": agreement.DIDOf(beta), "category": "pricing", "policy": map[string]any{"max_rounds": 4}}).Is(http.StatusCreated, &opened)
	if !strings.HasPrefix(opened.ID, "neg_") || opened.State != "open" {
		w.Fatalf("open is answered %+v", opened)
	}
	return opened.ID
}

func (w world) state(id string) oapState {
	w.Helper()
	return w.stateFor(id, beta)
}

func (w world) stateFor(id string, as performatives.Agent) (s oapState) {
	w.Helper()
	w.oap("GET", id, as, nil).Is(http.StatusOK, &s)
	return s
}

// later signs an agreement after the acceptance.
func (w world) later(id string, by performatives.Agent, hash agreement.Digest) answer {
	w.Helper()
	signature, err := agreement.Sign(w.signers[by], hash)
	testkit.Must(w, err)
	return w.oap("POST", id+"/sign", by, members{"agreement_signature": signature})
}

type members = map[string]any

// proposal is OAP's, signed; change alters it before it is signed.
func (w world) proposal(id, proposal string, previous any, round int, from performatives.Agent, change ...func(members)) members {
	w.Helper()
	to := beta
	if from == beta {
		to = alpha
	}
	salt := sha256.Sum256([]byte(proposal))
	p := members{
		"proposal_id": proposal, "negotiation_id": id, "previous_proposal_id": previous, "from": agreement.DIDOf(from), "to": agreement.DIDOf(to),
		"round": round, "category": "pricing", "terms": members{"action": "forecast", "price": fmt.Sprintf("0.00%d", round), "ratio": 0.1},
		"valid_until": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "effective_from": "2026-05-04T00:00:00Z", "effective_until": "2027-05-04T00:00:00Z",
		"agreement_salt": base64.RawURLEncoding.EncodeToString(salt[:]),
	}
	for _, c := range change {
		c(p)
	}
	w.agrees(p, from, to)
	return w.signs(p, from)
}

// agrees signs the agreement that a proposal makes, unless it is signed already.
func (w world) agrees(p members, from, to performatives.Agent) {
	w.Helper()
	text := func(name string) string { s, _ := p[name].(string); return s }
	terms, err := json.Marshal(p["terms"], json.Deterministic(true))
	testkit.Must(w, err)
	salt, _ := agreement.ParseSalt(text("agreement_salt"))
	d, err := agreement.Draft(agreement.Offer{
		Session: performatives.SessionID(strings.TrimPrefix(text("negotiation_id"), "neg_")), Proposal: strings.TrimPrefix(text("proposal_id"), "prp_"),
		Parties: []performatives.Agent{from, to}, Terms: terms, Salt: salt,
		Binding:   performatives.Binding{Category: text("category"), EffectiveFrom: text("effective_from"), EffectiveUntil: text("effective_until")},
		Inherited: agreement.Inherited{OAP: true},
	})
	if _, given := p["agreement_signature"]; err != nil || given {
		return
	}
	p["agreement_signature"], err = agreement.Sign(w.signers[from], d.Hash)
	testkit.Must(w, err)
}

// signs adds to a document a signature by a party's own key.
func (w world) signs(document members, by performatives.Agent) members {
	w.Helper()
	signed := maps.Clone(document)
	delete(signed, "signature")
	data, err := json.Marshal(signed, json.Deterministic(true))
	testkit.Must(w, err)
	canonical, err := performatives.Canonical(data)
	testkit.Must(w, err)
	raw, err := w.signers[by].Sign(canonical)
	testkit.Must(w, err)
	signed["signature"] = base64.StdEncoding.EncodeToString(raw)
	return signed
}

func (w world) acceptance(proposal string, hash agreement.Digest, by performatives.Agent) members {
	w.Helper()
	signature, err := agreement.Sign(w.signers[by], hash)
	testkit.Must(w, err)
	return w.signs(members{"proposal_id": proposal, "agreement_signature": signature}, by)
}

// A negotiation whose policy asks for ids of the session has them in what is signed.
func TestOAPOwnIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := func(ids string) answer {
		return w.oap("POST", "open", alpha, map[string]any{"to": agreement.DIDOf(beta), "policy": map[string]any{"ids": ids}})
	}
	open("else").blocked(http.StatusBadRequest, "invalid_input")
	var opened oapState
	open("asp").Is(http.StatusCreated, &opened)
	signed := w.proposal(opened.ID, "prp_1", nil, 1, alpha) // over the id of OAP
	w.oap("POST", opened.ID+"/propose", alpha, signed).blocked(http.StatusUnauthorized, "auth_required")
	later := w.proposal(opened.ID, "prp_1", nil, 1, alpha, func(p members) { p["agreement_signature"] = "" })
	w.oap("POST", opened.ID+"/propose", alpha, later).Is(http.StatusOK, nil)
	var core agreement.Core
	w.oap("GET", opened.ID+"/draft/prp_1", beta, nil).Is(http.StatusOK, &core)
	if id := strings.TrimPrefix(opened.ID, "neg_"); string(core.Negotiation) != id {
		t.Errorf("the draft names the negotiation %s, want %s", core.Negotiation, id)
	}
}

// GATEWAYS.md G4, "OAP's own paths": a negotiation by RFC-0002, signed by the parties' own
// keys and carried by hosted ones; stolen signatures, wrong rounds and old offers are refused.
func TestOAP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.opens()
	first := w.proposal(id, "prp_1", nil, 1, alpha)

	for name, bad := range map[string]members{
		"another key":         w.signs(first, beta),
		"a changed term":      changed(first, "terms", members{"price": "0"}),
		"a stolen agreement":  w.proposal(id, "prp_1", nil, 1, alpha, func(p members) { w.agrees(p, beta, alpha); p["agreement_signature"] = first["signature"] }),
		"no signature at all": changed(first, "signature", ""),
	} {
		t.Log(name)
		w.oap("POST", id+"/propose", alpha, bad).blocked(http.StatusUnauthorized, "auth_required")
	}
	w.oap("POST", id+"/propose", beta, first).blocked(http.StatusUnauthorized, "auth_required") // in another's name
	w.oap("POST", id+"/propose", alpha, w.proposal(id, "prp_1", nil, 2, alpha)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", alpha, w.proposal(id, "prp_1", "prp_0", 1, alpha)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", other, first).blocked(http.StatusNotFound, "not_found")
	w.oap("POST", id+"/propose", "agent://no.body/x", first).blocked(http.StatusUnauthorized, "auth_required")
	if s := w.state(id); s.State != "open" || s.Round != 0 {
		t.Fatalf("refusals have changed it to %+v", s)
	}

	var s oapState
	w.oap("POST", id+"/propose", alpha, first).Is(http.StatusOK, &s)
	if s.State != "proposed" || s.Round != 1 || s.Proposal != "prp_1" {
		t.Errorf("after a proposal it is %+v", s)
	}
	w.oap("POST", id+"/propose", alpha, first).Is(http.StatusOK, nil) // its answer was lost
	w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_2", nil, 2, beta)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_2", "prp_1", 1, beta)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", strings.TrimPrefix(id, "neg_")+"/propose", beta, w.proposal(id, "prp_2", "prp_1", 2, beta)).Is(http.StatusOK, &s)
	if s.State != "countered" || s.Round != 2 || s.Proposal != "prp_2" {
		t.Errorf("after a counter-proposal it is %+v", s)
	}
	w.oap("POST", id+"/propose", alpha, w.proposal(id, "prp_3", "prp_1", 3, alpha)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/accept", beta, w.acceptance("prp_1", s.Hash, beta)).blocked(http.StatusConflict, "conflict")

	core := w.oap("GET", id+"/draft/prp_2", alpha, nil)
	core.Is(http.StatusOK, nil)
	canonical, err := performatives.Canonical(core.Body)
	testkit.Must(t, err)
	sum := sha256.Sum256(canonical)
	if got := "sha256-" + hex.EncodeToString(sum[:]); got != string(s.Hash) {
		t.Errorf("the draft %s has the hash %s, want %s", core.Body, got, s.Hash)
	}
	w.oap("GET", id+"/draft/prp_9", alpha, nil).blocked(http.StatusNotFound, "not_found")
	w.oap("GET", id+"/draft/prp_2", other, nil).blocked(http.StatusNotFound, "not_found")

	stolen := w.acceptance("prp_2", s.Hash, beta)
	w.oap("POST", id+"/accept", alpha, stolen).blocked(http.StatusUnauthorized, "auth_required")
	w.oap("POST", id+"/accept", alpha, w.signs(stolen, alpha)).blocked(http.StatusUnauthorized, "auth_required")
	w.oap("POST", id+"/accept", alpha, w.acceptance("prp_2", "sha256-00", alpha)).blocked(http.StatusUnauthorized, "auth_required")
	w.oap("POST", id+"/accept", beta, stolen).blocked(http.StatusForbidden, "policy_block") // one's own
	accept := w.acceptance("prp_2", s.Hash, alpha)
	agreed := w.oap("POST", id+"/accept", alpha, accept)
	agreed.Is(http.StatusOK, nil)
	w.oap("POST", id+"/accept", alpha, accept).Is(http.StatusOK, nil)
	w.oap("POST", id+"/accept", beta, stolen).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_3", "prp_2", 3, beta)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/withdraw", beta, w.signs(members{}, beta)).blocked(http.StatusConflict, "conflict")
	if s := w.state(id); s.State != "accepted" || len(s.History) != 3 || s.History[0].Status != "countered" || s.History[2].Act != "accept" {
		t.Errorf("in the end it is %+v", s)
	}

	w.proves(agreed.Body)
	var made agreement.Document
	testkit.Must(t, json.Unmarshal(agreed.Body, &made))
	made.Negotiation = agreement.NegotiationID(made.Negotiation.Session())
	bare, err := made.Bytes()
	testkit.Must(t, err)
	if named := fmt.Sprintf(`"negotiation_id":%q`, id); !strings.Contains(string(core.Body), named) || !strings.Contains(string(agreed.Body), named) {
		t.Errorf("the negotiation is %s, the draft %s, the agreement %s", id, core.Body, agreed.Body)
	}
	if r := agreement.Verify(bare, agreement.Trust{Broker: w.Server.Broker.Command.Key()}); len(r.Faults) == 0 {
		t.Error("an agreement with another negotiation_id verifies")
	}
	w.replays(performatives.SessionID(strings.TrimPrefix(id, "neg_")), 3)
}

// proves checks an agreement offline, by the parties' own keys.
func (w world) proves(body []byte) {
	w.Helper()
	data, err := performatives.Canonical(body)
	testkit.Must(w, err)
	own := map[performatives.Agent]performatives.Key{alpha: w.signers[alpha].Key(), beta: w.signers[beta].Key()}
	r := agreement.Verify(data, agreement.Trust{Keys: own, Broker: w.Server.Broker.Command.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 {
		w.Errorf("the agreement has the faults %v, signed by %v: %s", r.Faults, r.Signed, data)
	}
	own[alpha] = r.Document.Evidence.Keys[alpha] // the hosted one has not signed the hash
	if r := agreement.Verify(data, agreement.Trust{Keys: own}); len(r.Faults) == 0 {
		w.Error("an agreement is taken for signed by the hosted key")
	}
}

// replays verifies a transcript, and that it has the documents as the parties signed them.
func (w world) replays(id performatives.SessionID, want int) {
	w.Helper()
	entries, err := w.OperatorClient().Transcript(w.Ctx, id)
	testkit.Must(w, err)
	state, documents := session.New(id, modes.All()), 0
	verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: id})
	for _, e := range entries {
		for _, fault := range verifier.Add(e.Bytes) {
			w.Error(fault)
		}
		forged := *e.Message
		forged.Context = bytes.Replace(forged.Context, []byte(`"signature":"`), []byte(`"signature":"A`), 1)
		if _, err := session.Replay(state, &forged, e.Stamp); err == nil && len(forged.Context) > len(e.Message.Context) {
			w.Errorf("entry %d replays with another document", e.Stamp.Sequence)
		}
		state, err = session.Replay(state, e.Message, e.Stamp)
		testkit.Must(w, err)
		documents += len(agreement.OAPIn(e.Message.Context))
	}
	if documents != want {
		w.Errorf("%d documents of OAP are in the transcript, want %d", documents, want)
	}
}

func changed(p members, name string, to any) members {
	q := maps.Clone(p)
	q[name] = to
	return q
}

// Nobody but a party of OAP's has an invitation accepted in its name.
func TestOAPInvitesOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var opened struct {
		ID string `json:"negotiation_id"`
	}
	w.oap("POST", "open", alpha, map[string]any{"to": seller}).Is(http.StatusCreated, &opened)
	var view api.SessionView
	w.Send("GET", "/v1/asp/sessions/"+strings.TrimPrefix(opened.ID, agreement.OAPNegotiation), w.Tokens[seller], "").Is(http.StatusOK, &view)
	if view.State != session.Invited {
		t.Errorf("the seller, who is hosted and no party of OAP's, is asked, and the session is %s", view.State)
	}
}

// GATEWAYS.md G2: an act of a hosted agent is said once for each Idempotency-Key, also the
// one that opens a negotiation.
func TestOAPOpensOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opens := func(key, body string) answer {
		return answer{w.Send("POST", "/oap/negotiation/open", w.Tokens[alpha], body, func(r *http.Request) { r.Header.Set("Idempotency-Key", key) })}
	}
	body := fmt.Sprintf(`{"to":%q}`, agreement.DIDOf(beta))
	var first, again, other oapState
	opens("k1", body).Is(http.StatusCreated, &first)
	opens("k1", body).Is(http.StatusCreated, &again)
	opens("k2", body).Is(http.StatusCreated, &other)
	if first.ID == "" || again.ID != first.ID || other.ID == first.ID || first.State != "open" || again.State != "open" {
		t.Errorf("opened %+v, again %+v, and %+v", first, again, other)
	}
	opens("k1", fmt.Sprintf(`{"to":%q,"category":"pricing"}`, agreement.DIDOf(beta))).blocked(http.StatusConflict, "conflict")
	opens(strings.Repeat("k", 256), body).blocked(http.StatusBadRequest, "invalid_input")
}

// RFC-0002, section 3.2: either party may walk away; what was withdrawn is accepted no more.
func TestOAPEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, end := range map[string]struct {
		path, state string
		as          performatives.Agent
		of          members
	}{
		"the author takes it back":        {"/withdraw", "withdrawn", alpha, members{}},
		"the other walks away":            {"/withdraw", "withdrawn", beta, members{}},
		"the other walks away, naming it": {"/withdraw", "withdrawn", beta, members{"proposal_id": "prp_1"}},
		"the other rejects it":            {"/reject", "rejected", beta, members{}},
	} {
		id := w.opens()
		var s, ended oapState
		w.oap("POST", id+"/propose", alpha, w.proposal(id, "prp_1", nil, 1, alpha)).Is(http.StatusOK, &s)
		w.oap("POST", id+"/withdraw", end.as, w.signs(members{"proposal_id": "prp_9"}, end.as)).blocked(http.StatusConflict, "conflict")
		w.oap("POST", id+end.path, end.as, changed(end.of, "reason", "no")).blocked(http.StatusUnauthorized, "auth_required")
		w.oap("POST", id+end.path, end.as, w.signs(end.of, map[performatives.Agent]performatives.Agent{alpha: beta, beta: alpha}[end.as])).blocked(http.StatusUnauthorized, "auth_required")
		w.oap("POST", id+end.path, end.as, w.signs(changed(end.of, "reason", "no"), end.as)).Is(http.StatusOK, &ended)
		if ended.State != end.state {
			t.Errorf("%s: the state is %q, want %q", name, ended.State, end.state)
		}
		if past := w.state(id).History; len(past) != 2 || past[0].Status != end.state {
			t.Errorf("%s: the history is %+v, want a proposal that is %q", name, past, end.state)
		}
		again, other := oapState{}, map[string]string{"/reject": "/withdraw", "/withdraw": "/reject"}[end.path]
		w.oap("POST", id+end.path, end.as, w.signs(changed(end.of, "reason", "no"), end.as)).Is(http.StatusOK, &again)
		if again.State != end.state {
			t.Errorf("%s: the same again is answered with the state %q", name, again.State)
		}
		w.oap("POST", id+other, end.as, w.signs(changed(end.of, "reason", "no"), end.as)).blocked(http.StatusConflict, "conflict")
		w.oap("POST", id+end.path, end.as, w.signs(changed(end.of, "reason", "still no"), end.as)).blocked(http.StatusConflict, "conflict")
		w.oap("POST", id+"/accept", beta, w.acceptance("prp_1", s.Hash, beta)).blocked(http.StatusConflict, "conflict")
		w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_2", "prp_1", 2, beta)).blocked(http.StatusConflict, "conflict")
	}
	id := w.opens()
	w.oap("POST", id+"/reject", beta, w.signs(members{}, beta)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/withdraw", beta, w.signs(members{}, beta)).blocked(http.StatusConflict, "conflict")
	if s := w.state(id); s.State != "open" {
		t.Errorf("there is nothing to withdraw, and it is %q", s.State)
	}
	id = w.opens()
	w.oap("POST", id+"/propose", alpha, w.proposal(id, "prp_1", nil, 1, alpha)).Is(http.StatusOK, nil)
	w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_2", "prp_1", 2, beta)).Is(http.StatusOK, nil)
	w.oap("POST", id+"/withdraw", beta, w.signs(members{"proposal_id": "prp_1"}, beta)).blocked(http.StatusConflict, "conflict") // no longer the newest
	w.oap("POST", id+"/withdraw", alpha, w.signs(members{"proposal_id": "prp_1"}, alpha)).blocked(http.StatusConflict, "conflict")
	w.oap("POST", id+"/propose", beta, w.proposal(id, "prp_3", "prp_1", 3, beta)).blocked(http.StatusConflict, "conflict") // it was countered
}

// "Limits and bad input": each is refused with OAP's code, and changes nothing.
func TestOAPBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, code := range map[string]int{
		`{"to":"agent://no.body/x"}`: http.StatusNotFound, `{"to":"did:key:z6Mk"}`: http.StatusBadRequest, `{}`: http.StatusBadRequest, `[`: http.StatusBadRequest, `[]`: http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","policy":{"max_rounds":"x"}}`:                            http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","category":"gossip"}`:                                    http.StatusBadRequest, // the manifest has no such
		`{"to":"did:web:widgets.co:sales:beta","policy":{"categories":["gossip"]}}`:                     http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","policy":{"default_validity_minutes":0.5}}`:              http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","category":"pricing","policy":{"categories":["scope"]}}`: http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","to":"did:web:widgets.co:sales:beta"}`:                   http.StatusBadRequest,
		`{"to":"did:web:widgets.co:sales:beta","policy":{"x":"` + strings.Repeat("x", 301<<10) + `"}}`:  http.StatusRequestEntityTooLarge,
	} {
		if a := w.oap("POST", "open", alpha, body); a.StatusCode != code || !strings.Contains(string(a.Body), `"error":{"code":`) {
			t.Errorf("open with %.90s is answered %d %.200s, want %d", body, a.StatusCode, a.Body, code)
		}
	}
	id := w.opens()
	put := func(name string, value any) func(members) { return func(p members) { p[name] = value } }
	for name, change := range map[string]func(members){
		"a short salt":          put("agreement_salt", "AAAA"),
		"no salt of base64":     put("agreement_salt", strings.Repeat("!", 43)),
		"a date in words":       put("effective_from", "tomorrow"),
		"until before from":     put("effective_until", "2026-05-03T00:00:00Z"),
		"no terms":              func(p members) { delete(p, "terms") },
		"terms in a list":       put("terms", []int{1}),
		"another category":      put("category", "scope"),
		"the parties exchanged": func(p members) { p["from"], p["to"] = p["to"], p["from"] },
		"another negotiation":   put("negotiation_id", "neg_"+string(testkit.NewSession())),
		"round in words":        put("round", "one"),
		"no round":              func(p members) { delete(p, "round") },
	} {
		if a := w.oap("POST", id+"/propose", alpha, w.proposalOf(id, change)); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.Body), `"invalid_input"`) {
			t.Errorf("%s is answered %d %s", name, a.StatusCode, a.Body)
		}
	}
	huge := w.proposalOf(id, put("terms", members{"x": strings.Repeat("x", 250<<10)}))
	w.oap("POST", id+"/propose", alpha, huge).blocked(http.StatusRequestEntityTooLarge, "invalid_input")
	deep := `{"proposal_id":"prp_1","terms":{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`
	for _, bad := range []string{deep, "[]", "{", `{"proposal_id":1}`, `{"proposal_id":"prp_1","terms":{"x":1e400}}`, `{"proposal_id":"a","proposal_id":"b"}`} {
		w.oap("POST", id+"/propose", alpha, bad).blocked(http.StatusBadRequest, "invalid_input")
	}
	w.oap("POST", "neg_nonsense/propose", alpha, huge).blocked(http.StatusNotFound, "not_found")
	w.oap("POST", string(testkit.NewSession())+"/withdraw", alpha, w.signs(members{}, alpha)).blocked(http.StatusNotFound, "not_found")
	w.oap("GET", id+"?cursor=x", alpha, nil).blocked(http.StatusBadRequest, "invalid_input")
	if s := w.state(id); s.State != "open" {
		t.Fatalf("bad input has made it %+v", s)
	}
	many := members{}
	for i := range 1000 {
		many[fmt.Sprintf("term %d", i)] = float64(i) / 8
	}
	var s oapState
	w.oap("POST", id+"/propose", alpha, w.proposalOf(id, put("terms", many))).Is(http.StatusOK, &s)
	w.oap("POST", id+"/accept", beta, w.acceptance("prp_1", s.Hash, beta)).Is(http.StatusOK, nil)
}

func (w world) proposalOf(id string, change func(members)) members {
	w.Helper()
	return w.proposal(id, "prp_1", nil, 1, alpha, change)
}
