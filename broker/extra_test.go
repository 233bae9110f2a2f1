package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// Members that parley does not know are kept under extra, and come back as they were when
// an agent sends the card that it read. Those that would be believed are refused by name,
// and change nothing (PROTOCOL.md section 9).
func TestExtraMembers(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	c := w.Client("agent://acme.com/alpha")
	registers := func(card string) (api.Card, error) {
		t.Helper()
		reply, err := c.Call(w.Ctx, api.AgentRegister.Name, []byte(`{"card":`+card+`}`))
		var registered api.Card
		if err == nil {
			testkit.Must(t, json.Unmarshal(reply, &registered))
		}
		return registered, err
	}
	_, err := registers(`{"agentId":"agent://acme.com/alpha","name":"Alpha","region":"eu-west","sla":{"hours":4},"extra":{"shift":"night"}}`)
	testkit.Must(t, err)
	kept := func() {
		t.Helper()
		card, err := w.Client("agent://widgets.co/beta").Card(w.Ctx, c.Agent())
		testkit.Must(t, err)
		if len(card.Extra) != 3 || string(card.Extra["region"]) != `"eu-west"` || string(card.Extra["sla"]) != `{"hours":4}` || string(card.Extra["shift"]) != `"night"` {
			t.Errorf("the card has extra %s", card.Extra)
		}
	}
	kept()
	own, err := c.Card(w.Ctx, c.Agent())
	testkit.Must(t, err)
	_, err = c.Register(w.Ctx, own)
	testkit.Must(t, err)
	kept()

	many := api.Extra{}
	for i := range 65 {
		many[fmt.Sprint("m", i)] = jsontext.Value("1")
	}
	crowd, err := json.Marshal(many)
	testkit.Must(t, err)
	for said, path := range map[string]string{
		`"authorityLevel":5`:                          "/card/authorityLevel",
		`"trustLevel":"high"`:                         "/card/trustLevel",
		`"trustScore":99`:                             "/card/trustScore",
		`"trust_score":99`:                            "/card/trust_score",
		`"trust":1`:                                   "/card/trust",
		`"dpopPublicKey":"x"`:                         "/card/dpopPublicKey",
		`"publicKey":"x"`:                             "/card/publicKey",
		`"mayDecide":true`:                            "/card/mayDecide",
		`"max_transaction_value":1`:                   "/card/max_transaction_value",
		`"extra":{"trustLevel":"high"}`:               "/card/trustLevel",
		`"registry":{"trustScore":99}`:                "/card/registry/trustScore",
		`"registry":{"trustLevel":99}`:                "/card/registry/trustLevel",
		`"domainVerified":true`:                       "/card/domainVerified",
		`"extra":` + string(crowd):                    "/card/extra",
		`"` + strings.Repeat("n", 129) + `":"a name"`: "/card/extra",
	} {
		_, err := registers(`{"agentId":"agent://acme.com/alpha",` + said + `}`)
		refusal, is := errors.AsType[*session.Refusal](err)
		if !is || refusal.Code != session.SchemaInvalid || !strings.Contains(fmt.Sprint(refusal.Details), path) {
			t.Errorf("%.60s: %v", said, err)
		}
	}
	kept()
}

// What an operator registers may have trust under registry, and nowhere else.
func TestOperatorsExtraMembers(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	trust := 80.0
	card := api.Card{Agent: performatives.Agent("agent://acme.com/alpha"), Extra: api.Extra{"region": jsontext.Value(`"eu"`)}, Registry: api.Registry{TrustScore: &trust}}
	if card, err := w.OperatorClient().AddAgent(w.Ctx, card); err != nil || len(card.Extra) != 1 {
		t.Errorf("the operator's card has %s: %v", card.Extra, err)
	}
	card.Extra = api.Extra{"trustLevel": jsontext.Value("9")}
	if _, err := w.OperatorClient().AddAgent(w.Ctx, card); err == nil {
		t.Error("the operator's card has a trustLevel outside registry")
	}
}
