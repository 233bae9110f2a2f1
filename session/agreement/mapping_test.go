package agreement_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// agreedOn is an agreement of asp/1 on some terms.
func agreedOn(t testing.TB, terms string) agreement.Document {
	t.Helper()
	s := sit(t, "asp/1")
	s.say(seller, &performatives.ProposeBody{ProposalID: "p1", Type: "order", Subject: "Acme Outdoor", Terms: performatives.Object(terms)})
	s.say(buyer, &performatives.AcceptBody{ReferenceID: "p1"})
	s.say(seller, &performatives.CloseBody{Outcome: performatives.Completed})
	return s.agreed()
}

func mapped(t testing.TB, d agreement.Document, as agreement.Format) agreement.Mapping {
	t.Helper()
	m, err := d.As(as)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMapping: every field is filled from the agreement, or says why it is open; none both.
func TestMapping(t *testing.T) {
	t.Parallel()
	full := agreedOn(t, `{"line_items":[{"id":"l1"}],"total":"279.99","currency":"USD","seller":"agent://widgets.co/sales/beta","payment_instrument":{"id":"i","type":"card"}}`)
	for as, want := range map[agreement.Format]map[string]string{
		agreement.AP2: {
			"checkout_mandate/vct":               `"mandate.checkout.1"`,
			"payment_mandate/vct":                `"mandate.payment.1"`,
			"payment_mandate/payee":              `{"id":"did:web:widgets.co:sales:beta","name":"agent://widgets.co/sales/beta"}`,
			"payment_mandate/payment_amount":     `{"amount":27999,"currency":"USD"}`,
			"payment_mandate/payment_instrument": `{"id":"i","type":"card"}`,
		},
		agreement.UCP: {"checkout/line_items": `[{"id":"l1"}]`, "checkout/currency": `"USD"`},
		agreement.AdCP: {
			"canonical_proposal/proposal_id":        `"p1"`,
			"canonical_proposal/name":               `"Acme Outdoor"`,
			"canonical_proposal/commercial_terms":   `{"currency":"USD","line_items":[{"id":"l1"}],"payment_instrument":{"id":"i","type":"card"},"seller":"agent://widgets.co/sales/beta","total":"279.99"}`,
			"canonical_proposal/terms_digest":       `"sha256:vxVmJ2HVzHi5WaCaZk_76gAreuucWwuHeiVMdH3Pr7E"`,
			"accept_proposal/idempotency_key":       `"019478a3-7b2c-7def-8a12-000000000003"`,
			"accept_proposal/proposal_id":           `"p1"`,
			"accept_proposal/proposal_terms_digest": `"sha256:vxVmJ2HVzHi5WaCaZk_76gAreuucWwuHeiVMdH3Pr7E"`,
		},
	} {
		m := mapped(t, full, as)
		got := map[string]string{}
		for _, f := range m.Fields {
			value, filled := m.Objects[f.Object][f.Name]
			if filled == (f.Open != "") || filled != (f.From != "") || !strings.HasPrefix(f.Source, "https://") {
				t.Errorf("%s: %+v is %s", as, f, value)
			}
			if filled {
				got[f.Object+"/"+f.Name] = string(value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", as, diff)
		}
		if m.Agreement != full.ID || m.Hash != full.Hash || m.Version == "" {
			t.Errorf("%s: %+v", as, m)
		}
	}
	if _, err := full.As("x402"); err == nil {
		t.Error("an unknown format is mapped")
	}
	if !slices.Equal(agreement.Formats(), []agreement.Format{agreement.AdCP, agreement.AP2, agreement.UCP}) {
		t.Error(agreement.Formats())
	}
}

// TestTermsDigest: the digest is that of AdCP's published example
// (docs/media-buy/product-discovery/proposal-negotiation.mdx of v3.2.0-beta.5).
func TestTermsDigest(t *testing.T) {
	t.Parallel()
	const published = `"sha256:Fy6Bo7wUa_FmXGJssc37kGyHNjzBiBZLB9rtVNz8I-E"`
	const example = `{"brand":{"domain":"acmeoutdoor.example"},"purchases":[{"product_id":"premium_video_q4","pricing_option_id":"cpm_guaranteed",` +
		`"pricing":{"pricing_option_id":"cpm_guaranteed","pricing_model":"cpm","currency":"USD","fixed_price":18},` +
		`"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z"}],"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z",` +
		`"total_budget":{"amount":50000,"currency":"USD"}}`
	for _, terms := range []string{example, `{"commercial_terms":` + example + `,"note":"n"}`} {
		if got := mapped(t, agreedOn(t, terms), agreement.AdCP).Objects["canonical_proposal"]["terms_digest"]; string(got) != published {
			t.Errorf("terms_digest is %s", got)
		}
	}
	m := mapped(t, agreedOn(t, example).Redact("brand"), agreement.AdCP)
	for _, f := range m.Fields {
		if f.Required && f.Open == "" {
			t.Errorf("a redacted agreement has %s/%s from %s", f.Object, f.Name, f.From)
		}
	}
}

// TestPaymentAmount: an amount is in minor units, or open.
func TestPaymentAmount(t *testing.T) {
	t.Parallel()
	for terms, want := range map[string]string{
		`{"price":"12.5","currency":"EUR"}`:                                    `{"amount":1250,"currency":"EUR"}`,
		`{"price":12,"currency":"EUR"}`:                                        `{"amount":1200,"currency":"EUR"}`,
		`{"amount":{"amount":"0.125","currency":"KWD"}}`:                       `{"amount":125,"currency":"KWD"}`,
		`{"amount":{"value":"900"},"currency":"JPY"}`:                          `{"amount":900,"currency":"JPY"}`,
		`{"payment_amount":{"amount":5,"currency":"EUR"},"price":"9","x":"y"}`: `{"amount":5,"currency":"EUR"}`,
		`{"price":"0.0040","currency":"EUR"}`:                                  "",
		`{"price":"12.50"}`:                                                    "",
		`{"price":"12.50","currency":"eur"}`:                                   "",
		`{"price":"-1","currency":"EUR"}`:                                      "",
		`{"price":"1e3","currency":"EUR"}`:                                     "",
		`{"price":"1/2","currency":"EUR"}`:                                     "",
		`{"price":"99999999999999999999","currency":"EUR"}`:                    "",
		`{"price":"12.50","total":"25.00","currency":"EUR"}`:                   "",
		`{"price":{"amount":"1","value":"2","currency":"EUR"}}`:                "",
		`{"price":{"net":"1"},"currency":"EUR"}`:                               "",
		`{"price":[1],"currency":"EUR"}`:                                       "",
		`{"price_per_call_eur":"0.0040","action":"weather.forecast.detailed"}`: "",
	} {
		if got := mapped(t, agreedOn(t, terms), agreement.AP2).Objects["payment_mandate"]["payment_amount"]; string(got) != want {
			t.Errorf("%s: %s, want %s", terms, got, want)
		}
	}
}
