package broker_test

import (
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A broker that is alone knows which sessions there are. It looks for one in the store only before it refuses to open it.
func TestOpensUnread(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	<-l.Server.Broker.Parts.List.Loaded()
	conn := l.Broker.Broker.Options.Conn
	reads, err := conn.SubscribeSync("$JS.API.>")
	testkit.Must(t, err)
	// looked counts the requests that mention a session.
	looked := func(id string) (n int) {
		testkit.Must(t, conn.Flush())
		for {
			waiting, _, err := reads.Pending()
			testkit.Must(t, err)
			if waiting == 0 {
				return n
			}
			m, err := reads.NextMsg(testkit.Patience)
			testkit.Must(t, err)
			if strings.Contains(m.Subject+string(m.Data), id) && strings.Contains(m.Subject, "GET") {
				n++
			}
		}
	}
	opened, refused := newID(), newID()
	l.accepted(l.says(opened, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(opened, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.says(opened, alpha, "OBSERVE", `{"subject":"x"}`)) // once the ACCEPT is delivered
	if n := looked(string(opened)); n > 0 {
		t.Errorf("opened with %d requests about it", n)
	}
	l.refused(l.says(refused, alpha, "PROPOSE", `{"proposalId":"p1","type":"offer","subject":"x","terms":{}}`), session.UnknownSession)
	if n := looked(string(refused)); n == 0 {
		t.Error("refused without looking for its session")
	}
}

// A session that the list lacks is opened by no second PROPOSE.
func TestOpensUnlisted(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: testkit.Patience})
	var all []*fault.Session
	for range 3 {
		all = append(all, w.Invite(alpha, beta, testkit.Patience))
	}
	w.b.Down()
	w.b.Up()
	testkit.Must(t, w.stream(api.IndexStream).Purge(t.Context()))
	w.b.Down()
	w.b.Up()
	for _, s := range all {
		if code := s.Code(alpha, "PROPOSE", invitation(beta)); code == "" {
			t.Error("opened twice")
		}
		s.Again()
		s.Say(beta, "ACCEPT", `{"referenceId":"inv"}`)
		s.Check(alpha, beta)
	}
}
