package approvals_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The consumer of a group that the rules do not name any more expires. If they name the group again,
// it stays.
func TestGroupsExpire(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	stays := func(groups ...string) map[string]time.Duration {
		t.Helper()
		rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {Groups: map[string][]performatives.Agent{}}}}
		for _, g := range groups {
			rules.Organisations["acme.com"].Groups[g] = []performatives.Agent{alice}
		}
		if err := rules.Check(); err != nil {
			t.Fatal(err)
		}
		b := testkit.StartBroker(t, testkit.Options{Data: data, Sync: time.Minute, Rules: rules})
		defer b.Down()
		js, err := jetstream.New(b.Broker.Options.Conn)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(t.Context(), api.EscalationsStream)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]time.Duration{}
		all := stream.ListConsumers(t.Context())
		for c := range all.Info() {
			if api.IsGroupConsumer(c.Name) {
				found[c.Name] = c.Config.InactiveThreshold
			}
		}
		if all.Err() != nil {
			t.Fatal(all.Err())
		}
		return found
	}
	if got := stays("buyers", "lawyers"); len(got) != 2 || got["acme_com~buyers"] != 0 || got["acme_com~lawyers"] != 0 {
		t.Errorf("at first: %v", got)
	}
	if got := stays("lawyers"); got["acme_com~buyers"] != 24*time.Hour || got["acme_com~lawyers"] != 0 {
		t.Errorf("without buyers: %v", got)
	}
	if got := stays("buyers"); got["acme_com~buyers"] != 0 || got["acme_com~lawyers"] != 24*time.Hour {
		t.Errorf("with buyers again: %v", got)
	}
}
