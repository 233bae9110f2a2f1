//go:build long

package upgrade_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestNewerFormat replaces two brokers of format 7 under load. While there is one of each, the old one judges no session
// of the newer format, and both go on with those of the old format by its rules.
func TestNewerFormat(t *testing.T) {
	before := release(t, "format-7")
	w := newWorld(t)
	one, two := w.serves(before), w.serves(before)
	w.connects()
	l := w.begins(3)
	old := make([]*talk, 3)
	for i := range old {
		old[i] = l.deadlocks("7")
	}
	l.goesOn(6)

	one = one.replaced(syscall.SIGTERM, now)
	newer := make([]*talk, 4)
	for i := range newer {
		newer[i] = l.deadlocks("8")
		l.refusesAnew(newer[i])
	}
	l.accepts(old[0], commitOfWhatIsOver)
	l.goesOn(6)
	two = two.replaced(syscall.SIGKILL, now)
	l.refusesAnew(newer[0])
	l.accepts(old[1], commitOfWhatIsOver)
	l.goesOn(6)
	l.stops()

	// Where there is only an old broker again, the sessions of the newer format wait.
	one.ends(syscall.SIGTERM)
	two.ends(syscall.SIGTERM)
	alone := w.serves(before)
	going := line{alpha, performatives.Observe, `{"subject":"going on"}`, session.Conversing}
	for subject, request := range map[string][]byte{
		api.Submit(alpha, newer[0].id):       w.alpha.Envelope(newer[0].id, testkit.Fact("x")),
		api.Call(alpha, api.SessionGet.Name): fmt.Appendf(nil, `{"sessionId":%q}`, newer[0].id),
	} {
		for range 3 {
			m, err := w.conns[alpha].Request(subject, request, testkit.Patience)
			testkit.Must(t, err)
			testkit.Refused(t, m, session.Unavailable)
		}
	}
	alone.logs("the transcript has format 8")
	l.accepts(old[2], going)

	// Some of them are of partitions that the old one owns.
	w.serves(now)
	for _, t := range newer {
		l.accepts(t, going)
		l.refusesAnew(t)
		l.accepts(t, line{alpha, performatives.Close, `{"outcome":"abandoned"}`, session.Closed})
	}
	l.accepts(old[2], commitOfWhatIsOver)
	alone.ends(syscall.SIGTERM)
	w.agrees(l.talks)
	w.holds(l.talks)
	w.verifies(now, len(l.talks))
}

// commitOfWhatIsOver is accepted in a session of format 7. Since format 8 such a COMMIT names the offer that was
// rejected for good.
var commitOfWhatIsOver = line{alpha, performatives.Commit, `{"commitmentId":"k1","referenceId":"p1","outcome":"rejected"}`, session.Closed}

// deadlocks opens a session of a format, in which an offer is rejected for good. Which broker judges the first act is
// left to the server: it opens sessions until one has the format.
func (l *load) deadlocks(format string) (t *talk) {
	l.Helper()
	lines := opened("convergent/1", "}")
	testkit.Eventually(l, "a session of format "+format, func() bool {
		t = l.opens("convergent/1")
		l.accepts(t, lines[0])
		stream, err := l.js.Stream(l.ctx, api.SessionsStream)
		testkit.Must(l, err)
		first, err := stream.GetLastMsgForSubject(l.ctx, api.Session(t.id))
		testkit.Must(l, err)
		return first.Header.Get(api.FormatHeader) == format
	})
	for _, line := range lines[1:] {
		l.accepts(t, line)
	}
	l.accepts(t, line{alpha, performatives.Reject, `{"referenceId":"p2","code":"unspecified","reason":"no","retryable":false,"terminal":true}`, session.Conversing})
	return t
}

// accepts says a line, which has to be accepted at some time.
func (l *load) accepts(t *talk, line line) {
	l.Helper()
	by := map[performatives.Agent]*testkit.Principal{alpha: l.alpha, beta: l.beta}[line.by]
	_, err := l.says(l.conns[line.by], t, by, line, "")
	testkit.Must(l, err)
}

// refusesAnew has the rules of format 8 refuse what those before accept, whichever broker is asked first: an old one
// leaves it to another.
func (l *load) refusesAnew(t *talk) {
	l.Helper()
	envelope := l.alpha.Envelope(t.id, &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p1", Outcome: "rejected"})
	m, err := testkit.RequestAgain(l.conns[alpha], 200, api.Submit(alpha, t.id), envelope)
	testkit.Must(l, err)
	testkit.Refused(l, m, session.ProposalNotOpen)
}
