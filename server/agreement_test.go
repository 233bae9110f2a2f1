package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/session"
)

// GATEWAYS.md G1, G4: in binding/1 a hosted agent says what it offers and accepts; salt,
// beginning, signature and link are made for it, also in an answer to a turn, and a retry
// makes the same.
func TestHostedAgreement(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		t.Run(fmt.Sprintf("dev %v", dev), func(t *testing.T) {
			t.Parallel()
			w := newHTTPWorld(t, testkit.Options{Dev: dev})
			to, buys, sells, signed := string(seller), w.tokens[cron], w.tokens[seller], 2
			if dev { // agents without keys, for whom nobody signs
				buys, sells, signed = "agent://acme.com/plain", "agent://widgets.co/plain", 0
				to = sells
			}
			var opened api.Acceptance
			w.send("POST", "/v1/asp/sessions", buys, fmt.Sprintf(`{"with":[%q],"purpose":"cups","mode":"binding/1","terms":{"invitationTimeoutMs":600000}}`, to)).
				is(http.StatusCreated, &opened)
			at := sessionPath(opened.Session)
			says := func(token, act, body string, change ...func(*http.Request)) (a api.Acceptance) {
				t.Helper()
				w.send("POST", at+"/messages", token, fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body), change...).is(http.StatusOK, &a)
				return a
			}
			says(sells, "ACCEPT", `{"referenceId":"invitation"}`)
			retried := func(r *http.Request) { r.Header.Set("Idempotency-Key", "offer") }
			offer := `{"proposalId":"p1","type":"service-agreement","subject":"cups","terms":{"price":5,"days":30}}`
			first := says(buys, "PROPOSE", offer, retried)
			if again := says(buys, "PROPOSE", offer, retried); !again.Duplicate || again.Hash != first.Hash {
				t.Errorf("a retry is answered %+v, want %+v again", again, first)
			}
			says(sells, "QUERY", `{"queryId":"q1","queryType":"stock","subject":"cups"}`)
			if again := says(buys, "PROPOSE", offer, retried); !again.Duplicate || again.Hash != first.Hash {
				t.Errorf("a late retry is answered %+v, want %+v again", again, first)
			}
			says(sells, "COUNTER", `{"proposalId":"p2","referenceId":"p1","terms":{"price":6,"days":30},"category":"pricing"}`)
			w.send("POST", at+"/messages", sells, `{"performative":"ACCEPT","body":{"referenceId":"p1"}}`).refused(http.StatusConflict, session.ProposalNotOpen)

			turn := w.pickup(buys)
			for range 2 {
				w.respond(turn.Claim.ID, buys, `{"performative":"ACCEPT","body":{"referenceId":"p2"}}`).is(http.StatusOK, nil)
			}
			var view struct {
				State  string `json:"state"`
				Status string `json:"status"`
			}
			if w.send("GET", at, buys, "").is(http.StatusOK, &view); view.State != "CLOSED" || view.Status != "accepted" {
				t.Fatalf("the session is %+v", view)
			}
			var made agreement.Document
			w.send("GET", "/v1/asp/agreements/"+string(agreement.IDOf(opened.Session, "p2")), buys, "").is(http.StatusOK, &made)
			if len(made.Signatures) != signed || made.Category != "pricing" {
				t.Errorf("the agreement is %+v", made)
			}
		})
	}
}

// REJECT and WITHDRAW are linked, too, and an offer says of itself what it says.
func TestHostedOfferOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t, testkit.Options{})
	opens := func() string {
		var opened api.Acceptance
		w.send("POST", "/v1/asp/sessions", w.tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups","mode":"binding/1"}`, seller)).is(http.StatusCreated, &opened)
		at := sessionPath(opened.Session) + "/messages"
		w.send("POST", at, w.tokens[seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).is(http.StatusOK, nil)
		w.send("POST", at, w.tokens[cron], `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"x","subject":"s","terms":{},"effectiveFrom":"2031-01-01T00:00:00Z"}}`).is(http.StatusOK, nil)
		return at
	}
	at := opens()
	w.send("POST", at, w.tokens[seller], `{"performative":"REJECT","body":{"referenceId":"p1","code":"unspecified","reason":"no","retryable":false}}`).is(http.StatusOK, nil)
	if body := string(w.send("GET", at, w.tokens[cron], "").body); !strings.Contains(body, `"effectiveFrom":"2031-01-01T00:00:00Z"`) || !strings.Contains(body, `"linkedBy":"sender"`) {
		t.Errorf("the transcript is %s", body)
	}
	w.send("POST", opens(), w.tokens[cron], `{"performative":"WITHDRAW","body":{"referenceId":"p1"}}`).is(http.StatusOK, nil)
	w.send("POST", opens(), w.tokens[seller], `{"performative":"COUNTER","body":{"proposalId":"p2","referenceId":"p1","terms":{},"agreementSignature":"`+fmt.Sprintf("%086d", 0)+`"}}`).
		refused(http.StatusUnauthorized, session.SignatureInvalid)
}
