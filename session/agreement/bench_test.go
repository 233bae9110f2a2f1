package agreement_test

import (
	"testing"

	"github.com/parley-asp/parley/session/agreement"
)

// BenchmarkVerify: the whole check of a signed agreement with its entries, offline.
func BenchmarkVerify(b *testing.B) {
	data := bytesOf(b, signed(b))
	trust := agreement.Trust{Broker: signerOf(b, "broker").Key()}
	for b.Loop() {
		if report := agreement.Verify(data, trust); len(report.Faults) > 0 || len(report.Signed) != 2 {
			b.Fatal(report.Faults)
		}
	}
}
