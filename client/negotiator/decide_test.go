package negotiator_test

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-asp/parley/client/negotiator"
)

func example(t interface{ Fatal(...any) }, name string) *negotiator.Policy {
	text, err := os.ReadFile("../../examples/negotiator/" + name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := negotiator.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The examples agree, each within its mandate.
func TestExamplesAgree(t *testing.T) {
	t.Parallel()
	sides := []*negotiator.Policy{example(t, "buy.yaml"), example(t, "sell.yaml")}
	const turns = 8
	var offer map[string]any
	for turn := range turns {
		d := sides[turn%2].Decide(negotiator.Situation{Offer: offer, Time: float64(turn) / (turns - 1), Last: turn == turns-1})
		t.Log(turn, d.Act, d.Terms, d.Reason)
		switch d.Act {
		case negotiator.Accept:
			for i, p := range sides {
				if u, beyond := p.Utility(offer); beyond != "" || u < p.Reservation {
					t.Errorf("side %d agreed to %v, worth %g, beyond %q", i, offer, u, beyond)
				}
			}
			return
		case negotiator.Propose, negotiator.Counter:
			offer = d.Terms
		default:
			t.Fatalf("turn %d is %+v", turn, d)
		}
	}
	t.Error("they did not agree")
}

// Whatever is offered, nothing beyond the mandate is accepted or offered, and a later offer
// asks for no more than an earlier one.
func TestMandate(t *testing.T) {
	t.Parallel()
	p := example(t, "buy.yaml")
	rapid.Check(t, func(r *rapid.T) {
		offer := map[string]any{
			"currency": "EUR", "price": rapid.Float64Range(-1e6, 1e6).Draw(r, "price"), "deliveryDays": rapid.Float64Range(-100, 100).Draw(r, "days"),
			"finish": rapid.SampledFrom([]string{"matte", "glossy", "none"}).Draw(r, "finish"),
		}
		at, last := rapid.Float64Range(0, 1).Draw(r, "time"), rapid.Bool().Draw(r, "last")
		d := p.Decide(negotiator.Situation{Offer: offer, Time: at, Last: last})
		u, beyond := p.Utility(offer)
		switch d.Act {
		case negotiator.Accept:
			if beyond != "" || u < p.Reservation {
				r.Fatalf("accepts %v, worth %g", offer, u)
			}
		case negotiator.Counter:
			if !p.Allows(d.Terms, at) || last {
				r.Fatalf("at %g offers %v", at, d.Terms)
			}
		}
		early, late := p.Decide(negotiator.Situation{Time: at / 2}), p.Decide(negotiator.Situation{Time: at})
		a, _ := p.Utility(early.Terms)
		if b, _ := p.Utility(late.Terms); b > a+1e-9 {
			r.Fatalf("asks for %g at %g, for %g later", a, at/2, b)
		}
	})
}

// What the policy does not know, a human decides.
func TestEscalates(t *testing.T) {
	t.Parallel()
	p := example(t, "buy.yaml")
	good := map[string]any{"currency": "EUR", "price": 400.0, "deliveryDays": 3.0, "finish": "matte"}
	with := func(name string, value any) map[string]any {
		other := map[string]any{name: value}
		for n, v := range good {
			if _, is := other[n]; !is {
				other[n] = v
			}
		}
		return other
	}
	for name, c := range map[string]struct {
		offer map[string]any
		last  bool
		act   string
	}{
		"good": {good, false, "ACCEPT"}, "penalties": {with("penalties", "10%"), false, "ESCALATE"}, "unknown": {with("exclusive", true), false, "ESCALATE"},
		"another currency": {with("currency", "USD"), false, "ESCALATE"}, "no number": {with("price", "cheap"), false, "ESCALATE"},
		"too dear": {with("price", 900.0), false, "COUNTER"}, "too dear at the end": {with("price", 900.0), true, "ESCALATE"},
		"poor at the end":        {map[string]any{"currency": "EUR", "price": 690.0, "deliveryDays": 20.0, "finish": "glossy"}, true, "REJECT"},
		"unknown number":         {map[string]any{"price": 400., "penalty": 10.}, false, "ESCALATE"},
		"nothing said":           {map[string]any{}, false, "ESCALATE"},
		"no currency":            {map[string]any{"price": 400.0, "deliveryDays": 3.0, "finish": "matte"}, false, "COUNTER"},
		"no currency at the end": {map[string]any{"price": 400.0, "deliveryDays": 3.0, "finish": "matte"}, true, "REJECT"},
	} {
		if d := p.Decide(negotiator.Situation{Offer: c.offer, Time: 0.1, Last: c.last}); d.Act != c.act {
			t.Errorf("%s is answered %+v, want %s", name, d, c.act)
		}
	}
}

// A fixed term may be anything that an offer can have.
func TestFixed(t *testing.T) {
	t.Parallel()
	p, err := negotiator.Parse([]byte("issues: {price: {best: 1, worst: 2}}\nfixed: {payment: {days: 30, by: [sepa, 7]}}"))
	if err != nil {
		t.Fatal(err)
	}
	ours := p.Decide(negotiator.Situation{})
	if !p.Allows(ours.Terms, 0) {
		t.Errorf("it does not allow its own offer %v", ours.Terms)
	}
	terms := map[string]any{"price": 1.0, "payment": map[string]any{"days": 30.0, "by": []any{"sepa", 7.0}}}
	if d := p.Decide(negotiator.Situation{Offer: terms}); d.Act != "ACCEPT" {
		t.Errorf("its own terms are answered %+v", d)
	}
	delete(terms, "payment")
	if p.Allows(terms, 0) || p.Acceptable(terms) {
		t.Error("it allows an offer without a fixed term")
	}
}

func TestPolicyFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{}": "issues", "match: {accept: 10, reject: 20}": "match", "issues: {p: {best: 1}}": "best and worst", "issues: {p: {best: 1, worst: 1}}": "different", "issues: {p: {values: {a: 2}}}": "0 to 1",
		"issues: {p: {best: 1, worst: 2, weight: -1}}": "weight", "issues: {p: {best: 1, worst: 2, weight: 0}}": "weight", "rounds: 2.5\nissues: {p: {best: 1, worst: 2}}": "whole number", "reservation: 2\nissues: {p: {best: 1, worst: 2}}": "reservation",
		"curve: 0\nissues: {p: {best: 1, worst: 2}}": "curve", "isues: {}": "isues", "issues: {p: {best: .nan, worst: 2}}": "different",
		"issues: {p: {best: 1, worst: 2, step: .nan}}": "step", "issues: {p: {best: 1, worst: 2}}\nfixed: {p: 1}": "issues and fixed",
		"type: no type!\nissues: {p: {best: 1, worst: 2}}": "type", "issues: {p: {best: 1, worst: 2}}\n---\nreservation: 0.5": "more than one document",
	} {
		if _, err := negotiator.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
