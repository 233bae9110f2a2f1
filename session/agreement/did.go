package agreement

import (
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// A DID names a party in an agreement.
type DID string

const method = "did:web:"

// DIDOf is the DID of a principal: did:web with its host and path.
func DIDOf(a performatives.Agent) DID { return DID(performatives.WebDID(a)) }

// Agent is the principal of a DID that DIDOf made.
func (d DID) Agent() (performatives.Agent, error) {
	rest, _ := strings.CutPrefix(string(d), method)
	scheme, path := "agent://", strings.ReplaceAll(rest, ":", "/")
	if human := strings.Replace(path, "/%40", "/", 1); human != path {
		scheme, path = "human://", human
	}
	a, err := performatives.ParseAgent(scheme + path)
	if err == nil && DIDOf(a) != d {
		return "", &performatives.Malformed{Path: "/parties", Why: "is no DID of a principal"}
	}
	return a, err
}
