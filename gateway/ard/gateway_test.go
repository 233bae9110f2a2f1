package ardgateway

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// after goes through cards that are sorted, and notes each that is read.
func after(cards []api.Card, read func()) func(performatives.Agent) iter.Seq[api.Card] {
	return func(last performatives.Agent) iter.Seq[api.Card] {
		return func(yield func(api.Card) bool) {
			for _, card := range cards {
				if card.Agent <= last {
					continue
				}
				if read(); !yield(card) {
					return
				}
			}
		}
	}
}

func ask(t *testing.T, method, path, body string, allow bool) *httptest.ResponseRecorder {
	t.Helper()
	return askAt(t, "", method, path, body, allow)
}

// askAt asks a gateway that others reach at a URL.
func askAt(t *testing.T, url, method, path, body string, allow bool) *httptest.ResponseRecorder {
	t.Helper()
	trust := 70.0
	g := New(Options{
		URL: url,
		A2A: func(c api.Card) string {
			if c.A2A {
				return "a2a/card.json"
			}
			return ""
		},
		Agents: after([]api.Card{
			{
				Agent: "agent://papers.example/desk/extractor", Name: "Extractor", Capabilities: []string{"extract.pdf"}, Description: "<b>tables</b>",
				Skills:   []discovery.Skill{{ID: "pdf", Name: "PDF", Tags: []string{"pdf", "tables"}}},
				CCC:      jsontext.Value(`{"ccc_version": "1.0", "scope_id": "desk", "embargo_list": ["did:web:talks.example"]}`),
				Registry: api.Registry{TrustScore: &trust, UpdatedAt: "2026-03-07T14:30:00Z"},
			},
			{Agent: "agent://talks.example/a", A2A: true, Capabilities: []string{"talk"}},
			{Agent: "agent://words_2.example/lingua", Capabilities: []string{"translate"}},
		}, func() {}),
		Allow: func(*http.Request) bool { return allow },
	})
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	w := ask(t, http.MethodGet, CatalogPath, "", true)
	var got struct {
		Version string           `json:"specVersion"`
		Entries []map[string]any `json:"entries"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Version != "1.0" || len(got.Entries) != 4 || w.Header().Get("Content-Type") != "application/ai-catalog+json" {
		t.Fatal(w.Body, w.Header(), err)
	}
	if e := got.Entries[0]; e["type"] != registryType || e["url"] != "http://example.com/" {
		t.Error(e)
	}
	if e := got.Entries[2]; e["type"] != "application/a2a-agent-card+json" || e["url"] != "http://example.com/a2a/card.json" || e["data"] != nil {
		t.Error(e)
	}
	got.Entries = slices.Delete(got.Entries, 2, 3)
	for i, want := range []string{"urn:air:papers.example:agent:desk:extractor", "urn:air:words-2.example:agent:lingua"} {
		if e := got.Entries[i+1]; e["identifier"] != want || e["data"] == nil || e["url"] != nil {
			t.Error(e)
		}
	}
	for _, path := range []string{CatalogPath, AgentsPath, ListPath} {
		if body := ask(t, http.MethodGet, path, "", true).Body.String(); strings.Contains(body, "trustScore") || strings.Contains(body, `"ccc"`) || !strings.Contains(body, "agent://papers.example/desk/extractor") {
			t.Error(path, body)
		}
	}
}

// The registry's address is the one that the operator chose, or else that of the request.
func TestAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][2]string{
		"":                            {"urn:air:example.com:registry:parley", "http://example.com/"},
		"https://parley.acme.com/asp": {"urn:air:parley.acme.com:registry:parley", "https://parley.acme.com/asp/"},
		"http://[::1]:8080/":          {"urn:air:--1:registry:parley", "http://[::1]:8080/"},
	} {
		if got := askAt(t, url, http.MethodGet, CatalogPath, "", true).Body.String(); !strings.Contains(got, `"identifier":"`+want[0]+`"`) || !strings.Contains(got, `"url":"`+want[1]+`"`) {
			t.Errorf("%s: %s", url, got)
		}
		if got := askAt(t, url, http.MethodPost, SearchPath, `{"query":{"text":""}}`, true).Body.String(); !strings.Contains(got, `"source":"`+want[1]+`"`) {
			t.Errorf("%s: %s", url, got)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"query":{"text":"PDF tables"}}`:                                             `"score":100`,
		`{"query":{"text":"pdf house"},"federation":"referrals"}`:                     `"referrals":[]`,
		`{"query":{"text":"house"}}`:                                                  `{"results":[]}`,
		`{"query":{"text":"","filter":{"capabilities":["translate"]}}}`:               `words_2.example`,
		`{"query":{"text":"","filter":{"type":"` + cardType + `"}},"pageSize":1}`:     `"pageToken":"1"`,
		`{"query":{"text":""},"pageSize":1,"pageToken":"2"}`:                          `words_2.example`,
		`{"query":{"text":"","filter":{"publisher":["papers.example"]}}}`:             `"identifier":"urn:air:papers.example:agent:desk:extractor"`,
		`{"query":{"text":"","filter":{"type":["application/a2a-agent-card+json"]}}}`: `{"results":[{"identifier":"urn:air:talks.example:agent:a"`,
		`{"query":{"text":"","filter":{"publisher":"example"}}}`:                      `{"results":[]}`,
		`{"query":{"text":""},"pageToken":"999"}`:                                     `{"results":[]}`,
		`{"query":{"text":"","filter":{"luck":["x"]}}}`:                               `not \"luck\"`,
		`{"query":{}}`: `query.text is required`,
		`{"query":{"text":"x"},"federation":"all"}`: `federation is`,
		`{"query":{"text":"x"},"pageSize":101}`:     `pageSize is`,
		`{"query":{"text":"x"},"pageToken":"-1"}`:   `pageSize is`,
		`{"query":{"text":"x"},"more":1}`:           `INVALID_ARGUMENT`,
		`[`:                                         `INVALID_ARGUMENT`,
		`{"query":{"text":"` + strings.Repeat("x", maxBody) + `"}}`: `64 KiB`,
	} {
		if w := ask(t, http.MethodPost, SearchPath, body, true); !strings.Contains(w.Body.String(), want) || (w.Code == 200) == strings.Contains(w.Body.String(), "errorCode") {
			t.Errorf("%.80s: %d %s", body, w.Code, w.Body)
		}
	}
}

// ARD §7.4: the list pages through the entries.
func TestList(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":            `lingua`,
		"?pageSize=1": `"pageToken":"agent://papers.example/desk/extractor"`,
		"?pageSize=1&pageToken=agent%3A%2F%2Ftalks.example%2Fa": `{"items":[{"identifier":"urn:air:words-2.example:agent:lingua"`,
		"?pageSize=1&pageToken=agent://talks.example/was-here":  `{"items":[{"identifier":"urn:air:words-2.example:agent:lingua"`,
		"?pageToken=agent://words_2.example/lingua":             `{"items":[]}`,
		"?pageSize=101":            `INVALID_ARGUMENT`,
		"?pageToken=99999999":      `INVALID_ARGUMENT`,
		"?pageSize=0":              `INVALID_ARGUMENT`,
		"?pageSize=many":           `INVALID_ARGUMENT`,
		"?pageToken=x":             `INVALID_ARGUMENT`,
		"?orderBy=displayName":     `INVALID_ARGUMENT`,
		"?filter=type%20%3D%20'x'": `INVALID_ARGUMENT`,
	} {
		if w := ask(t, http.MethodGet, ListPath+query, "", true); !strings.Contains(w.Body.String(), want) || (w.Code == 200) == strings.Contains(want, "INVALID") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// A page of the list costs what it shows, wherever it begins.
func TestListReadsOnePage(t *testing.T) {
	t.Parallel()
	var cards []api.Card
	for n := range 500 {
		cards = append(cards, api.Card{Agent: performatives.Agent(fmt.Sprintf("agent://papers.example/%03d", n))})
	}
	reads := 0
	g := New(Options{Agents: after(cards, func() { reads++ }), A2A: func(api.Card) string { return "" }, Allow: func(*http.Request) bool { return true }})
	token, seen := "", 0
	for {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ListPath+"?pageSize=60&pageToken="+url.QueryEscape(token), nil))
		var page struct {
			Items []jsontext.Value `json:"items"`
			Token string           `json:"pageToken"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Items) == 0 || page.Token == token {
			t.Fatal(err, w.Body)
		}
		if seen += len(page.Items); reads > 61 {
			t.Errorf("a page after %q reads %d cards", token, reads)
		}
		if token, reads = page.Token, 0; token == "" {
			break
		}
	}
	if seen != len(cards) {
		t.Errorf("the pages show %d of %d agents", seen, len(cards))
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ListPath+"?pageToken=99999999", nil))
	if w.Code != http.StatusBadRequest || reads > 0 {
		t.Errorf("a token that no page gave: %d, %d cards read", w.Code, reads)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		allow        bool
		status       int
	}{
		{http.MethodPost, CatalogPath, true, 405}, {http.MethodGet, SearchPath, true, 405}, {http.MethodGet, CatalogPath, false, 429}, {http.MethodGet, "/x", true, 404},
		{http.MethodPost, ExplorePath, true, 501}, {http.MethodGet, ExplorePath, true, 405},
	} {
		if w := ask(t, c.method, c.path, "", c.allow); w.Code != c.status {
			t.Errorf("%s %s: %d", c.method, c.path, w.Code)
		}
	}
}

// Searches take turns, and who has gone away while it waited takes none.
func TestSearchesTakeTurns(t *testing.T) {
	t.Parallel()
	reading, goOn := make(chan struct{}), make(chan struct{})
	reads := 0
	g := New(Options{
		Agents: func(performatives.Agent) iter.Seq[api.Card] {
			reads++
			close(reading)
			<-goOn
			return slices.Values([]api.Card{})
		},
		A2A:   func(api.Card) string { return "" },
		Allow: func(*http.Request) bool { return true },
	})
	search := func(ctx context.Context) {
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, SearchPath, strings.NewReader(`{"query":{"text":"pdf"}}`)))
	}
	done := make(chan struct{})
	go func() {
		search(t.Context())
		close(done)
	}()
	<-reading
	gone, leave := context.WithCancel(t.Context())
	leave()
	search(gone)
	close(goOn)
	<-done
	if reads != 1 {
		t.Errorf("%d searches read the cards", reads)
	}
}
