package discovery_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

func candidate(name string, score, trust float64, price string, queue int) discovery.Candidate {
	c := discovery.Candidate{Agent: performatives.Agent("agent://a.b/" + name), Source: discovery.ByAgent, Trust: &trust}
	c.Accepted, c.Score, c.Confidence, c.QueueDepth = score > 0, score, 0.8, &queue
	c.Subscores = &discovery.Subscores{SkillMatch: score, Cost: 0.5, Load: 1 / (1 + float64(queue))}
	if price != "" {
		c.Pricing = jsontext.Value(`{"amount":"` + price + `","currency":"EUR"}`)
	}
	return c
}

func TestRank(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"":                 "fit busy known cheap dear no",
		"best":             "fit busy known cheap dear no",
		"cheapest":         "cheap known busy fit dear no",
		"cheapest:0.6":     "known busy fit cheap dear no",
		"queue":            "fit known cheap dear busy no",
		"trust":            "known cheap fit busy dear no",
		"trust:0.7":        "known fit busy cheap dear no",
		"score=1,trust=10": "known cheap fit busy dear no",
		"load=1":           "fit known cheap dear busy no",
	} {
		by, err := discovery.ParsePolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		all := []discovery.Candidate{
			candidate("no", 0, 100, "0.01", 0), candidate("dear", 0.4, 10, "", 0), candidate("cheap", 0.5, 70, "1", 0),
			candidate("known", 0.7, 90, "2", 0), candidate("busy", 0.9, 40, "3.00", 9), candidate("fit", 0.9, 50, "4", 0),
		}
		by.Rank(all)
		var got []string
		for _, c := range all {
			got = append(got, strings.TrimPrefix(string(c.Agent), "agent://a.b/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", policy, got, want)
		}
	}
}

// The answer says what the ranking went by.
func TestWhy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"":                       "score 0.9, confidence 0.8, trust 50",
		"cheapest:0.95":          "price 4; score 0.9 is below 0.95",
		"cheapest":               "price 4",
		"queue:0.5":              "queue 2; score 0.9 is at least 0.5",
		"trust":                  "trust 50",
		"trust=2,load=3,score=1": "1 × score 0.9 + 2 × trust 0.5 + 3 × load 0.3333 = 2.9",
	} {
		by, err := discovery.ParsePolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		all := []discovery.Candidate{candidate("fit", 0.9, 50, "4.00", 2), candidate("no", 0, 50, "4", 2)}
		by.Explain(all)
		if all[0].Why != want || all[1].Why != "" {
			t.Errorf("%q: %q and %q, want %q", policy, all[0].Why, all[1].Why, want)
		}
		bare := discovery.Candidate{Assessment: discovery.Assessment{Accepted: true}}
		if one := []discovery.Candidate{bare}; policy == "" {
			for _, unknown := range []string{"cheapest", "queue", "trust"} {
				by, _ := discovery.ParsePolicy(unknown)
				by.Explain(one)
				if one[0].Why != map[string]string{"cheapest": "no price", "queue": "queue unknown", "trust": "no trust score"}[unknown] {
					t.Errorf("%s: %q", unknown, one[0].Why)
				}
			}
		}
	}
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"worst", "cheapest:2", "cheapest:NaN", "trust:", "score=-1", "score=x", "luck=1", "score=1,", "=", "best:0.5:1"} {
		if _, err := discovery.ParsePolicy(text); err == nil {
			t.Errorf("%q is a policy", text)
		}
	}
}

// A candidate is one flat object.
func TestCandidateJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(discovery.Candidate{Agent: "agent://a.b/c", Source: discovery.ByRegistry, Assessment: discovery.Assessment{Confidence: 1, Rejection: discovery.NoSkills}})
	if want := `{"agentId":"agent://a.b/c","source":"registry","accepted":false,"score":0,"confidence":1,"rejection_reason":"no_skills_advertised"}`; err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
}
