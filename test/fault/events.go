package fault

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// Missed has news when an act was not answered, or not now.
func (w *Witness) Missed() <-chan struct{} { return w.missed }

// Recovered watches the membership records from now on. The function that it returns waits until
// a broker has deleted that of another one, whose work it has recovered.
func (w *Witness) Recovered() (wait func()) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	w.Cleanup(cancel)
	records, err := w.js.KeyValue(ctx, api.BrokersBucket)
	if err != nil {
		w.Fatal(err)
	}
	watch, err := records.WatchAll(ctx, jetstream.UpdatesOnly())
	if err != nil {
		w.Fatal(err)
	}
	return func() {
		w.Helper()
		for {
			select {
			case record := <-watch.Updates():
				if record != nil && record.Operation() == jetstream.KeyValueDelete {
					return
				}
			case <-ctx.Done():
				w.Fatal("nobody has recovered a broker's work")
			}
		}
	}
}

// Events waits until the broker has entered so many events, and returns what they say, in order.
func (s *Session) Events(n int) (all []performatives.EventData) {
	s.witness.Helper()
	testkit.Eventually(s.witness, fmt.Sprintf("%d events of session %s", n, s.ID), func() bool {
		all = nil
		for _, line := range s.transcript() {
			e, err := transcript.Read(line)
			if err != nil {
				s.witness.Fatal(err)
			}
			var body performatives.InformBody
			if !e.Message.Sender.IsBroker() || json.Unmarshal(e.Message.RawBody, &body) != nil {
				continue
			}
			if event, is := body.Event(); is {
				all = append(all, event)
			}
		}
		return len(all) >= n
	})
	return all
}
