package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An outsider's question, read or submitted, has no session read: so that its time does not tell
// one of others, however long, from one that is not there (PROTOCOL.md §9).
func TestNonParticipantsHaveNothingRead(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	id, none := newID(), newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.says(id, alpha, "DELEGATE", `{"targetAgent":"agent://law.org/d","scope":"x","authority":"limited"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	if l.Server.Broker.Command.InMemory(id) {
		t.Fatal("the session is in memory before anybody has asked")
	}
	for _, outsider := range []performatives.Agent{"agent://evil.example/eve", "agent://acme.com/other", "human://evil.example/mallory"} {
		for _, of := range []performatives.SessionID{id, none} {
			for _, verb := range []string{api.SessionGet.Name, api.SessionMessages.Name} {
				l.refused(l.ask(api.Call(outsider, verb), fmt.Appendf(nil, `{"sessionId":%q}`, of)), session.UnknownSession)
			}
			l.accepted(l.ask(api.Call(outsider, api.AgreementList.Name), fmt.Appendf(nil, `{"cursor":"%s.0"}`, of)))
			l.refused(l.says(of, outsider, "ACCEPT", `{"referenceId":"inv"}`), session.UnknownSession)
			l.refused(l.says(of, outsider, "PROPOSE", `{"proposalId":"p","type":"x","subject":"x","terms":{}}`), session.UnknownSession)
			l.refused(l.says(of, outsider, "CLOSE", `{"outcome":"no such"}`), session.SchemaInvalid)
		}
	}
	if l.Server.Broker.Command.InMemory(id) {
		t.Error("an outsider had the session read")
	}
	// Whose business it is, finds it.
	for _, party := range []performatives.Agent{alpha, beta} {
		l.accepted(l.ask(api.Call(party, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
	}
	if !l.Server.Broker.Command.InMemory(id) {
		t.Error("it was not read for those who take part")
	}
	l.accepted(l.says(id, "agent://law.org/d", "OBSERVE", `{"subject":"x"}`))
	l.refused(l.says(id, "agent://evil.example/eve", "PROPOSE", invitation(beta)), session.UnknownSession)
	// A human who may decide is named by nobody before it speaks.
	l.accepted(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	l.accepted(l.ask(api.Call("human://acme.com/alice", api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
}

// Statistics find no difference between the answers about somebody else's live session and
// about none: of all pairs of a wait for the one and for the other, the first is the longer one
// about as often as not. The samples take turns, so that other work on the machine meets both, and
// both are about one session each: the NATS server takes longer for a subject that it has not seen.
// Such work can still fall on one of them, so a difference counts only if each round shows it.
func TestNonParticipantsWaitAlike(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	id, none := newID(), newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	for n := range 100 {
		l.accepted(l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x%d","terms":{"n":%d}}`, n, n, n)))
	}
	const eve = "agent://evil.example/eve"
	wait := func(of performatives.SessionID, act, body string) time.Duration {
		data := envelope(string(of), eve, act, body)
		start := time.Now()
		l.refused(l.ask(api.Submit(eve, of), data), session.UnknownSession)
		return time.Since(start)
	}
	for act, body := range map[string]string{"OBSERVE": `{"subject":"x"}`, "ACCEPT": `{"referenceId":"p99"}`} {
		longer, shorter := true, true
		for range rounds {
			share := compare(func() time.Duration { return wait(id, act, body) }, func() time.Duration { return wait(none, act, body) })
			longer, shorter = longer && share > 0.5+tolerance, shorter && share < 0.5-tolerance
			if !longer && !shorter {
				break
			}
		}
		if longer || shorter {
			t.Errorf("%s: each of %d rounds tells a live session from none: longer %t, shorter %t", act, rounds, longer, shorter)
		}
	}
}

// Alike, the share of a comparison is a half, and its deviation 0.02.
const (
	rounds    = 10
	samples   = 400
	tolerance = 0.06
)

// compare is how often one wait is longer than the other, in all pairs of samples.
func compare(one, other func() time.Duration) float64 {
	var a, b []time.Duration
	for n := range samples {
		if n%2 == 0 {
			a = append(a, one())
			b = append(b, other())
		} else {
			b = append(b, other())
			a = append(a, one())
		}
	}
	return longerShare(a, b)
}

// A broker with peers treats an outsider alike: it reads nothing of somebody else's session, and
// waits for nothing that the session does. Whom a peer has just brought in it knows by its inbox.
func TestNonParticipantsAmongPeers(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	one, _ := at.OpenBroker(unlimited)
	two, _ := at.OpenBroker(unlimited)
	at.meet(one, two)
	id := newID()
	tell := func(b *server.Broker, of performatives.SessionID, a performatives.Agent, act, body string) (api.Acceptance, error) {
		type answer struct {
			api.Acceptance
			error
		}
		answers, data := make(chan answer, 1), envelope(string(of), a, act, body)
		var said answer
		testkit.Must(t, testkit.Available(t.Context(), testkit.Repeats, func() bool {
			b.Command.Submit(t.Context(), of, a, data, func() {}, func(accepted api.Acceptance, err error) { answers <- answer{accepted, err} })
			said = <-answers
			return testkit.CodeOf(said.error) != session.Unavailable
		}))
		return said.Acceptance, said.error
	}
	accepted := func(b *server.Broker, a performatives.Agent, act, body string) api.Acceptance {
		t.Helper()
		accepted, err := tell(b, id, a, act, body)
		if err != nil {
			t.Fatalf("%s of %s: %v", act, a, err)
		}
		return accepted
	}
	accepted(one, alpha, "PROPOSE", invitation(beta))
	accepted(one, beta, "ACCEPT", `{"referenceId":"inv"}`)
	testkit.Eventually(t, "the other broker lists the session", func() bool { return two.Command.Listed(id) })
	const eve = "agent://evil.example/eve"
	strange := func(b *server.Broker, of performatives.SessionID) {
		t.Helper()
		for act, body := range map[string]string{"OBSERVE": `{"subject":"x"}`, "ACCEPT": `{"referenceId":"inv"}`, "PROPOSE": `{"proposalId":"p","type":"x","subject":"x","terms":{}}`} {
			if _, err := tell(b, of, eve, act, body); !isUnknown(err) {
				t.Errorf("%s: %v", act, err)
			}
		}
		read := make(chan error, 1)
		b.Verbs.Call(t.Context(), api.Caller{Agent: eve}, api.SessionGet.Name, fmt.Appendf(nil, `{"sessionId":%q}`, of), func() {}, func(_ any, _ bool, err error) { read <- err })
		if err := <-read; !isUnknown(err) {
			t.Errorf("session.get: %v", err)
		}
	}
	if strange(two, id); two.Command.InMemory(id) {
		t.Fatal("an outsider had the session read")
	}
	for _, b := range []*server.Broker{one, two} {
		letGo := b.Command.Hold(id)
		strange(b, id)
		strange(b, newID())
		letGo()
	}
	// A row that comes late does not keep out who was brought in.
	one.Command.Lag(time.Hour)
	const delegate = "agent://law.org/d"
	accepted(one, alpha, "DELEGATE", `{"targetAgent":"`+delegate+`","scope":"x","authority":"limited"}`)
	js, err := jetstream.New(at.Connect())
	testkit.Must(t, err)
	testkit.Stored(t, js, api.InboxStream, api.Inbox(delegate, id))
	accepted(two, delegate, "OBSERVE", `{"subject":"x"}`)
	at.close(two)
	at.close(one)
}

func isUnknown(err error) bool {
	r, ok := errors.AsType[*session.Refusal](err)
	return ok && r.Code == session.UnknownSession
}

// longerShare is in how many of the pairs the first wait is the longer one (Mann and Whitney's U).
func longerShare(a, b []time.Duration) float64 {
	slices.Sort(b)
	longer := 0
	for _, wait := range a {
		shorter, _ := slices.BinarySearch(b, wait)
		longer += shorter
	}
	return float64(longer) / float64(len(a)*len(b))
}

// An outsider does not wait for what somebody else's session does.
func TestNonParticipantsWaitForNothing(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	letGo := l.Server.Broker.Command.Hold(id)
	for _, act := range []string{"OBSERVE", "PROPOSE"} {
		body := map[string]string{"OBSERVE": `{"subject":"x"}`, "PROPOSE": invitation(beta)}[act]
		l.refused(l.says(id, "agent://evil.example/eve", act, body), session.UnknownSession)
	}
	letGo()
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
}
