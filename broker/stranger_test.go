package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A stranger's question, read or submitted, has no session read: so that its time does not tell
// one of others, however long, from one that is not there (PROTOCOL.md §9).
func TestStrangersHaveNothingRead(t *testing.T) {
	t.Parallel()
	l := limits(t, broker.Limits{})
	id, none := newID(), newID()
	l.heard(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.heard(l.says(id, alpha, "DELEGATE", `{"targetAgent":"agent://law.org/d","scope":"x","authority":"limited"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	if l.InMemory(id) {
		t.Fatal("the session is in memory before anybody has asked")
	}
	for _, stranger := range []performatives.Agent{"agent://evil.example/eve", "agent://acme.com/other", "human://evil.example/mallory"} {
		for _, of := range []performatives.SessionID{id, none} {
			for _, verb := range []string{api.SessionGet.Name, api.SessionMessages.Name} {
				l.refused(l.ask(api.Call(stranger, verb), fmt.Appendf(nil, `{"sessionId":%q}`, of)), session.UnknownSession)
			}
			l.refused(l.says(of, stranger, "ACCEPT", `{"referenceId":"inv"}`), session.UnknownSession)
			l.refused(l.says(of, stranger, "PROPOSE", `{"proposalId":"p","type":"x","subject":"x","terms":{}}`), session.UnknownSession)
			l.refused(l.says(of, stranger, "CLOSE", `{"outcome":"no such"}`), session.SchemaInvalid)
		}
	}
	if l.InMemory(id) {
		t.Error("a stranger had the session read")
	}
	// Whose business it is, finds it.
	for _, party := range []performatives.Agent{alpha, beta} {
		l.heard(l.ask(api.Call(party, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
	}
	if !l.InMemory(id) {
		t.Error("it was not read for those who take part")
	}
	l.heard(l.says(id, "agent://law.org/d", "OBSERVE", `{"subject":"x"}`))
	l.refused(l.says(id, "agent://evil.example/eve", "PROPOSE", invitation(beta)), session.UnknownSession)
	// A human who may decide is named by nobody before it speaks.
	l.heard(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x"}`))
	l.Down()
	l.Up()
	l.nc = l.Plain()
	l.heard(l.ask(api.Call("human://acme.com/alice", api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, id)))
}

// Statistics find no difference between the answers about somebody else's live session and
// about none: of all pairs of a wait for the one and for the other, the first is the longer one
// about as often as not. The samples take turns, so that other work on the machine meets both.
func TestStrangersWaitAlike(t *testing.T) {
	t.Parallel()
	l := limits(t, broker.Limits{})
	id := newID()
	l.heard(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	for n := range 100 {
		l.heard(l.says(id, alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"n":%d}}`, n, n)))
	}
	const eve = "agent://evil.example/eve"
	wait := func(of performatives.SessionID, act, body string) time.Duration {
		data := envelope(string(of), eve, act, body)
		start := time.Now()
		l.refused(l.ask(api.Submit(eve, of), data), session.UnknownSession)
		return time.Since(start)
	}
	for act, body := range map[string]string{"OBSERVE": `{"subject":"x"}`, "ACCEPT": `{"referenceId":"p99"}`} {
		const samples, warmup = 400, 20
		var live, none []time.Duration
		for n := range samples + warmup {
			there, not := wait(id, act, body), wait(newID(), act, body)
			if n >= warmup {
				live, none = append(live, there), append(none, not)
			}
		}
		// Alike, this is a half, and its deviation 0.02 for so many samples.
		if share := longerShare(live, none); share < 0.38 || share > 0.62 {
			t.Errorf("%s: an answer about a live session takes longer than one about none in %.0f%% of the pairs", act, 100*share)
		}
	}
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

// A stranger does not wait for what somebody else's session does.
func TestStrangersWaitForNothing(t *testing.T) {
	t.Parallel()
	l := limits(t, broker.Limits{})
	id := newID()
	l.heard(l.says(id, alpha, "PROPOSE", invitation(beta)))
	letGo := l.Hold(id)
	for _, act := range []string{"OBSERVE", "PROPOSE"} {
		body := map[string]string{"OBSERVE": `{"subject":"x"}`, "PROPOSE": invitation(beta)}[act]
		l.refused(l.says(id, "agent://evil.example/eve", act, body), session.UnknownSession)
	}
	letGo()
	l.heard(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
}
