package store_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// A watch whose consumer is lost, and cannot be made again at once, goes on when it can.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	at := natskit.StartServer(t)
	nc := at.Connect()
	js, err := jetstream.New(nc)
	natskit.Must(t, err)
	s, err := store.Open(t.Context(), store.Options{Conn: nc})
	natskit.Must(t, err)
	defer s.Close()
	bucket, err := s.Bucket(t.Context(), "TEST", "", 0)
	natskit.Must(t, err)
	_, err = bucket.Put(t.Context(), "a", []byte("1"))
	natskit.Must(t, err)
	work, saw := background.New(), make(chan store.Entry, 10)
	next := func() (e store.Entry) {
		t.Helper()
		natskit.Eventually(t, "an entry", func() bool {
			select {
			case e = <-saw:
				return true
			default:
				return false
			}
		})
		return e
	}
	defer work.Close()
	natskit.Must(t, bucket.Watch(t.Context(), work, func(e store.Entry) { saw <- e }))
	if e := next(); e.Key != "a" || string(e.Value) != "1" || e.Deleted {
		t.Errorf("the watch begins with %+v", e)
	}

	stream, err := js.Stream(t.Context(), api.StreamOf("TEST"))
	natskit.Must(t, err)
	config := stream.CachedInfo().Config
	config.MaxConsumers = 1
	_, err = js.UpdateStream(t.Context(), config)
	natskit.Must(t, err)
	takesItsPlace := func() bool {
		names := stream.ConsumerNames(t.Context())
		for name := range names.Name() {
			stream.DeleteConsumer(t.Context(), name) //nolint:errcheck // it may be gone
		}
		_, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "other"})
		return err == nil
	}
	for !takesItsPlace() {
	}
	tries, err := at.Connect().SubscribeSync("$JS.API.CONSUMER.CREATE." + api.StreamOf("TEST") + ".>")
	natskit.Must(t, err)
	_, err = bucket.Put(t.Context(), "b", []byte("2"))
	natskit.Must(t, err)
	natskit.Must(t, bucket.Delete(t.Context(), "a"))
	for range 2 { // the first was refused when the second comes
		if _, err := tries.NextMsg(natskit.Patience); err != nil {
			t.Fatal("nobody tries again to make the consumer:", err)
		}
	}
	natskit.Must(t, stream.DeleteConsumer(t.Context(), "other"))
	if e := next(); e.Key != "b" || string(e.Value) != "2" || e.Deleted {
		t.Errorf("the watch goes on with %+v", e)
	}
	if e := next(); e.Key != "a" || !e.Deleted {
		t.Errorf("then with %+v", e)
	}
	natskit.Must(t, bucket.CatchUp(t.Context()))
}

// The names of keys that were taken away long ago are forgotten, and nothing else is.
func TestMarkersAreForgotten(t *testing.T) {
	t.Parallel()
	nc := natskit.StartServer(t).Connect()
	s, err := store.Open(t.Context(), store.Options{Conn: nc})
	natskit.Must(t, err)
	defer s.Close()
	bucket, err := s.Bucket(t.Context(), "TEST", "", 0)
	natskit.Must(t, err)
	for _, key := range []string{"kept", "gone", "again"} {
		_, err = bucket.Put(t.Context(), key, []byte("1"))
		natskit.Must(t, err)
	}
	natskit.Must(t, bucket.Delete(t.Context(), "gone"))
	natskit.Must(t, bucket.Delete(t.Context(), "again"))
	_, err = bucket.Create(t.Context(), "again", []byte("2"))
	natskit.Must(t, err)
	js, err := jetstream.New(nc)
	natskit.Must(t, err)
	stream, err := js.Stream(t.Context(), api.StreamOf("TEST"))
	natskit.Must(t, err)
	keys := func() map[string]uint64 {
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		natskit.Must(t, err)
		return info.State.Subjects
	}
	work := background.New()
	defer work.Close()
	natskit.Must(t, bucket.Watch(t.Context(), work, func(store.Entry) {}))
	if got := keys(); len(got) != 3 {
		t.Errorf("a start that comes soon leaves %v", got)
	}
	natskit.Must(t, bucket.WatchFor(t.Context(), work, 0, func(store.Entry) {}))
	natskit.Eventually(t, "the name of the key is gone", func() bool { return keys()["$KV.TEST.gone"] == 0 })
	if got := keys(); len(got) != 2 || got["$KV.TEST.kept"] != 1 || got["$KV.TEST.again"] != 1 {
		t.Errorf("the bucket has %v", got)
	}
	_, err = bucket.Create(t.Context(), "gone", []byte("3"))
	natskit.Must(t, err)
}
