package store_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// A broker that stopped while it moved the case logs, or after, is followed by one that
// moves the rest: each message once, under its sequence, and consumers go on where they were.
func TestCaseLogsMoveOnce(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	natskit.Must(t, err)
	old, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "ASP_DESK", Subjects: []string{"asp.desk.*.*", "asp.people.*.*"}, DenyDelete: true, DenyPurge: true,
	})
	natskit.Must(t, err)
	put := func(subject, data string) {
		_, err := js.Publish(t.Context(), subject, []byte(data))
		natskit.Must(t, err)
	}
	put("asp.desk.acme_com.e1", `{"event":{"kind":"opened"},"desk":{"opened":true}}`)
	put("asp.people.acme_com.d1", `{"desk":"of somebody"}`)
	put("asp.desk.acme_com.e1", `{"event":{"kind":"viewed"},"desk":{"opened":true}}`)
	reader, err := old.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
		Durable: "notify-x", FilterSubjects: []string{"asp.desk.acme_com.*", "asp.people.acme_com.*"}, AckPolicy: jetstream.AckExplicitPolicy,
	})
	natskit.Must(t, err)
	m, err := reader.Next()
	natskit.Must(t, err)
	natskit.Must(t, m.DoubleAck(t.Context()))
	// It stopped after the first message.
	c := old.CachedInfo().Config
	c.Subjects, c.Sealed = c.Subjects[:1], true
	_, err = js.UpdateStream(t.Context(), c)
	natskit.Must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: api.CaseLogStream, Subjects: []string{api.AllCaseLogs, api.AllPeople}})
	natskit.Must(t, err)
	put("asp.case.acme_com.e1", `{"case":{"opened":true},"event":{"kind":"opened"}}`)

	for range 2 {
		opened, err := store.Open(t.Context(), store.Options{Conn: nc, Lost: []string{api.SessionsStream}})
		natskit.Must(t, err)
		opened.Close()
	}
	moved, err := js.Stream(t.Context(), api.CaseLogStream)
	natskit.Must(t, err)
	for i, want := range []string{
		`asp.case.acme_com.e1 {"case":{"opened":true},"event":{"kind":"opened"}}`,
		`asp.people.acme_com.d1 {"desk":"of somebody"}`,
		`asp.case.acme_com.e1 {"case":{"opened":true},"event":{"kind":"viewed"}}`,
	} {
		m, err := moved.GetMsg(t.Context(), uint64(i)+1)
		natskit.Must(t, err)
		if got := m.Subject + " " + string(m.Data); got != want {
			t.Errorf("%d is %s, want %s", i+1, got, want)
		}
	}
	if n := moved.CachedInfo().State.LastSeq; n != 3 {
		t.Errorf("there are %d messages", n)
	}
	if _, err := js.Stream(t.Context(), "ASP_DESK"); err == nil {
		t.Error("the stream of before is there still")
	}
	reader, err = moved.Consumer(t.Context(), "notify-x")
	natskit.Must(t, err)
	if m, err = reader.Next(); err != nil || m.Subject() != "asp.people.acme_com.d1" {
		t.Errorf("the consumer goes on with %v %v", m, err)
	}
}
