package testkit

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Stored waits until a stream has a message on a subject, and returns the newest.
func Stored(t testing.TB, js jetstream.JetStream, stream, subject string) jetstream.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	Must(t, err)
	m, err := consumer.Next(jetstream.FetchMaxWait(Patience))
	if err != nil {
		t.Fatalf("%s has no message on %s: %v", stream, subject, err)
	}
	return m
}
