package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An agent elsewhere that is asked by its URL is ranked beside ours; one that hangs, or says
// nothing that counts, is a warning and keeps nobody from being found.
func TestProbes(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"accepted":true,"score":0.99,"confidence":0.9}`))
	}))
	t.Cleanup(elsewhere.Close)
	released := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	t.Cleanup(func() { close(released); hangs.Close() })

	w := testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})
	card := api.Card{Agent: testkit.Seller, Skills: []discovery.Skill{{ID: "pdf", Name: "PDF", Tags: []string{"pdf", "tables", "ocr"}}}}
	_, err := w.OperatorClient().AddHosted(w.Ctx, card)
	testkit.Must(t, err)
	ask := func(w *testkit.World, urls ...string) testkit.Answer {
		list, err := json.Marshal(urls)
		testkit.Must(t, err)
		return w.Send("POST", "/v1/asp/discover", w.Tokens[testkit.Cron], fmt.Sprintf(`{"task_summary":"pdf tables","agents":[%q],"waitMs":300,"urls":%s}`, testkit.Seller, list))
	}
	var found api.Proposals
	ask(w, hangs.URL, elsewhere.URL, "http://127.0.0.1:1").Is(http.StatusOK, &found)
	if len(found.Candidates) != 2 || found.Candidates[0].URL != elsewhere.URL || found.Candidates[0].Source != discovery.ByURL || found.Candidates[1].Agent != testkit.Seller || len(found.Warnings) != 2 {
		t.Errorf("found %+v", found)
	}
	ask(w, make([]string, api.MaxProbed+1)...).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)

	strict := testkit.NewHosted(t, testkit.Options{})
	found = api.Proposals{}
	ask(strict, elsewhere.URL, "http://10.1.2.3:3773", "ftp://x").Is(http.StatusOK, &found)
	if len(found.Warnings) != 3 || strings.Contains(fmt.Sprint(found.Candidates), "http") || !strings.Contains(found.Warnings[0], "private") {
		t.Errorf("where private addresses are not allowed: %+v", found)
	}
}

// With embeddings cards are compared by meaning; while the endpoint fails, by keywords, and the
// answer says so.
func TestEmbeddingsOfCards(t *testing.T) {
	t.Parallel()
	broken := false
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Input []string `json:"input"`
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || broken {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		data := make([]map[string][]int, len(q.Input))
		for i := range data {
			data[i] = map[string][]int{"embedding": {1, 1}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(endpoint.Close)
	w := testkit.NewHosted(t, testkit.Options{Embeddings: server.Embeddings{URL: endpoint.URL + "/v1/embeddings", Model: "m"}})
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: testkit.Seller, Skills: []discovery.Skill{{ID: "pdf", Name: "PDF"}}})
	testkit.Must(t, err)
	for _, task := range []string{"read documents", "read more documents"} {
		var found api.Proposals
		w.Send("POST", "/v1/asp/discover", w.Tokens[testkit.Cron], fmt.Sprintf(`{"task_summary":%q,"agents":[%q],"waitMs":0}`, task, testkit.Seller)).Is(http.StatusOK, &found)
		path := w.Send("POST", "/bindu/"+testkit.Seller.Token()+"/agent/negotiation", "", fmt.Sprintf(`{"task_summary":%q}`, task))
		if similar := len(found.Candidates) == 1 && found.Candidates[0].Accepted; similar == broken || (len(found.Warnings) == 1) != broken || (path.Header.Get("Warning") != "") != broken {
			t.Errorf("broken %t: %+v, %v", broken, found, path.Header)
		}
		broken = true
	}
}

// A price may have its currency's sign, and reasons come in the order of the card.
func TestCardAsWritten(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	path := "/v1/asp/agents/" + strings.ReplaceAll(string(testkit.Seller), "/", "%2F") + "/card"
	card := `{"skills":[{"id":"s","name":"s1","capabilities_detail":{"zebra_tables":{},"apple_tables":{}}}],"pricing":%s}`
	w.Send("PUT", path, w.Tokens[testkit.Seller], fmt.Sprintf(card, `{"amount":"cheap"}`)).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	for _, price := range []string{`"$0.05"`, `{"amount":"0.05 USD"}`, `{"amount":"€0.05"}`, `0.05`} {
		w.Send("PUT", path, w.Tokens[testkit.Seller], fmt.Sprintf(card, price)).Is(http.StatusOK, nil)
		for limit, reason := range map[string]discovery.Reason{"$0.04": discovery.TooExpensive, "0.06": ""} {
			var found api.Proposals
			w.Send("POST", "/v1/asp/discover", w.Tokens[testkit.Cron], fmt.Sprintf(`{"task_summary":"zebra tables","agents":[%q],"waitMs":0,"max_cost_amount":%q}`, testkit.Seller, limit)).Is(http.StatusOK, &found)
			c := found.Candidates[0]
			if c.Rejection != reason || reason == "" && fmt.Sprint(c.Matches[0].Reasons) != "[capabilities: zebra_tables, apple_tables]" {
				t.Errorf("for %s, with %s: %+v", limit, price, c)
			}
		}
	}
}
