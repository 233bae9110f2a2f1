package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

func TestReadRules(t *testing.T) {
	rules, err := server.ReadRules(filepath.Join("..", "examples", "escalations.yaml"))
	testkit.Must(t, err)
	asked := time.Date(2026, 12, 24, 16, 30, 0, 0, time.UTC) // half past five in Paris, before a holiday and a weekend
	route, plan := rules.Route(escalation.Ask{
		Org: "acme.com", Urgency: escalation.High, Reason: "authority-limit", At: asked,
		Amount: func([]string) *escalation.Amount { return &escalation.Amount{Value: 20000, Currency: "USD"} },
	})
	if route == nil || len(route.Levels) != 2 || plan.Rule != "large" {
		t.Fatalf("%+v %+v", route, plan)
	}
	// No approver is registered, so the first level is skipped at once.
	if first := route.Levels[0]; !first.Due.Equal(asked) || first.Quorum != 2 || len(first.Approvers) != 2 {
		t.Errorf("the buyers: %+v", first)
	}
	// Two hours of work: half an hour that day, the rest on the Monday after.
	if want := time.Date(2026, 12, 28, 9, 30, 0, 0, time.UTC); !route.Levels[1].Due.Equal(want) {
		t.Errorf("the board is due %s, want %s", route.Levels[1].Due, want)
	}
}

// A fault is reported with its line and its path, never ignored.
func TestReadRulesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"organisations:\n  acme.com:\n    quorom: 2\n":                                                                  "line 3: field quorom not found",
		"organisations: {acme.com: {rules: [{approvers: [nobody]}]}}":                                                   `there is no group "nobody"`,
		"organisations: {acme.com: {rules: [{approvers: ['human://widgets.co/bob']}]}}":                                 "is not a human of acme.com",
		"organisations: {acme.com: {groups: {g: ['agent://acme.com/a']}}}":                                              "is not a human of acme.com",
		"organisations: {acme.com: {rules: [{approvers: ['human://acme.com/a'], quorum: 2}]}}":                          "2 of 1 approvers is impossible",
		"organisations: {Acme.com: {}}":                                                                                 `"Acme.com" is no host`,
		"organisations: {\"https://acme.com\": {deny: {}}}":                                                             `"https://acme.com" is no host`,
		"organisations: {acme.com: {calendar: office}}":                                                                 `there is no calendar "office"`,
		"calendars: {office: {zone: Mars/Olympus, hours: {mon: ['09:00-10:00']}}}":                                      "zone",
		"calendars: {office: {hours: {someday: ['09:00-10:00']}}}":                                                      `"someday" is not a day`,
		"calendars: {office: {hours: {mon: ['10:00-09:00']}}}":                                                          "ends before it starts",
		"calendars: {office: {}}":                                                                                       "hours: there are none",
		"organisations:\n  acme.com:\n    deny: {reasons: [Above the budget, '']}\n":                                    "line 3: organisations: acme.com: deny: a reason is empty",
		"organisations: {acme.com: {deny: {reasons: [a, a]}}}":                                                          `deny: "a" is there twice`,
		"organisations: {acme.com: {deny: {reason: required}}}":                                                         "field reason not found",
		"organisations:\n  acme.com:\n    groups: [g]\n":                                                                "line 3: groups: want keys with values",
		"organisations: {acme.com: {rules: [{approvers: ['human://acme.com/a'], quorum: two}]}}":                        "line 1: quorum: want a whole number",
		"organisations: {acme.com: {due: [1h]}}":                                                                        "line 1: due: want a duration such as 4h, or one for each urgency",
		"organisations: {acme.com: {due: {soon: 1h}}}":                                                                  `line 1: due: there is no urgency "soon"`,
		"organisations:\n  acme.com:\n    groups: {due: ['human://acme.com/a']}\n    remind: soon\n":                    `line 4: remind: time: invalid duration "soon"`,
		"organisations:\n  acme.com:\n    rules:\n      - approvers: []\n        chain:\n          - due: {low: -4h}\n": "line 6: due: -4h is below zero",
		"organisations:\n  acme.com:\n    rules:\n      - match:\n          reason: [bogus]\n":                          `line 5: organisations: acme.com: rules: 1: match: reason: there is no "bogus"`,
		"organisations:\n  acme.com:\n    rules:\n      - match:\n          amount: {min: 10, max: 5}\n":                "line 5: organisations: acme.com: rules: 1: match: amount: max 5 is below min 10",
		"organisations:\n  acme.com:\n    groups:\n      g: ['human://acme.com/a']\n    rules:\n      - name: large\n        approvers: [g]\n        chain:\n          - approvers: [nobody]\n": `line 9: organisations: acme.com: rules: 1 (large): chain: 1: approvers: there is no group "nobody"`,
		"organisations:\n  acme.com:\n    rules:\n      -\n":                                "line 4: an item of rules has no value",
		"organisations:\n  acme.com:\n    calendar: office\n":                               `line 3: organisations: acme.com: calendar: there is no calendar "office"`,
		"organisations: {acme.com: {due: never}}":                                           "line 1",
		"organisations: {acme.com: {rules: [{match: {urgency: [urgent]}, approvers: []}]}}": `there is no "urgent"`,
	} {
		path := filepath.Join(t.TempDir(), "escalations.yaml")
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := server.ReadRules(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "escalation.") {
			t.Errorf("%s\n: %v; want %s", text, err, want)
		}
	}
}

// Rules that ask somebody who cannot decide are in force, with a warning: a level that nobody can approve is passed over.
func TestApproverWhoIsNotThere(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	w := testkit.NewWorld(t, testkit.Options{Log: zap.New(core)})
	warned := func() int { return logged.FilterField(zap.String("human", "human://acme.com/boss")).Len() }
	testkit.Must(t, w.Reload(w.Ctx, ruled(t, oneDecides)))
	if warned() != 1 {
		t.Errorf("%d warnings of the boss, who is not registered", warned())
	}
	w.Principal("human://acme.com/boss", func(c *api.Card) { c.Registry.MayDecide = true })
	testkit.Must(t, w.Reload(w.Ctx, ruled(t, oneDecides)))
	if warned() != 1 {
		t.Error("a warning of the boss, who may decide")
	}
}
