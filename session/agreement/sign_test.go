package agreement_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// What cannot be completed stays as it is, for the protocol to refuse.
func TestCompleteUnreadable(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "null", "7", "[]", "{", `{"proposalId":7}`, `{"referenceId":"p1"}`} {
		for _, act := range []performatives.Performative{performatives.Propose, performatives.Counter, performatives.Accept} {
			got, err := agreement.Party{Self: "agent://acme.com/a", Other: "agent://widgets.co/b"}.Complete(act, jsontext.Value(body))
			if complete := act != performatives.Accept && body == `{"referenceId":"p1"}`; err != nil || !complete && string(got) != body {
				t.Errorf("%s %s is completed to %s, %v", act, body, got, err)
			}
		}
	}
}
