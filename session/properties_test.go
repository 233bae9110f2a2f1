package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is said in whatever order: a refusal changes nothing, terminal states
// never move, nobody receives what is not for them, and cached State is replayed State.
// The stage asserts it after every act.
func TestAnythingSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newConversation(t, cells{})
		// Most sessions get somewhere before anything may happen.
		for _, line := range rapid.SampledFrom(openings).Draw(t, "opening") {
			c.tell(t, line)
		}
		for range rapid.IntRange(5, 40).Draw(t, "acts") {
			c.tell(t, anyLine.Draw(t, "line"))
		}
		c.replayed()
	})
}

func (c *conversation) tell(t *rapid.T, line string) {
	t.Helper()
	if _, err := c.perform(line, strings.Fields(line)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

var openings = [][]string{
	{},
	{`alpha invite i1 -> beta`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`},
	{`alpha invite i1 -> beta, gamma`, `beta ACCEPT i1`, `gamma ACCEPT i1`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1}`, `beta ACCEPT p1`, `alpha COMMIT k1 p1`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`, `beta DELEGATE d1 delia full`, `delia DELEGATE d2 dora full`, `beta PROPOSE p1 {"price":1}`},
	{`alpha invite i1 -> bob`, `bob ACCEPT i1`, `alpha ESCALATE e1 high`},
	executing,
	slices.Concat(executing, []string{`beta INFORM result {"commitmentId":"k1","obligation":"0","quantity":2} as=m1`}),
	slices.Concat(executing, []string{`+5h`, `alpha INFORM dispute {"disputeId":"x1","subject":"#3","ground":"late","claim":"too late","severity":2}`}),
}

// executing opens a session that carries out what was agreed.
var executing = []string{
	`alpha invite i1 -> beta {"policy":{"arbiter":"@gamma"}}`, `beta ACCEPT i1`, `beta DELEGATE d1 delia full`,
	`beta COMMIT k1 - {"terms":{"obligations":[{"party":"@beta","action":"deliver","deadline":"T+4h","quantity":3},{"party":"@alpha","action":"pay","verificationMethod":"bank"}]}}`, `alpha ACCEPT k1`,
}

// execution is what may be said of it.
var execution = rapid.Custom(func(t *rapid.T) string {
	of := fmt.Sprintf(`"commitmentId":"k1","obligation":"%d"`, rapid.IntRange(0, 1).Draw(t, "obligation"))
	dispute := fmt.Sprintf(`"disputeId":"x%d"`, rapid.IntRange(1, 2).Draw(t, "dispute"))
	act := rapid.SampledFrom([]string{
		`INFORM result {` + of + `} as=m1`, `INFORM result {` + of + `,"quantity":1} as=m2`, `INFORM result {` + of + `,"quantity":4} as=m3`,
		`INFORM progress {` + of + `}`, `INFORM waiver {` + of + `,"reason":"why not"}`,
		`ACCEPT m1`, `ACCEPT m2`, `ACCEPT m1 {"quantity":1}`, `REJECT m1 code=late`, `REJECT m2 code=unspecified`,
		`amend a1 k1 {"obligations":[{"id":"0","party":"@beta","action":"deliver less","quantity":1}]}`, `amend a2 k1 {"obligations":[{"id":"2","party":"@alpha","action":"say thanks","deadline":"T+5h"}]}`,
		`ACCEPT a1`, `ACCEPT a2`, `REJECT a1`, `WITHDRAW a1`,
		fmt.Sprintf(`INFORM dispute {%s,"subject":"#%d","ground":"non-delivery","claim":"it is not so","severity":2}`, dispute, rapid.IntRange(0, 8).Draw(t, "entry")),
		`INFORM reply {` + dispute + `,"position":"concede"}`, `INFORM reply {` + dispute + `,"position":"deny"}`, `INFORM reply {` + dispute + `,"position":"offer"} as=m4`, `ACCEPT m4`,
		`INFORM resolution {` + dispute + `,"decision":"upheld","reason":"it is so"}`, `CLOSE`,
	}).Draw(t, "act")
	return rapid.SampledFrom([]string{"alpha", "alpha", "beta", "beta", "gamma", "delia"}).Draw(t, "party") + " " + act
})

var (
	who     = rapid.SampledFrom([]string{"alpha", "beta", "gamma", "delta", "delia", "dora", "dirk", "alice", "carol", "chief", "bob", "ghost"})
	offerID = rapid.SampledFrom([]string{"i1", "p1", "p2", "p3", "p4", "k1", "k2", "c1", "c2", "d1", "d2", "d3", "e1", "e2", "nothing"})
	newID   = rapid.SampledFrom([]string{"p1", "p2", "p3", "p4", "k1", "k2", "i1", "i2"})
	label   = rapid.SampledFrom([]string{"c1", "c2", "d1", "d2", "d3", "e1", "e2"})
	field   = rapid.SampledFrom([]string{"terms", "terms.price", "subject", "terms.obligations.0.party", "nowhere"})
	ruling  = rapid.SampledFrom([]string{"approved", "approved", "denied", "guidance", `approved {"authority":{"maxAmount":2}}`,
		`modified {"authority":{"maxAmount":1,"currency":"USD"}}`, `modified {"authority":{"maxAmount":3,"termPath":"terms.price","validUntil":"2026-03-07T15:00:00Z"}}`})
	level   = rapid.SampledFrom([]string{"full", "full", "limited", "advisory"})
	urgency = rapid.SampledFrom([]string{"low", "medium", "high", "critical"})
	extra   = rapid.SampledFrom([]string{"", "", "", "", "", ` as=m1`, ` id=m1`, ` link=right`, ` link=3`,
		` by={"allowedPerformatives":["ACCEPT","CLARIFY"]}`, ` by={"requiredTrustScore":50}`})
	until = rapid.SampledFrom([]string{"", "", "", ` until=5s`, ` until=-1s`, ` until=20m`})
	to    = rapid.SampledFrom([]string{"", "", "", ` -> beta`, ` -> alpha`, ` -> delia`})
)

var anyLine = rapid.Custom(func(t *rapid.T) string {
	price := rapid.IntRange(1, 3).Draw(t, "price")
	who, id, ref, label := who.Draw(t, "who"), newID.Draw(t, "id"), offerID.Draw(t, "ref"), label.Draw(t, "label")
	until, to := until.Draw(t, "until"), to.Draw(t, "to")
	acts := map[string]string{
		"invite":   fmt.Sprintf(`invite %s -> beta, gamma {"purpose":"x"}`, id),
		"PROPOSE":  fmt.Sprintf(`PROPOSE %s {"price":%d}%s%s`, id, price, to, until),
		"ACCEPT":   "ACCEPT " + ref,
		"REJECT":   "REJECT " + ref,
		"COUNTER":  fmt.Sprintf(`COUNTER %s %s {"price":%d}%s`, id, ref, price, until),
		"INFORM":   `INFORM progress {"done":1}`,
		"answers":  fmt.Sprintf("answers %s %s %s", ref, field.Draw(t, "field"), field.Draw(t, "field")),
		"rules":    fmt.Sprintf("rules %s %s", ref, ruling.Draw(t, "ruling")),
		"QUERY":    "QUERY " + id,
		"CLARIFY":  fmt.Sprintf("CLARIFY %s %s %s %s", label, ref, field.Draw(t, "field"), field.Draw(t, "field")),
		"COMMIT":   fmt.Sprintf("COMMIT %s - alpha%s", id, to),
		"DELEGATE": fmt.Sprintf("DELEGATE %s %s %s%s", label, target.Draw(t, "target"), level.Draw(t, "level"), until),
		"ESCALATE": fmt.Sprintf("ESCALATE %s %s", label, urgency.Draw(t, "urgency")),
		"WITHDRAW": "WITHDRAW " + ref,
		"OBSERVE":  "OBSERVE",
		"CLOSE":    "CLOSE",
	}
	verb := rapid.SampledFrom([]string{
		"time", "registry", "execution", "execution", "execution", "invite", "PROPOSE", "PROPOSE", "ACCEPT", "ACCEPT", "ACCEPT", "REJECT", "COUNTER", "COUNTER", "INFORM", "answers", "rules", "rules",
		"QUERY", "CLARIFY", "CLARIFY", "COMMIT", "DELEGATE", "DELEGATE", "ESCALATE", "WITHDRAW", "WITHDRAW", "OBSERVE", "CLOSE",
	}).Draw(t, "verb")
	switch verb {
	case "execution":
		return execution.Draw(t, "execution")
	case "time":
		return rapid.SampledFrom([]string{"+0s", "+1ms", "+3s", "+25s", "+20m", "+5h"}).Draw(t, "time")
	case "registry":
		return rapid.SampledFrom([]string{"register carol decide", "register carol principal", "register bob principal", "register bob decide", "trust beta 20", "trust beta 70",
			"limit alice 2 USD", "register alice decide", "register chief decide", "route alice,chief 2 20m / carol 1 5h", "route everybody 1 5h", "transfer 2"}).Draw(t, "registry")
	case "invite":
		return who + " " + acts[verb]
	}
	return who + " " + acts[verb] + extra.Draw(t, "extra")
})

var target = rapid.SampledFrom([]string{"delta", "delia", "dora", "dirk", "alpha", "carol", "ghost"})

// Bounds that rulings set are reached by anything said, not only by conversations.
func TestRulingsSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newConversation(t, cells{})
		for _, line := range []string{
			`register chief decide`, `register carol decide`, `limit carol 2 USD`, `route alice,chief 2 20m / carol 1 5h`,
			`alpha invite i1 -> beta`, `beta ACCEPT i1`, `beta PROPOSE p1 {"price":2,"currency":"USD"}`,
			`beta DELEGATE d1 delia full`, `alpha ESCALATE e1 low p1`,
		} {
			c.tell(t, line)
		}
		for range rapid.IntRange(3, 15).Draw(t, "acts") {
			line := rapid.SampledFrom([]string{
				"rules", "rules", "rules", "rules", "+20m", "transfer 2", "alpha ACCEPT p1", "alpha COMMIT k1 p1", `alpha COUNTER p2 p1 {"price":3}`,
				`alpha COUNTER p3 p1 {"price":1}`, "alpha ESCALATE e2 low p1", "delia ESCALATE e3 high", "alpha COMMIT k2", `alpha PROPOSE p4 {"price":4}`,
			}).Draw(t, "line")
			if line == "rules" {
				line = fmt.Sprintf("%s rules %s %s", rapid.SampledFrom([]string{"alice", "chief", "carol", "bob"}).Draw(t, "who"),
					rapid.SampledFrom([]string{"e1", "e1", "e2", "e3"}).Draw(t, "of"), ruling.Draw(t, "ruling"))
			}
			c.tell(t, line)
		}
		c.replayed()
	})
}
