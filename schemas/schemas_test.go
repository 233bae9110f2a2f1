package schemas_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

var update = flag.Bool("update", false, "write the faults that were found into the invalid fixtures")

// An invalidFixture is a testdata/<act>/invalid-*.json. A valid-*.json is the bare
// body.
type invalidFixture struct {
	Body   json.RawMessage `json:"body"`
	Faults []schemas.Fault `json:"faults"`
}

// fixtures returns the files of an act whose names begin with the verdict.
func fixtures(t testing.TB, act performatives.Performative, verdict string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", strings.ToLower(act.String()), verdict+"-*.json"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("%s has %d %s fixtures (%v), want several", act, len(paths), verdict, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = data
	}
	return files
}

// Valid bodies of every act have no faults (PROTOCOL.md §4).
func TestValidBodies(t *testing.T) {
	for _, act := range performatives.All() {
		for path, body := range fixtures(t, act, "valid") {
			if faults := schemas.Validate(act, body); faults != nil {
				t.Errorf("%s: %+v", path, faults)
			}
			decodes(t, act, body)
		}
	}
}

// Invalid bodies of every act have the faults of their fixtures (PROTOCOL.md §4, §9).
func TestInvalidBodies(t *testing.T) {
	for _, act := range performatives.All() {
		for path, data := range fixtures(t, act, "invalid") {
			var fixture invalidFixture
			if err := json.Unmarshal(data, &fixture); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			faults := schemas.Validate(act, jsontext.Value(fixture.Body))
			if len(faults) == 0 {
				t.Errorf("%s: no fault was found", path)
			}
			if *update {
				fixture.Faults = faults
				write(t, path, fixture)
			} else if diff := cmp.Diff(fixture.Faults, faults); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}

func write(t *testing.T, path string, fixture invalidFixture) {
	t.Helper()
	out, err := json.MarshalIndent(fixture, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(out, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// decodes fails the test if a body without faults does not fit its Go type.
func decodes(t *testing.T, act performatives.Performative, body jsontext.Value) {
	t.Helper()
	m := performatives.Message{Performative: act, ActName: act.String(), RawBody: body}
	if err := m.DecodeBody(); err != nil {
		t.Errorf("%s has no faults and does not decode: %v\n%s", act, err, body)
	}
	inform, ok := m.Body.(*performatives.InformBody)
	if ok && inform.Kind() == performatives.Resolution {
		if _, ok := inform.Ruling(); !ok {
			t.Errorf("a resolution without faults is no ruling:\n%s", body)
		}
	}
}

// A COUNTER of an invitation is validated against the schema of an invitation's
// terms too (PROTOCOL.md §5).
func TestValidateInvitation(t *testing.T) {
	if faults := schemas.ValidateInvitation(jsontext.Value(`{"maxDuration": 1000, "mood": "calm"}`)); faults != nil {
		t.Errorf("good terms: %+v", faults)
	}
	want := []schemas.Fault{{Path: "/terms/maxDuration", Rule: "minimum", Message: "terms.maxDuration must be at least 1"}}
	if diff := cmp.Diff(want, schemas.ValidateInvitation(jsontext.Value(`{"maxDuration": 0}`))); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{``, `[]`, `null`, `{`, `{} {}`} {
		if faults := schemas.ValidateInvitation(jsontext.Value(text)); len(faults) != 1 || faults[0].Path != "/terms" || faults[0].Rule != "type" {
			t.Errorf("%q: %+v", text, faults)
		}
	}
}

// The schema of an invitation's terms applies to invitations only.
func TestOnlyInvitationsHaveInvitationTerms(t *testing.T) {
	offer := jsontext.Value(`{"proposalId": "p", "type": "data-exchange", "subject": "s", "terms": {"maxDuration": "long"}}`)
	if faults := schemas.Validate(performatives.Propose, offer); faults != nil {
		t.Errorf("%+v", faults)
	}
}

func TestNotABody(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `5`, `"x"`, `{`, `{}{}`, "\xff"} {
		for _, act := range performatives.All() {
			if faults := schemas.Validate(act, jsontext.Value(text)); len(faults) != 1 || faults[0].Path != "" || faults[0].Rule != "type" {
				t.Errorf("%s %q: %+v", act, text, faults)
			}
		}
	}
	if faults := schemas.Validate(performatives.Unknown, jsontext.Value(`{}`)); len(faults) != 1 {
		t.Errorf("no act: %+v", faults)
	}
	if faults := schemas.Validate(performatives.Acts+7, jsontext.Value(`{}`)); len(faults) != 1 {
		t.Errorf("no act: %+v", faults)
	}
}

// A reply with details fits into a message, however many faults the body has.
func TestFaultsAreBounded(t *testing.T) {
	questions := strings.Repeat(`{"field": "", "question": 5},`, 5000) + `{}`
	faults := schemas.Validate(performatives.Clarify, jsontext.Value(`{"referenceId": "p", "questions": [`+questions+`]}`))
	if len(faults) != schemas.MaxFaults {
		t.Errorf("%d faults", len(faults))
	}
	terms, err := schemas.CompileTerms("deep", jsontext.Value(`{"additionalProperties": {"required": ["a", "b"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	faults = terms.Validate(jsontext.Value(`{"` + strings.Repeat("n", 100_000) + `": {}, "": {}}`))
	if size := len(fmt.Sprint(faults)); len(faults) == 0 || size > 4096 {
		t.Errorf("%d faults in %d bytes", len(faults), size)
	}
}

// The faults of a body are deterministic.
func TestFaultsHaveOneOrder(t *testing.T) {
	body := jsontext.Value(`{"type": "resolution", "data": {"decision": 1, "comment": 2, "authority": {"maxAmount": -1, "currency": "", "validUntil": ""}}}`)
	want := schemas.Validate(performatives.Inform, body)
	for range 50 {
		if diff := cmp.Diff(want, schemas.Validate(performatives.Inform, body)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The schemas are published by name (PROTOCOL.md §4).
func TestPublished(t *testing.T) {
	names := schemas.Names()
	if len(names) != 14 || names[0] != "PROPOSE" || names[13] != "session-invitation" {
		t.Errorf("names: %v", names)
	}
	ids := map[string]bool{}
	for _, name := range names {
		text, ok := schemas.Get(name)
		var schema struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
			Title  string `json:"title"`
			About  string `json:"description"`
		}
		if err := json.Unmarshal(text, &schema); err != nil || !ok {
			t.Fatalf("%s: %v", name, err)
		}
		if schema.Schema != "https://json-schema.org/draft/2020-12/schema" || schema.Title != name || schema.About == "" || ids[schema.ID] {
			t.Errorf("%s: %+v", name, schema)
		}
		ids[schema.ID] = true
	}
	for _, name := range []string{"", "propose", "UNKNOWN", "invitation", "../go.mod"} {
		if _, ok := schemas.Get(name); ok {
			t.Errorf("there is a schema %q", name)
		}
	}
	mine, _ := schemas.Get(performatives.Close.String())
	clear(mine)
	if theirs, _ := schemas.Get(performatives.Close.String()); theirs[0] != '{' {
		t.Error("a caller can change a schema")
	}
}

// Exactly the fields with a star in PROTOCOL.md §4 are required.
func TestRequired(t *testing.T) {
	want := map[string][]string{
		"PROPOSE":  {"proposalId", "type", "subject", "terms"},
		"ACCEPT":   {"referenceId"},
		"REJECT":   {"referenceId", "code", "reason", "retryable"},
		"COUNTER":  {"proposalId", "referenceId", "terms"},
		"INFORM":   {"data"}, // and type or informType
		"QUERY":    {"queryId", "queryType", "subject"},
		"CLARIFY":  {"referenceId", "questions", "field", "question"},
		"COMMIT":   {"commitmentId", "obligations", "party", "action", "value", "currency"}, // the last two of an amount
		"DELEGATE": {"targetAgent", "scope", "authority"},
		"ESCALATE": {"reason", "urgency"}, // and context or sealed
		"WITHDRAW": {"referenceId"},
		"OBSERVE":  {"subject"},
	}
	for _, act := range performatives.All() {
		text, _ := schemas.Get(act.String())
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		got := required(schema, nil)
		slices.Sort(got)
		starred := slices.Sorted(slices.Values(want[act.String()]))
		if diff := cmp.Diff(starred, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", act, diff)
		}
	}
}

// required collects the required fields of an object and of those inside it,
// conditions aside.
func required(v any, found []string) []string {
	schema, _ := v.(map[string]any)
	list, _ := schema["required"].([]any)
	for _, field := range list {
		found = append(found, field.(string))
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		found = required(property, found)
	}
	if items, ok := schema["items"]; ok {
		found = required(items, found)
	}
	return found
}

func Example() {
	body := jsontext.Value(`{"proposalId": "p-1", "type": "service-agreement", "subject": "storage"}`)
	for _, f := range schemas.Validate(performatives.Propose, body) {
		fmt.Println(f.Path, f.Rule+":", f.Message)
	}
	// Output: /terms required: terms is required
}

func BenchmarkValidatePropose(b *testing.B) {
	body := jsontext.Value(`{"assessment":{"confidence":0.8},"message":"A first offer","proposalId":"prop_001","schema":"service-agreement-v1",` +
		`"subject":"100 GB of storage for a year","terms":{"currency":"EUR","duration":{"months":12},"pricePerMonth":40,"sla":{"uptime":99.9},"storageLimit":"100 GB"},` +
		`"type":"service-agreement","validUntil":"2026-03-07T14:30:00Z"}`)
	b.ReportAllocs()
	for b.Loop() {
		if faults := schemas.Validate(performatives.Propose, body); faults != nil {
			b.Fatal(faults)
		}
	}
}

// GATEWAYS.md G1: a transcript says which keys the installation holds, and the entry's schema lists it.
func TestEntryListsCustody(t *testing.T) {
	text, _ := schemas.Get("entry")
	var entry struct {
		Properties struct {
			Integrity struct {
				Properties struct {
					Joined struct {
						Items struct {
							Properties map[string]struct {
								Enum []string `json:"enum"`
							} `json:"properties"`
						} `json:"items"`
					} `json:"joined"`
				} `json:"properties"`
			} `json:"integrity"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatal(err)
	}
	if got := entry.Properties.Integrity.Properties.Joined.Items.Properties["custody"].Enum; !slices.Equal(got, []string{"hosted"}) {
		t.Errorf("custody is one of %q", got)
	}
}
