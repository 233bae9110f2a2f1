package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// A store gets other numbers of shards by its backups: transcripts are in order, what was read does not come
// again, what was not does, and sessions go on.
func TestReshard(t *testing.T) {
	t.Parallel()
	w := newStore(t) // its one session is paused
	buyer, seller := w.Client("agent://acme.com/buyer"), w.Client("agent://widgets.co/seller")
	const deals = 6
	var open []performatives.SessionID
	for n := range deals {
		s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller.Agent()}, Purpose: "cups"})
		testkit.Must(w, err)
		_, err = seller.Session(s.ID()).Accept(w.Ctx, "inv")
		testkit.Must(w, err)
		if n%2 == 0 {
			_, err = s.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
			testkit.Must(w, err)
		} else {
			open = append(open, s.ID())
		}
	}
	const inboxed = deals + deals/2 // invitations and ends, for the seller
	stream := api.InboxStream
	for read, shards := range []int{4, 3, 1} {
		consumer, err := w.js.Consumer(w.Ctx, stream, seller.Agent().Token())
		testkit.Must(w, err)
		m, err := consumer.Next()
		testkit.Must(w, err)
		testkit.Must(w, m.DoubleAck(w.Ctx))
		before, err := client.Do(w.Ctx, seller, api.InboxMessages, api.ListInbox{})
		testkit.Must(w, err)
		file := filepath.Join(t.TempDir(), "parley.tar")
		if said, ok := w.parley("backup", file, "--nats", w.URL, "--data", w.Data); !ok {
			t.Fatal(said)
		}
		again := filepath.Join(t.TempDir(), "again")
		if said, ok := w.parley("streams", "reshard", file, "--data", again, "--shards", strconv.Itoa(shards)); !ok {
			t.Fatal(said)
		}
		w.starts(t, testkit.Options{Data: again, Shards: shards})
		if said, ok := w.verify(auditWait); !ok || strings.Count(said, "ok  ") != deals+1 {
			t.Errorf("%d shards: not all of %d sessions are in order:\n%s", shards, deals+1, said)
		}
		stream = api.InboxStreamOf(seller.Agent(), shards)
		consumer, err = w.js.Consumer(w.Ctx, stream, seller.Agent().Token())
		testkit.Must(w, err)
		info, err := consumer.Info(w.Ctx)
		testkit.Must(w, err)
		if want := uint64(inboxed - 1 - read + read*len(open)); info.NumPending != want {
			t.Errorf("%d shards: %d messages are to be read, want %d", shards, info.NumPending, want)
		}
		buyer, seller = w.Client("agent://acme.com/buyer"), w.Client("agent://widgets.co/seller")
		since := before.Cursor
		known, err := client.Do(w.Ctx, seller, api.InboxMessages, api.ListInbox{Since: &since})
		if err != nil || len(known.Messages) != inboxed+read*len(open) {
			t.Errorf("%d shards: from an old cursor on are %d messages: %v", shards, len(known.Messages), err)
		}
		for _, id := range open {
			_, err := buyer.Session(id).Observe(w.Ctx, "it goes on", nil)
			testkit.Must(w, err)
		}
	}
}
