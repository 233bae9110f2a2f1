package broker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A session that is over has no timer any more, whether a party closed it, also where the broker had
// forgotten it meanwhile, or the clock; one that is open has one.
func TestTimersOfWhatIsOver(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{})
	var all []*fault.Session
	for range 4 {
		all = append(all, w.Open(alpha, beta))
	}
	w.holds(api.TimersStream, 4)
	all[0].Say(alpha, "CLOSE", "{}")
	w.holds(api.TimersStream, 3)
	w.b.Crash()
	w.b.Up()
	all[1].Say(beta, "CLOSE", "{}")
	w.holds(api.TimersStream, 2)
	w.Invite(alpha, beta, 300*time.Millisecond).Closed(beta, "invitation_timeout")
	w.holds(api.TimersStream, 2)
	all[2].Say(beta, "OBSERVE", `{"subject":"on we go"}`)
	all[2].Check(alpha, beta)
}

// An answer that is asked for within a time and does not come is told, once; the session goes
// on, and the late answer counts (PROTOCOL.md §5).
func TestResponseTimeIsTold(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	told, err := l.nc.SubscribeSync(api.Event(id, "timeout"))
	if err != nil {
		t.Fatal(err)
	}
	proposes := func(proposal string, within int) {
		t.Helper()
		act := envelope(string(id), alpha, "PROPOSE", `{"proposalId":"`+proposal+`","type":"x","subject":"`+proposal+`","terms":{"id":"`+proposal+`"}}`)
		l.accepted(l.ask(api.Submit(alpha, id), append(act[:len(act)-1], fmt.Sprintf(`,"constraints":{"maxResponseTimeMs":%d}}`, within)...)))
	}
	proposes("p1", 600_000)
	proposes("p2", 1) // it has passed when its timer is set
	m, err := told.NextMsg(testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Kind, Reason, State, ReferenceID string }
	if err := json.Unmarshal(m.Data, &event); err != nil || event.Kind != "timeout" || event.Reason != "response_timeout" || event.State != "CONVERSING" || event.ReferenceID != "p2" {
		t.Errorf("%s %v", m.Data, err)
	}
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"p2"}`))
	var view api.SessionView
	l.reads(api.SessionGet.Name, `{"sessionId":"`+string(id)+`"}`, &view)
	if len(view.Deadlines) != 2 || view.Deadlines[0].Code != "response_timeout" || view.Deadlines[0].Ref != "p1" || view.Deadlines[0].Ends {
		t.Errorf("%+v", view.Deadlines)
	}
	if n, _, err := told.Pending(); err != nil || n > 0 {
		t.Errorf("%d more events (%v)", n, err)
	}
}

// A timer that fired is not delivered again while its session has other work, however long
// that takes: a broker that comes back after an outage has many to do.
func TestTimersAreNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{})
	busy := w.Invite(alpha, beta, time.Second)
	letGo := w.b.Broker.Command.Hold(busy.ID)
	// The next one fires when the first would have come again.
	w.Invite(alpha, beta, 2*broker.TimerAgain).Closed(beta, "invitation_timeout")
	if n := w.b.Broker.Command.Queued(busy.ID); n != 1 {
		t.Errorf("%d pieces of work wait for the session, want its timer", n)
	}
	letGo()
	busy.Closed(beta, "invitation_timeout")
}
