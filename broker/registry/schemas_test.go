package registry_test

import (
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/natskit"
)

// A name means one schema for ever, on every broker. An organisation takes only so
// many names, and an operator any number.
func TestSchemas(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	openSchemas := func() *registry.Schemas {
		opened, err := registry.OpenSchemas(t.Context(), registry.SchemasOptions{Store: openStore(t, s), Max: 2, MaxBytes: 1000, Log: zap.NewNop()})
		natskit.Must(t, err)
		t.Cleanup(opened.Close)
		return opened
	}
	one, two := openSchemas(), openSchemas()
	for _, test := range []struct {
		at           *registry.Schemas
		by           performatives.Agent
		name, schema string
		want         session.Code
	}{
		{one, alpha, "lease-v1", `{"type":"object"}`, ""},
		{two, alpha, "lease-v1", `{ "type": "object" }`, ""}, // the same again
		{two, beta, "lease-v1", `{"type":"array"}`, session.Duplicate},
		{one, alpha, performatives.SessionInvitation, `{"type":"object"}`, session.Duplicate},
		{one, alpha, "a lease", `{"type":"object"}`, session.SchemaInvalid},
		{one, alpha, "lease-v2", `{"type":5}`, session.SchemaInvalid},
		{one, alice, "lease.long-v1", `{"type":"object"}`, ""},
		{one, alpha, "third-v1", `{"type":"object"}`, session.TooLarge},
		{one, beta, "third-v1", `{"type":"object"}`, ""},
		{one, "", "fourth-v1", `{"type":"object"}`, ""},
	} {
		c := api.Caller{Agent: test.by, Operator: test.by == ""}
		if _, err := test.at.Put(t.Context(), c, api.PutSchema{Name: test.name, Schema: []byte(test.schema)}); natskit.CodeOf(err) != test.want || test.want == "" && err != nil {
			t.Errorf("%q registers %s: %v, want %q", test.by, test.name, err, test.want)
		}
	}
	later := openSchemas()
	record, err := later.Get(t.Context(), api.Caller{Agent: beta}, api.SchemaRef{Name: "lease-v1"})
	if err != nil || record.By != alpha || record.Version != 1 || string(record.Schema) != `{"type":"object"}` {
		t.Errorf("a broker that starts later reads %+v, %v", record, err)
	}
	if _, err := later.Get(t.Context(), api.Caller{Agent: beta}, api.SchemaRef{Name: "lease-v2"}); natskit.CodeOf(err) != session.SchemaUnsupported {
		t.Errorf("a schema that nobody registered: %v", err)
	}
	var terms []string
	for page := (api.ListSchemas{Limit: 3}); ; {
		list, err := later.List(t.Context(), api.Caller{}, page)
		natskit.Must(t, err)
		for _, r := range list.Schemas {
			if r.Kind == "terms" {
				terms = append(terms, r.Name)
			}
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	if want := []string{"fourth-v1", "lease-v1", "lease.long-v1", "third-v1"}; !slices.Equal(terms, want) {
		t.Errorf("listed are %q, want %q", terms, want)
	}
}
