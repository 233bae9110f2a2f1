package turns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkEmptyPickup is a pickup that finds nothing, of one of two brokers, while so many
// sessions are open.
func BenchmarkEmptyPickup(b *testing.B) {
	for _, open := range []int{100, 10_000} {
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			at := testkit.StartServer(b)
			free := func(o *server.BrokerOptions) {
				o.Limits = limits.Limits{Rate: -1, Invitations: -1, PrincipalBytes: -1, OrganisationBytes: -1, Sessions: 20_000}
			}
			first, _ := at.OpenBroker(free)
			second, _ := at.OpenBroker(free)
			one, two := crowd{b, first}, crowd{b, second}
			ids := one.invites(eager, open)
			for _, id := range ids {
				one.says(id, hero, "ACCEPT", `{"referenceId":"i"}`)
			}
			testkit.Eventually(b, "the sessions are listed", func() bool { return len(second.Parts.List.Open(hero)) == open })
			began := time.Now()
			two.pickUp("first")
			took := time.Since(began)
			for b.Loop() {
				two.serves("nothing waits", "")
			}
			b.ReportMetric(float64(took.Milliseconds()), "ms/first")
		})
	}
}
