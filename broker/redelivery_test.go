package broker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A copy is stored and its acknowledgement lost, as in an election, of the first entry of a
// session and of a later one. The broker finds it, writes it no second time, and delivers what
// comes after it.
func TestCopyWithoutAcknowledgement(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	core, logs := observer.New(zap.WarnLevel)
	b, nc := at.OpenBroker(func(o *server.BrokerOptions) { o.Log = zap.New(core) })
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	lost := map[uint64]performatives.Agent{0: beta, 3: gamma} // of an entry, in whose inbox
	copied := 0
	b.Command.AtFailpoints(func(where string) {
		if where != "after the append" {
			return
		}
		stream, err := js.Stream(t.Context(), api.SessionsStream)
		testkit.Must(t, err)
		stored, err := stream.GetLastMsgForSubject(t.Context(), api.AllSessions)
		testkit.Must(t, err)
		entry, err := transcript.Read(stored.Data)
		testkit.Must(t, err)
		if a, is := lost[entry.Stamp.Sequence]; is {
			_, err := js.PublishMsg(t.Context(), &nats.Msg{
				Subject: api.Inbox(a, entry.Message.Session), Data: stored.Data,
				Header: nats.Header{api.SequenceHeader: {strconv.FormatUint(entry.Stamp.Sequence, 10)}},
			})
			testkit.Must(t, err)
			copied++
		}
	})
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta, gamma)
	for range 3 {
		s.Say(alpha, "OBSERVE", `{"subject":"x"}`)
	}
	s.Untouched(beta, gamma)
	s.Check(alpha, beta, gamma)
	at.close(b)
	if n := logs.FilterMessage("side effects are retried").Len(); n > 0 || copied != len(lost) {
		t.Errorf("of %d copies that were stored before, the broker failed at %d: %v", copied, n, logs.All())
	}
}

// A broker whose copies are not acknowledged, whatever it does, hands the session to a peer after
// ten seconds, and says so once. It needs no restart to find what the peer has done.
func TestHandsOver(t *testing.T) {
	t.Parallel()
	process := testkit.StartServerProcess(t, `
jetstream { store_dir: "./store" }
no_auth_user: anybody
authorization { users: [
	{user: anybody, password: x},
	{user: mute, password: x, permissions: {publish: {deny: "asp.agent.*.inbox.>"}}}
] }
`)
	at := site{t, testkit.ServerAt(t, process.URL())}
	core, logs := observer.New(zap.InfoLevel)
	muted, err := nats.Connect(at.URL, nats.UserInfo("mute", "x"))
	testkit.Must(t, err)
	t.Cleanup(muted.Close)
	mute, _ := at.OpenBroker(func(o *server.BrokerOptions) { o.Conn, o.Log = muted, zap.New(core) })
	peer, _ := at.OpenBroker()
	at.meet(mute, peer)
	w := fault.NewWitness(t, at.URL)
	js, err := jetstream.New(at.Connect())
	testkit.Must(t, err)
	var s *fault.Session
	for total := uint64(0); total == 0; total, _ = mute.Parts.Members.HandedOver() { // on a slow machine the peer may own it by then
		s = w.Invite(alpha, beta, time.Hour)
		for isOwnedBy(peer, s.ID) {
			s = w.Invite(alpha, beta, time.Hour)
		}
		said := time.Now()
		testkit.Stored(t, js, api.InboxStream, api.Inbox(beta, s.ID)) // nobody asks a broker anything
		t.Logf("delivered %s after it was accepted", time.Since(said))
	}
	testkit.Eventually(t, "the broker finds what its peer has done", func() bool {
		_, now := mute.Parts.Members.HandedOver()
		return now == 0
	})
	total, _ := mute.Parts.Members.HandedOver()
	for _, message := range []string{"side effects are retried", "side effects cannot be applied here; peers are asked to", "side effects are applied after all"} {
		if n := logs.FilterMessage(message).Len(); n != int(total) { //nolint:gosec // one, or a few where the machine is slow
			t.Errorf("%q is in the log %d times, for %d sessions that were handed over", message, n, total)
		}
	}
	s.Check(alpha, beta)
	at.close(mute)
	at.close(peer)
}
