package store_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// What consumers deliver comes over a connection of its own: it delays no act.
func TestFeedsDelayNoAct(t *testing.T) {
	t.Parallel()
	at := natskit.StartServer(t)
	acts, feeds := at.Connect(), at.Connect()
	s, err := store.Open(t.Context(), store.Options{Conn: acts, Feeds: feeds})
	natskit.Must(t, err)
	defer s.Close()
	const rows, size = 100, 64 << 10 // more than is delivered at a time
	for n := range rows {
		_, err := s.Put(t.Context(), store.Message{Subject: api.IndexOver(performatives.SessionID(fmt.Sprint(n))), Data: bytes.Repeat([]byte{'x'}, size)})
		natskit.Must(t, err)
	}
	answers := acts.Stats().InBytes
	work := background.New()
	defer work.Close()
	seen := 0
	caughtUp, err := s.Follow(t.Context(), work, store.Feed{Stream: api.IndexStream}, func(store.Message, bool) { seen++ })
	natskit.Must(t, err)
	natskit.Must(t, background.Await(t.Context(), caughtUp))
	if got := feeds.Stats().InBytes; seen != rows || got < rows*size {
		t.Errorf("%d messages in %d bytes, want %d over the connection of the feeds", seen, got, rows)
	}
	if got := acts.Stats().InBytes - answers; got > size {
		t.Errorf("%d bytes of a feed came over the connection of the acts", got)
	}
}
