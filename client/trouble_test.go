package client_test

import (
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/test/testkit"
)

// What cannot be read is told once and does not end the loop.
func TestAnUnreadableMessage(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	_, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	ours := w.Client(alpha)
	w.want(w.reads(ours.Messages, 9, "ACCEPT"), "ACCEPT")
	w.tune(alpha, func(c *jetstream.ConsumerConfig) { c.AckWait = 50 * time.Millisecond })
	testkit.Must(t, w.Server.Broker.Options.Conn.Publish(api.Inbox(alpha, "019478a3-0001-7def-8a12-000000000001"), []byte("{}")))
	w.until("it is there", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumPending > 0 || i.NumAckPending > 0 })
	w.remark(theirs, "1")
	told := 0
	for m, err := range ours.Messages(w.Ctx) {
		if err != nil {
			told++
			continue
		}
		if err := m.Ack(); err != nil {
			t.Error(err)
		}
		if subjectOf(m) == "2" {
			break
		}
		w.until("it is delivered again", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumRedelivered > 0 })
		w.remark(theirs, "2")
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// A loop says so where nothing comes any more because nothing is acknowledged.
func TestBacklog(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	first := w.Client(alpha)
	_, theirs := w.introduced(first, w.Client(beta))
	first.Close()
	w.tune(alpha, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 3 })
	w.remark(theirs, "1", "2", "3")
	again := must(client.Connect(w.Ctx, w.URL, alpha, client.Seed(w.seed(alpha)), w.login(alpha)))(t)
	defer again.Close()
	var saw []string
	for m, err := range again.Messages(w.Ctx) {
		if err != nil {
			if !errors.Is(err, client.ErrBacklog) {
				t.Error(err)
			}
			continue
		}
		saw = append(saw, subjectOf(m))
	}
	w.want(saw, "ACCEPT", "1", "2")
}

// A loop goes on through a restart and a crash of the broker, and what the
// broken connection swallowed comes in its place.
func TestALoopOutlastsTheBroker(t *testing.T) {
	t.Parallel()
	for name, fall := range map[string]func(world){
		"restart": func(w world) { w.Down(); w.Up() },
		"crash":   func(w world) { w.Crash(); w.Up() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, testkit.Options{})
			ours, theirs := w.introduced(w.Client(alpha), w.Client(beta))
			pull, end := iter.Pull2(ours.Messages(w.Ctx))
			defer end()
			w.remark(theirs, "1")
			saw := []string{w.next(pull)}
			fall(w)
			w.remark(theirs, "2", "3")
			saw = append(saw, w.next(pull), w.next(pull))
			w.want(saw, "1", "2", "3")
		})
	}
}

// A delivery that is lost on the way does not let a later entry overtake it.
func TestALostDeliveryKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	bad := newLine(t, w.URL)
	a := must(client.Connect(w.Ctx, bad.URL, alpha, client.Seed(w.seed(alpha)), w.login(alpha)))(t)
	defer a.Close()
	_, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	pull, end := iter.Pull2(a.Messages(w.Ctx))
	defer end()
	w.remark(theirs, "1")
	w.want([]string{w.next(pull)}, "ACCEPT")
	saw := []string{w.next(pull)}

	before := w.consumer(alpha).CachedInfo().Delivered.Consumer
	bad.deaf.Store(true)
	w.remark(theirs, "2", "3")
	w.until("the server thinks it delivered", alpha, func(i *jetstream.ConsumerInfo) bool { return i.Delivered.Consumer == before+2 })
	bad.deaf.Store(false)
	bad.cut()
	testkit.Eventually(t, "the client is connected again", func() bool { return a.Conn().Stats().Reconnects > 0 })
	w.remark(theirs, "4")
	saw = append(saw, w.next(pull), w.next(pull), w.next(pull))
	w.want(saw, "1", "2", "3", "4")
	if n := w.consumer(alpha).CachedInfo().Delivered.Consumer; n != before+3 {
		t.Errorf("what comes after the connection is there again came with delivery %d, want %d", n, before+3)
	}

	w.tune(alpha, func(c *jetstream.ConsumerConfig) { c.AckWait = 100 * time.Millisecond })
	w.until("the late deliveries are acknowledged", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 })
	w.remark(theirs, "5")
	w.want([]string{w.next(pull)}, "5")
}
