package agreement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A Format is a protocol for what comes after an agreement.
type Format string

// The formats.
const (
	AP2  Format = "ap2"  // mandates of the Agent Payments Protocol
	UCP  Format = "ucp"  // a checkout of the Universal Commerce Protocol
	AdCP Format = "adcp" // a proposal of the Ad Context Protocol and its acceptance
)

// Formats are all of them.
func Formats() []Format { return slices.Sorted(maps.Keys(formats)) }

// A Mapping is what a protocol takes from an agreement, as far as its public documents say.
type Mapping struct {
	As        Format                               `json:"as"`
	Version   string                               `json:"version"` // of the protocol's documents
	Agreement ID                                   `json:"agreement_id"`
	Hash      Digest                               `json:"agreement_hash"`
	Objects   map[string]map[string]jsontext.Value `json:"objects"` // the protocol's, as far as they are filled
	Fields    []Field                              `json:"fields"`
}

// A Field is one field of an object: where its value is from, or why it is open.
type Field struct {
	Object   string `json:"object"`
	Name     string `json:"field"`
	Required bool   `json:"required"`
	From     string `json:"from,omitzero"` // a JSON Pointer into the agreement, or what it is made of
	Open     string `json:"open,omitzero"`
	Source   string `json:"source"` // URL of the document that says so
}

// A rule says how a field is filled. open is why it is not, if take finds nothing.
type rule struct {
	object, field string
	required      bool
	take          taker
	open          string
	source        string
}

// A format is a protocol's table of fields.
type format struct {
	version string
	rules   []rule
}

const (
	must = true
	may  = false
)

// Documents of AP2 v0.2.0, UCP 2026-04-08 and AdCP 3.2.0-beta.5.
const (
	ap2Mandates = "https://github.com/google-agentic-commerce/AP2/blob/v0.2.0/docs/ap2/specification.md#mandates"
	ap2Checkout = "https://github.com/google-agentic-commerce/AP2/blob/v0.2.0/code/sdk/schemas/ap2/checkout_mandate.json"
	ap2Payment  = "https://github.com/google-agentic-commerce/AP2/blob/v0.2.0/code/sdk/schemas/ap2/payment_mandate.json"

	ucpCheckout = "https://github.com/Universal-Commerce-Protocol/ucp/blob/v2026-04-08/source/schemas/shopping/checkout.json"
	ucpTotals   = "https://github.com/Universal-Commerce-Protocol/ucp/blob/v2026-04-08/source/schemas/shopping/types/totals.json"
	ucpMandate  = "https://github.com/Universal-Commerce-Protocol/ucp/blob/v2026-04-08/source/schemas/shopping/ap2_mandate.json"

	adcpVerify   = "https://github.com/adcontextprotocol/adcp/blob/v3.2.0-beta.5/docs/media-buy/product-discovery/proposal-negotiation.mdx#3-verify-terms-independently"
	adcpProposal = "https://github.com/adcontextprotocol/adcp/blob/v3.2.0-beta.5/static/schemas/source/core/canonical-proposal.json"
	adcpAccept   = "https://github.com/adcontextprotocol/adcp/blob/v3.2.0-beta.5/static/schemas/source/media-buy/accept-proposal-request.json"
)

const (
	signedLater = "the user signs the mandate later; AP2 does not tie its time to that of the terms"
	noSum       = "no single term total, amount or price is a whole number of minor units of a currency"
	sellers     = "the seller makes it"
)

// formats is the table. A term with the name of a field is the field's value; what else
// fills a field is named in its row.
var formats = map[Format]format{
	AP2: {"0.2", []rule{
		{"checkout_mandate", "vct", must, constant("mandate.checkout.1"), "", ap2Checkout},
		{"checkout_mandate", "checkout_jwt", must, nothing, "the merchant signs its checkout (--as ucp), not with Ed25519, which the agreement is signed with", ap2Mandates},
		{"checkout_mandate", "checkout_hash", must, nothing, "the SHA-256 of checkout_jwt, once the merchant has signed", ap2Checkout},
		{"checkout_mandate", "iat", may, nothing, signedLater, ap2Checkout},
		{"checkout_mandate", "exp", may, nothing, signedLater, ap2Checkout},
		{"payment_mandate", "vct", must, constant("mandate.payment.1"), "", ap2Payment},
		{"payment_mandate", "transaction_id", must, nothing, "the SHA-256 of checkout_jwt, once the merchant has signed", ap2Payment},
		{"payment_mandate", "payee", must, payee, "no term payee, seller or merchant names a party or a merchant with id and name", ap2Payment},
		{"payment_mandate", "payment_amount", must, either(term("payment_amount"), paymentAmount), noSum, ap2Payment},
		{"payment_mandate", "payment_instrument", must, term("payment_instrument"), "the credential provider names it", ap2Payment},
		{"payment_mandate", "execution_date", may, term("execution_date"), "without it the payment is immediate", ap2Payment},
		{"payment_mandate", "pisp", may, term("pisp"), "not part of the terms", ap2Payment},
		{"payment_mandate", "iat", may, nothing, signedLater, ap2Payment},
		{"payment_mandate", "exp", may, nothing, signedLater, ap2Payment},
	}},
	UCP: {"2026-04-08", []rule{
		{"checkout", "ucp", must, nothing, "the business says which version and capabilities it has", ucpCheckout},
		{"checkout", "id", must, nothing, "the business names the checkout", ucpCheckout},
		{"checkout", "line_items", must, term("line_items"), "no term line_items", ucpCheckout},
		{"checkout", "status", must, nothing, "the business says how far the checkout is", ucpCheckout},
		{"checkout", "currency", must, currency, "no term currency, and no sum with one", ucpCheckout},
		{"checkout", "totals", must, term("totals"), "no term totals; UCP asks for a subtotal besides the total, and a sum does not tell it", ucpTotals},
		{"checkout", "links", must, term("links"), "the business links its policies", ucpCheckout},
		{"checkout", "buyer", may, term("buyer"), "UCP's buyer is a person with a name and an address, the agreement has DIDs", ucpCheckout},
		{"checkout", "expires_at", may, nothing, "the end of the checkout, which UCP does not tie to that of the terms", ucpCheckout},
		{"checkout", "ap2", may, nothing, "the business signs the checkout by ECDSA, the agreement is signed with Ed25519", ucpMandate},
	}},
	AdCP: {"3.2.0-beta.5", []rule{
		{"canonical_proposal", "proposal_id", must, proposalID, "the entry of the offer was taken out", adcpProposal},
		{"canonical_proposal", "proposal_kind", must, term("proposal_kind"), sellers, adcpProposal},
		{"canonical_proposal", "proposal_status", must, nothing, "committed, with expires_at, until the seller has answered accept_proposal", adcpProposal},
		{"canonical_proposal", "name", must, subject, "the offer has no subject, or was taken out", adcpProposal},
		{"canonical_proposal", "commercial_terms", must, commercialTerms, "terms were taken out", adcpProposal},
		{"canonical_proposal", "terms_digest", must, termsDigest, "terms were taken out", adcpVerify},
		{"canonical_proposal", "expires_at", may, nothing, "how long the seller holds the inventory", adcpProposal},
		{"accept_proposal", "idempotency_key", must, acceptanceID, "the entry of the acceptance was taken out", adcpAccept},
		{"accept_proposal", "account", must, term("account"), "the seller names the buyer's account", adcpAccept},
		{"accept_proposal", "proposal_id", must, proposalID, "the entry of the offer was taken out", adcpAccept},
		{"accept_proposal", "proposal_terms_digest", must, termsDigest, "terms were taken out", adcpAccept},
		{"accept_proposal", "io_acceptance", may, nothing, "the seller says whether an insertion order is to be signed", adcpAccept},
	}},
}

// As maps an agreement that Verify has found no fault in.
func (d Document) As(as Format) (Mapping, error) {
	f, known := formats[as]
	if !known {
		return Mapping{}, fmt.Errorf("there is no format %q: %q are", as, Formats())
	}
	m := Mapping{As: as, Version: f.version, Agreement: d.ID, Hash: d.Hash, Objects: map[string]map[string]jsontext.Value{}}
	for _, r := range f.rules {
		field := Field{Object: r.object, Name: r.field, Required: r.required, Source: r.source}
		value, from, found := r.take(d)
		if found {
			data, err := canonical(value)
			if err != nil {
				return m, err
			}
			if m.Objects[r.object] == nil {
				m.Objects[r.object] = map[string]jsontext.Value{}
			}
			m.Objects[r.object][r.field], field.From = data.Clone(), from
		} else {
			field.Open = r.open
		}
		m.Fields = append(m.Fields, field)
	}
	return m, nil
}
