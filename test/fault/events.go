package fault

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
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
