package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// ErrNotEmpty is returned for a server that already has streams of a broker.
var ErrNotEmpty = errors.New("the server already has a broker's streams; restore never overwrites them")

// ErrUnderWay and ErrRunning are returned for a server on which another restore is under way, or a broker runs.
var (
	ErrUnderWay = errors.New("another restore to the server is under way")
	ErrRunning  = errors.New("a broker runs on the server: stop it first")
)

// underway is a subject on which a restore answers.
const underway = "asp.restoring"

// alone refuses a server on which a broker runs, or another restore, and has others refused until the restore has ended.
func alone(ctx context.Context, nc *nats.Conn) (ended func(), err error) {
	if err := ask(ctx, nc, underway, struct{}{}, &struct{}{}); !errors.Is(err, nats.ErrNoResponders) {
		return nil, cmp.Or(err, ErrUnderWay)
	}
	var broker api.Broker
	if err := ask(ctx, nc, api.OperatorCall(api.BrokerInfo.Name), struct{}{}, &broker); !errors.Is(err, nats.ErrNoResponders) {
		return nil, cmp.Or(err, ErrRunning)
	}
	answers, err := nc.Subscribe(underway, func(m *nats.Msg) { m.Respond([]byte("{}")) }) //nolint:errcheck // who asks waits, and is refused too
	if err != nil {
		return nil, err
	}
	return func() { answers.Unsubscribe() }, nil //nolint:errcheck // it ends with the connection
}

// beginRestore makes the stream that is there until a restore has ended. If it is there already, what that restore has left
// is removed.
func beginRestore(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, replicas int) error {
	_, err := js.Stream(ctx, api.RestoringStream)
	again := err == nil
	if errors.Is(err, jetstream.ErrStreamNotFound) { // first of all: a broker that starts now sees it
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: api.RestoringStream, Subjects: []string{"asp.aside.restoring"}, Replicas: max(1, replicas), Description: "a restore has not ended",
		})
	}
	if err != nil {
		return err
	}
	existing, err := streams(ctx, nc, func(name string) bool {
		return ours(strings.TrimPrefix(name, aside)) && name != api.RestoringStream
	})
	if err == nil && !again && len(existing) > 0 {
		return errors.Join(fmt.Errorf("%w: %s", ErrNotEmpty, strings.Join(existing, ", ")), js.DeleteStream(ctx, api.RestoringStream))
	}
	for _, name := range existing {
		if err := js.DeleteStream(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}
