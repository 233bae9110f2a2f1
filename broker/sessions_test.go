package broker_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// What is entered while a session is being forgotten, to be read anew, is done.
func TestForgettingLosesNoWork(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true})
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	var entering, undone sync.WaitGroup
	for range 8 {
		entering.Go(func() {
			for range 5000 {
				undone.Add(1)
				for !b.Broker.Command.Forgets(id, undone.Done) { // too much waits
				}
			}
		})
	}
	entering.Wait()
	undone.Wait()
}
