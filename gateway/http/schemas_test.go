package httpgateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// PROTOCOL.md §4: a terms schema is registered over HTTP as it is over NATS.
func TestSchemas(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	const at = "/v1/asp/schemas/cups-v2"
	token, reads := w.Tokens[testkit.Cron], w.Token(api.AddToken{Agent: testkit.Cron, ReadOnly: true})
	cups := `{"schema":{"type":"object","properties":{"price":{"type":"number","maximum":1e2}}}}`
	for range 2 { // the same again changes nothing
		var put api.Schema
		w.Send("PUT", at, token, cups).Is(http.StatusOK, &put)
		if put.Name != "cups-v2" || put.Version != 2 || put.Kind != "terms" || put.By != testkit.Cron {
			t.Errorf("registered %+v", put)
		}
	}
	var got api.Schema
	w.Send("GET", at, w.Tokens[testkit.Seller], "").Is(http.StatusOK, &got)
	if !strings.Contains(string(got.Schema), `"maximum":100`) {
		t.Errorf("the schema is %s", got.Schema)
	}
	var list api.SchemaNames
	w.Send("GET", "/v1/asp/schemas?limit=200", token, "").Is(http.StatusOK, &list)
	if last := list.Schemas[len(list.Schemas)-1]; last.Name != "cups-v2" || last.Schema != nil {
		t.Errorf("the last schema is %+v", last)
	}
	w.Send("PUT", at, token, `{"schema":{"type":"array"}}`).Refused(http.StatusConflict, session.Duplicate)
	w.Send("PUT", "/v1/asp/schemas/PROPOSE", token, cups).Refused(http.StatusConflict, session.Duplicate)
	w.Send("PUT", "/v1/asp/schemas/-", token, cups).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	w.Send("PUT", "/v1/asp/schemas/odd", token, `{"schema":{"type":"odd"}}`).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	w.Send("PUT", "/v1/asp/schemas/odd", token, `{"schema":{"description":"`+strings.Repeat("x", 64<<10)+`"}}`).Refused(http.StatusUnprocessableEntity, session.SchemaInvalid)
	w.Send("PUT", "/v1/asp/schemas/odd", token, `{}`).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("PUT", "/v1/asp/schemas/odd", token, `{"name":"even","schema":{}}`).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("PUT", "/v1/asp/schemas/odd", reads, cups).Refused(http.StatusForbidden, session.Unauthorized)
	w.Send("PUT", "/v1/asp/schemas/odd", "", cups).Refused(http.StatusUnauthorized, session.Unauthorized)
	w.Send("GET", "/v1/asp/schemas/odd", token, "").Refused(http.StatusUnprocessableEntity, session.SchemaUnsupported)
}
