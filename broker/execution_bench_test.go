package broker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkExecutingActs measures whole acts that change an obligation, from the call to the acceptance, in a session
// that carries out one obligation and in one that carries out a thousand, by turns.
func BenchmarkExecutingActs(b *testing.B) {
	w := testkit.NewWorld(b, testkit.Options{})
	takes, gives := w.Principal(alpha), w.Principal(beta)
	deadline := time.Now().Add(48 * time.Hour).UTC()
	deals := func(n int) performatives.SessionID {
		all := make([]performatives.Obligation, n)
		for i := range all {
			all[i] = performatives.Obligation{ID: strconv.Itoa(i), Deadline: &deadline}
		}
		return carries(w, takes, gives, all...)
	}
	acts := func(id performatives.SessionID) time.Duration {
		begun := time.Now()
		delivered := gives.Say(id, &performatives.InformBody{Type: performatives.Result, Data: []byte(`{"commitmentId":"k1","obligation":"0"}`)})
		takes.Say(id, &performatives.RejectBody{ReferenceID: string(delivered.Message), Code: "incomplete", Reason: "more", Retryable: true})
		return time.Since(begun)
	}
	one, thousand := deals(1), deals(1000)
	var ofOne, ofThousand time.Duration
	for b.Loop() {
		ofOne += acts(one)
		ofThousand += acts(thousand)
	}
	perAct := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(2*b.N) }
	b.ReportMetric(perAct(ofOne), "ms/act-1")
	b.ReportMetric(perAct(ofThousand), "ms/act-1000")
	b.ReportMetric(ofThousand.Seconds()/ofOne.Seconds(), "ratio")
}
