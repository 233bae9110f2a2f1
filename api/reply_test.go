package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/session"
)

// A refusal is bounded however much a counterparty made it name, and says what it cut.
func TestRefusedIsBounded(t *testing.T) {
	t.Parallel()
	var fields []string
	for n := range 20_000 {
		fields = append(fields, fmt.Sprintf("a field with a long name, number %d", n))
	}
	var faults []session.Fault
	for range 2000 {
		faults = append(faults, session.Fault{Path: "/terms", Rule: "type", Message: strings.Repeat("\x01é", 100)})
	}
	for name, r := range map[string]*session.Refusal{
		"list":    session.Refuse(session.ClarificationPending, "waits for %v", fields).With(map[string]any{"openFields": fields, "referenceId": "p1"}),
		"text":    session.Refuse(session.Duplicate, "x").With(map[string]string{"id": strings.Repeat("é", 100_000)}),
		"name":    session.Refuse(session.Duplicate, "x").With(map[string]string{strings.Repeat("é", 100_000): "x"}),
		"message": session.Refuse(session.Duplicate, "%s", strings.Repeat("\x01", 100_000)),
		"faults":  session.RefuseSchema(faults...),
	} {
		reply := api.Refused(r)
		if size := fit.Size(reply); size > 80<<10 {
			t.Errorf("%s: %d bytes", name, size)
		}
		if reply.Error.Code != r.Code || !reply.Error.Details.IsValid() && r.Details != nil {
			t.Errorf("%s: %.200s", name, reply.Error.Details)
		}
		if reply.Error.Details.Kind() == '{' && !strings.HasSuffix(string(reply.Error.Details), `"truncated":true}`) {
			t.Errorf("%s: it does not say that it is cut", name)
		}
	}
	open := api.Refused(session.Refuse(session.ClarificationPending, "waits").With(map[string]any{"openFields": fields, "referenceId": "p1"}))
	var d struct {
		OpenFields []string `json:"openFields"`
		Reference  string   `json:"referenceId"`
	}
	if err := json.Unmarshal(open.Error.Details, &d); err != nil || len(d.OpenFields) < 500 || d.Reference != "p1" {
		t.Errorf("%d fields of %q (%v)", len(d.OpenFields), d.Reference, err)
	}
	whole := api.Refused(session.Refuse(session.Duplicate, "x").With(map[string]string{"id": "p1"}))
	if want := jsontext.Value(`{"id":"p1"}`); string(whole.Error.Details) != string(want) {
		t.Errorf("%s, want %s", whole.Error.Details, want)
	}
}
