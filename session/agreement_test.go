package session_test

import (
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// bind makes the agreement of an offer and signs it; an ACCEPT signs that of the offer
// that it names.
func (c *conversation) bind(a *act, b body, with string) error {
	if _, accepts := b["terms"]; !accepts {
		ref, _ := b["referenceId"].(string)
		signature, err := agreement.Sign(signerOf(with), c.hashes[ref])
		b["agreementSignature"] = signature
		return err
	}
	proposal, _ := b["proposalId"].(string)
	salt := sha256.Sum256([]byte(proposal))
	fill := func(name, otherwise string) string {
		if said, given := b[name]; given {
			otherwise, _ = said.(string)
		} else {
			b[name] = otherwise
		}
		return otherwise
	}
	o := agreement.Offer{
		Session: sessionID, Proposal: proposal, Salt: salt,
		Binding: performatives.Binding{EffectiveFrom: fill("effectiveFrom", c.now.Format(time.RFC3339))},
	}
	fill("agreementSalt", base64.RawURLEncoding.EncodeToString(salt[:]))
	o.EffectiveUntil, _ = b["effectiveUntil"].(string)
	o.Category, _ = b["category"].(string)
	side := c.state.SideOf(a.draft.Sender, c.now)
	o.Parties = []performatives.Agent{side, c.state.Other(side)}
	terms, err := json.Marshal(b["terms"])
	if err != nil {
		return err
	}
	o.Terms = jsontext.Value(terms)
	d, err := agreement.Draft(o)
	if err != nil {
		return err
	}
	c.hashes[proposal] = d.Hash
	b["agreementSignature"], err = agreement.Sign(signerOf(with), d.Hash)
	return err
}
