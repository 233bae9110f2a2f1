package hosted

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// sealed is a body in which what only the sender's own side may read is sealed (PROTOCOL.md §7), and
// what opens it. The salts derive from the installation's secret and the act: who says the same again
// makes the same envelope, and nobody without the secret can try out values. A body that cannot be read
// stays as it is, for the broker to refuse.
func (h *Agents) sealed(as performatives.Agent, made Act, said api.Say, body jsontext.Value) (jsontext.Value, performatives.SealedParts, error) {
	if h.o.Open || said.Open {
		return body, nil, nil
	}
	of := strings.Join([]string{"parley salts v1", string(as), string(made.Session), string(made.Message)}, "\n")
	salts, err := hkdf.Expand(sha256.New, h.o.Secret, of, len(usuallySealed)*performatives.SaltBytes)
	if err != nil {
		return nil, nil, err
	}
	stands, parts, err := performatives.Seal(performatives.Parse(said.Performative), body, bytes.NewReader(salts), usuallySealed...)
	if err != nil {
		return body, nil, nil //nolint:nilerr // the broker says what is wrong with it
	}
	return stands, parts, nil
}

// usuallySealed are the members that are sealed for who does not sign for itself.
var usuallySealed = []string{performatives.SealContext, performatives.SealSuggested, performatives.SealAuthority}
