package hosted_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G1, G4: in binding/1 a hosted agent says what it offers and accepts; salt,
// beginning, signature and link are made for it, also in an answer to a turn, and a retry
// makes the same.
func TestHostedAgreement(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		t.Run(fmt.Sprintf("dev %v", dev), func(t *testing.T) {
			t.Parallel()
			w := testkit.NewHosted(t, testkit.Options{Dev: dev})
			to, buys, sells, signed := string(testkit.Seller), w.Tokens[testkit.Cron], w.Tokens[testkit.Seller], 2
			if dev { // agents without keys, for whom nobody signs
				buys, sells, signed = "agent://acme.com/plain", "agent://widgets.co/plain", 0
				to = sells
			}
			var opened api.Acceptance
			w.Send("POST", "/v1/asp/sessions", buys, fmt.Sprintf(`{"with":[%q],"purpose":"cups","mode":"binding/1","terms":{"invitationTimeoutMs":600000}}`, to)).
				Is(http.StatusCreated, &opened)
			at := testkit.SessionPath(opened.Session)
			says := func(token, act, body string, change ...func(*http.Request)) (a api.Acceptance) {
				t.Helper()
				w.Send("POST", at+"/messages", token, fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body), change...).Is(http.StatusOK, &a)
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
			w.Send("POST", at+"/messages", sells, `{"performative":"ACCEPT","body":{"referenceId":"p1"}}`).Refused(http.StatusConflict, session.ProposalNotOpen)

			turn := w.PickUp(buys)
			for range 2 {
				w.Respond(turn.Claim.ID, buys, `{"performative":"ACCEPT","body":{"referenceId":"p2"}}`).Is(http.StatusOK, nil)
			}
			var view struct {
				State  string `json:"state"`
				Status string `json:"status"`
			}
			if w.Send("GET", at, buys, "").Is(http.StatusOK, &view); view.State != "CLOSED" || view.Status != "accepted" {
				t.Fatalf("the session is %+v", view)
			}
			var made agreement.Document
			w.Send("GET", "/v1/asp/agreements/"+string(agreement.IDOf(opened.Session, "p2")), buys, "").Is(http.StatusOK, &made)
			if len(made.Signatures) != signed || made.Category != "pricing" {
				t.Errorf("the agreement is %+v", made)
			}
		})
	}
}

// REJECT and WITHDRAW are linked, too, and an offer says of itself what it says.
func TestHostedOfferOfItsOwn(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	opens := func() string {
		var opened api.Acceptance
		w.Send("POST", "/v1/asp/sessions", w.Tokens[testkit.Cron], fmt.Sprintf(`{"with":[%q],"purpose":"cups","mode":"binding/1"}`, testkit.Seller)).Is(http.StatusCreated, &opened)
		at := testkit.SessionPath(opened.Session) + "/messages"
		w.Send("POST", at, w.Tokens[testkit.Seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
		w.Send("POST", at, w.Tokens[testkit.Cron], `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"x","subject":"s","terms":{},"effectiveFrom":"2031-01-01T00:00:00Z"}}`).Is(http.StatusOK, nil)
		return at
	}
	at := opens()
	w.Send("POST", at, w.Tokens[testkit.Seller], `{"performative":"REJECT","body":{"referenceId":"p1","code":"unspecified","reason":"no","retryable":false}}`).Is(http.StatusOK, nil)
	if body := string(w.Send("GET", at, w.Tokens[testkit.Cron], "").Body); !strings.Contains(body, `"effectiveFrom":"2031-01-01T00:00:00Z"`) || !strings.Contains(body, `"linkedBy":"sender"`) {
		t.Errorf("the transcript is %s", body)
	}
	w.Send("POST", opens(), w.Tokens[testkit.Cron], `{"performative":"WITHDRAW","body":{"referenceId":"p1"}}`).Is(http.StatusOK, nil)
	w.Send("POST", opens(), w.Tokens[testkit.Seller], `{"performative":"COUNTER","body":{"proposalId":"p2","referenceId":"p1","terms":{},"agreementSignature":"`+fmt.Sprintf("%086d", 0)+`"}}`).
		Refused(http.StatusUnauthorized, session.SignatureInvalid)
}
