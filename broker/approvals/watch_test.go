package approvals_test

import (
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A cursor is good across a restart, and nobody who watches holds one up.
func TestWatchAcrossRestart(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	start, err := calls[api.Watched](o, alice, api.EscalationWatch.Name, api.WatchEscalations{})
	if err != nil || len(start.Changed) != 0 {
		t.Fatal(start, err)
	}
	e := o.asks("15000")
	o.does(alice, api.EscalationClaim.Name, api.ClaimEscalation{Escalation: string(e)})
	before, err := calls[api.Watched](o, alice, api.EscalationWatch.Name, api.WatchEscalations{Since: start.Cursor, Wait: 10_000})
	if err != nil || len(before.Changed) != 1 {
		t.Fatal(before, err)
	}
	o.until(alice, e, func(i api.EscalationItem) bool { return i.Case.Claim != nil })

	waiting := make(chan error, 1)
	go func() {
		_, err := o.b.Broker.Gateway.CallAs(t.Context(), bob, api.EscalationWatch.Name, []byte(`{"since":"999999","waitMs":25000}`))
		waiting <- err
	}()
	o.b.Down()
	<-waiting
	o.b.Up()

	since, err := calls[api.Watched](o, alice, api.EscalationWatch.Name, api.WatchEscalations{Since: start.Cursor, Wait: 10_000})
	if err != nil || len(since.Changed) != 1 || since.Changed[0].ID != e || since.Changed[0].Case.Claim == nil || since.Reset {
		t.Errorf("since before: %+v %v", since, err)
	}
	if _, err := o.rules(alice, e, performatives.Denied); err != nil {
		t.Fatal(err)
	}
	now, err := calls[api.Watched](o, alice, api.EscalationWatch.Name, api.WatchEscalations{Since: since.Cursor, Wait: 10_000})
	if err != nil || len(now.Changed) != 1 || now.Changed[0].Status != performatives.Denied {
		t.Errorf("the decision: %+v %v", now, err)
	}
	// Of another organisation, nothing.
	if others, err := calls[api.Watched](o, bob, api.EscalationWatch.Name, api.WatchEscalations{Since: start.Cursor, Wait: 1}); err != nil || len(others.Changed) != 0 {
		t.Errorf("bob gets %+v %v", others, err)
	}
}
