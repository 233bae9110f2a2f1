package inbox_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The charts say in words what they draw, beside them stands a table, and names that either
// side wrote are text. A non-participant counts nothing.
func TestInsightsPage(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "cups", Mode: "bilateral/1"})
	testkit.Must(t, err)
	sells := w.Client(beta).Session(s.ID())
	_, err = sells.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	fits := client.Assess(map[string]any{"reasoning": "it fits", "suggestedRoles": map[string]string{"ownUser": "peer", "otherUser": "peer"}})
	objects := client.Assess(map[string]any{"reasoning": "delivery before Friday", "suggestedRoles": map[string]string{"ownUser": "peer", "otherUser": "peer"}})
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "cups", Terms: map[string]any{"price": 5}}, fits)
	testkit.Must(t, err)
	_, err = sells.Counter(w.Ctx, "p1", client.Proposal{ID: "p2", Terms: map[string]any{"price": 6, "<script>x</script>\u202e": 1}}, objects)
	testkit.Must(t, err)
	_, err = s.Accept(w.Ctx, "p2", fits)
	testkit.Must(t, err)

	page := v.sends("GET", "/inbox/insights", "").body
	for _, want := range []string{
		`aria-current="page">Insights</a>`, `<title id="ends-title">How sessions ended</title>`,
		`<desc id="ends-desc">agreed 1, rejected 0, stalled 0, failed 0</desc>`, `<desc id="turns-desc">3 turns 1</desc>`,
		`<th scope="row"><bdi dir="auto">price</bdi></th><td class="n">1</td>`, "&lt;script&gt;x&lt;/script&gt;\\u202e",
		`<desc id="objections-desc">delivery 1, friday 1</desc>`, `<h2 id="types-heading">By type</h2>`, `<bdi dir="auto">service-agreement</bdi></th><td class="n">1</td><td class="n">0</td>`,
		`<h2 id="scenarios-heading">By who negotiated</h2>`, `<bdi dir="auto">personal and personal</bdi></th><td class="n">1</td>`,
		`<a href="insights?period=month"`, `<a href="insights?mode=bilateral%2F1">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if images, described := strings.Count(page, "<svg"), len(regexp.MustCompile(`<svg [^>]*role="img" aria-labelledby="[a-z]+-title [a-z]+-desc">`).FindAllString(page, -1)); images == 0 || images != described {
		t.Errorf("%d of %d charts are described", described, images)
	}
	if strings.Contains(page, "<script>x") || strings.Contains(page, "\u202e") {
		t.Error("the name of a term is more than text")
	}
	for query, ended := range map[string]bool{"?mode=bilateral%2F1&period=year": true, "?mode=asp%2F1": false, "?period=no": true} {
		got := v.sends("GET", "/inbox/insights"+query, "").body
		if strings.Contains(got, "<svg") != ended || strings.Contains(got, "No session ended") == ended {
			t.Errorf("%s: sessions that ended: %v, want %v", query, strings.Contains(got, "<svg"), ended)
		}
	}
	v.posts("/inbox/login", map[string]any{"agentId": "human://elsewhere.example/eve"})
	if got := v.sends("GET", "/inbox/insights", "").body; !strings.Contains(got, "No session ended") || strings.Contains(got, "<svg") {
		t.Error("a non-participant counts sessions")
	}
}
