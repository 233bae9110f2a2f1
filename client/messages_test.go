package client_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// remark sends OBSERVEs with these subjects.
func (w world) remark(s *client.Session, subjects ...string) {
	w.Helper()
	for _, subject := range subjects {
		must(s.Observe(w.Ctx, subject, nil))(w)
	}
}

// subjectOf is the subject of an OBSERVE.
func subjectOf(m *client.Message) string {
	body, ok := m.Body().(*performatives.ObserveBody)
	if !ok {
		return m.Act().String()
	}
	return body.Subject
}

// reads ranges over messages, acknowledges the first n of them, stops at the
// one called last, and tells what it saw.
func (w world) reads(messages func(context.Context) iter.Seq2[*client.Message, error], acks int, last string) (saw []string) {
	w.Helper()
	for m, err := range messages(w.Ctx) {
		if err != nil {
			w.Fatal(err, saw)
		}
		if saw = append(saw, subjectOf(m)); len(saw) <= acks {
			testkit.Must(w, m.Ack())
		}
		if subjectOf(m) == last {
			break
		}
	}
	return saw
}

func (w world) want(got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("saw %q, want %q", got, want)
	}
}

// consumer is the durable consumer of an inbox, seen from the broker's side.
func (w world) consumer(a performatives.Agent) jetstream.Consumer {
	w.Helper()
	js := must(jetstream.New(w.Server.Broker.Options.Conn))(w)
	return must(js.Consumer(w.Ctx, api.InboxStream, a.Token()))(w)
}

// tune changes the consumer of an inbox.
func (w world) tune(a performatives.Agent, change func(*jetstream.ConsumerConfig)) {
	w.Helper()
	config := w.consumer(a).CachedInfo().Config
	change(&config)
	js := must(jetstream.New(w.Server.Broker.Options.Conn))(w)
	must(js.UpdateConsumer(w.Ctx, api.InboxStream, config))(w)
}

// until looks at the consumer of an inbox until it is as it should be.
func (w world) until(what string, a performatives.Agent, is func(*jetstream.ConsumerInfo) bool) {
	w.Helper()
	consumer := w.consumer(a)
	testkit.Eventually(w, what, func() bool { return is(must(consumer.Info(w.Ctx))(w)) })
}

// A loop that is broken off goes on where it was: what was not acknowledged
// comes again.
func TestBreakAndResume(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	ours := w.Client(alpha)
	_, theirs := w.introduced(ours, w.Client(beta))
	w.remark(theirs, "1", "2", "3", "4", "5")
	w.want(w.reads(ours.Messages, 2, "3"), "1", "2", "3")
	w.want(w.reads(ours.Messages, 9, "5"), "3", "4", "5")
	w.until("all is acknowledged", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 && i.NumPending == 0 })
}

// What a client did not acknowledge comes to the next one as soon as the first
// is closed, in order.
func TestTheNextClientGoesOn(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	first := w.Client(alpha)
	_, theirs := w.introduced(first, w.Client(beta))
	w.remark(theirs, "1", "2", "3", "4")
	w.want(w.reads(first.Messages, 1, "3"), "1", "2", "3")
	testkit.Must(t, first.Close())
	w.want(w.reads(w.Client(alpha).Messages, 9, "4"), "2", "3", "4")
}

// A client that reads no more lets go what it did not acknowledge, and later
// acknowledges it in vain, until it comes again.
func TestAClientThatReadsNoMore(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	_, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	ours := w.Client(alpha)
	w.want(w.reads(ours.Messages, 9, "ACCEPT"), "ACCEPT")
	w.remark(theirs, "1", "2")
	var kept *client.Message
	for m, err := range ours.Messages(w.Ctx) {
		testkit.Must(t, err)
		kept = m
		break
	}
	w.want(w.reads(w.Client(alpha).Messages, 9, "2"), "1", "2")
	if err := kept.Ack(); !errors.Is(err, client.ErrGivenBack) {
		t.Errorf("an acknowledgement that comes too late: %v", err)
	}
	w.remark(theirs, "3")
	w.want(w.reads(ours.Messages, 9, "3"), "3")
}

// A message that is not acknowledged is delivered again and again, and seen
// once.
func TestOnceInALoop(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	ours := w.Client(alpha)
	_, theirs := w.introduced(ours, w.Client(beta))
	w.tune(alpha, func(c *jetstream.ConsumerConfig) { c.AckWait = 100 * time.Millisecond })
	w.remark(theirs, "1")
	var kept []*client.Message
	for m, err := range ours.Messages(w.Ctx) {
		testkit.Must(t, err)
		if kept = append(kept, m); subjectOf(m) == "2" {
			w.until("1 is delivered again", alpha, func(i *jetstream.ConsumerInfo) bool { return i.Delivered.Consumer >= 5 })
			break
		}
		w.remark(theirs, "2")
	}
	if len(kept) != 2 {
		t.Fatalf("saw %d messages, want 2", len(kept))
	}
	for _, m := range kept {
		if err := errors.Join(m.Ack(), m.Ack()); err != nil { // late, and twice
			t.Error(err)
		}
	}
	w.until("both are acknowledged", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 })
	w.remark(theirs, "3")
	w.want(w.reads(ours.Messages, 9, "3"), "3")
}

// A message is not delivered again while the body of its loop runs.
func TestKeptWhileItsReaderWorks(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	_, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	first := w.Client(alpha)
	w.want(w.reads(first.Messages, 9, "ACCEPT"), "ACCEPT")
	testkit.Must(t, first.Close())
	acks := must(w.Server.Broker.Options.Conn.SubscribeSync("$JS.ACK.ASP_INBOX." + alpha.Token() + ".>"))(t)
	for wait := time.Second; ; wait *= 2 { // a slow machine may hold up the first signs of work for longer
		w.tune(alpha, func(c *jetstream.ConsumerConfig) { c.AckWait = wait })
		ours := w.Client(alpha)
		before := w.consumer(alpha).CachedInfo().Delivered.Consumer
		w.remark(theirs, "1")
		for m, err := range ours.Messages(w.Ctx) {
			testkit.Must(t, err)
			for progress := 0; progress < 5; { // each a third of the ack wait after the one before
				if said := must(acks.NextMsgWithContext(w.Ctx))(t); string(said.Data) == "+WPI" {
					progress++
				}
			}
			testkit.Must(t, m.Ack())
			break
		}
		testkit.Must(t, ours.Close())
		switch times := w.consumer(alpha).CachedInfo().Delivered.Consumer - before; {
		case times == 1:
			return
		case wait > 10*time.Second:
			t.Fatalf("delivered %d times", times)
		}
	}
}

// Processes of one agent, each waiting in its own session, take nothing from each other.
func TestEachProcessItsSession(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	seller := w.Client(beta)
	answered := make(chan error, 3)
	for range 3 {
		process := w.Client(alpha)
		s := must(process.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}}))(t)
		go func() {
			if _, err := s.Await(w.Ctx, performatives.Accept); err != nil {
				answered <- err
				return
			}
			_, err := s.Await(w.Ctx, performatives.Query)
			answered <- err
		}()
	}
	for range 3 {
		invitation := must(seller.Await(w.Ctx, performatives.Propose))(t)
		theirs := invitation.Session()
		must(theirs.Accept(w.Ctx, invitation.Ref()))(t)
		must(theirs.Query(w.Ctx, client.Query{Type: "x", Subject: "x"}))(t)
	}
	for range 3 {
		testkit.Must(t, <-answered)
	}
	w.until("the shared inbox has it all", alpha, func(i *jetstream.ConsumerInfo) bool { return i.NumPending == 6 && i.NumAckPending == 0 })
}

// next is the subject of a loop's next message, "" at its end.
func (w world) next(pull func() (*client.Message, error, bool)) string {
	w.Helper()
	m, err, more := pull()
	switch {
	case err != nil:
		w.Fatal(err)
	case !more:
		return ""
	}
	testkit.Must(w, m.Ack())
	return subjectOf(m)
}

// A session's own loop takes its messages, another loop the rest; a session's
// loop ends with the session.
func TestLoopsShareTheInbox(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	a, b := w.Client(alpha), w.Client(beta)
	one, theirOne := w.introduced(a, b)
	two, theirTwo := w.introduced(a, b)
	rest, endRest := iter.Pull2(a.Messages(w.Ctx))
	defer endRest()
	ofOne, endOne := iter.Pull2(one.Messages(w.Ctx))
	defer endOne()

	w.remark(theirOne, "1")
	saw := []string{w.next(ofOne)}
	w.remark(theirOne, "2")
	w.remark(theirTwo, "a")
	saw = append(saw, w.next(rest), w.next(ofOne))
	must(theirOne.Close(w.Ctx, client.Closing{}))(t)
	saw = append(saw, w.next(ofOne), w.next(ofOne))
	w.want(saw, "1", "a", "2", "CLOSE", "")
	if _, err := one.Await(w.Ctx, performatives.Accept); !errors.Is(err, client.ErrSessionOver) {
		t.Errorf("waiting for what cannot come: %v", err)
	}

	ended := make(chan error, 1)
	go func() {
		for _, err := range two.Messages(w.Ctx) {
			ended <- err
			return
		}
		ended <- nil
	}()
	must(two.Close(w.Ctx, client.Closing{}))(t)
	if err := <-ended; err != nil {
		t.Errorf("the loop of a session that we closed: %v", err)
	}
}

// Await takes what it waits for; the rest stays, in order.
func TestAwaitLeavesTheRest(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	ours, theirs := w.introduced(w.Client(alpha), w.Client(beta))
	w.remark(theirs, "1", "2")
	must(theirs.Inform(w.Ctx, performatives.Result, 7))(t)
	w.remark(theirs, "3")
	must(ours.Await(w.Ctx, performatives.Query, performatives.Inform))(t)
	w.want(w.reads(ours.Messages, 9, "3"), "1", "2", "3")
}

// A loop ends with the context's error, with ErrClosed, and only once.
func TestHowLoopsEnd(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	a := w.Client(alpha)
	ctx, cancel := context.WithCancel(w.Ctx)
	cancel()
	var errs []error
	for m, err := range a.Messages(ctx) {
		if m != nil {
			t.Errorf("got %s", m.Bytes)
		}
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("the errors are %v", errs)
	}

	ours, theirs := w.introduced(a, w.Client(beta))
	w.remark(theirs, "1")
	errs = nil
	var kept *client.Message
	for m, err := range ours.Messages(w.Ctx) {
		if m != nil {
			kept = m
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], client.ErrClosed) {
		t.Errorf("the errors are %v", errs)
	}
	if err := kept.Ack(); !errors.Is(err, client.ErrGivenBack) {
		t.Errorf("an acknowledgement that comes too late: %v", err)
	}
	if _, err := ours.Observe(w.Ctx, "x", nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("an act of a closed client: %v", err)
	}
}

// Under --dev an agent that nobody has named yet can wait for its first
// invitation.
func TestAnOutsiderWaits(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{Dev: true})
	connect := func(a performatives.Agent) *client.Client {
		c := must(client.Connect(w.Ctx, w.URL, a, client.Unsigned()))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	pull, end := iter.Pull2(connect(beta).Messages(w.Ctx))
	defer end()
	came := make(chan string, 1)
	go func() { came <- w.next(pull) }()
	a := connect(alpha)
	testkit.Eventually(t, "beta has registered itself", func() bool {
		_, err := a.Card(w.Ctx, beta)
		return err == nil
	})
	must(a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}}))(t)
	w.want([]string{<-came}, "PROPOSE")
}
