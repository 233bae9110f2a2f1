package client

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func letter(session performatives.SessionID, sequence uint64) *Message {
	m := &Message{}
	m.Message = &performatives.Message{Session: session}
	m.Stamp.Sequence = sequence
	return m
}

func (b *mailbox) order() (all []string) {
	for _, m := range b.waiting {
		all = append(all, fmt.Sprint(m.Message.Session, m.Stamp.Sequence))
	}
	return all
}

// What comes late waits before the later ones of its session, and what came
// before does not come again.
func TestMailboxKeepsOrder(t *testing.T) {
	b := newMailbox()
	for _, m := range []*Message{letter("a", 2), letter("b", 1), letter("a", 3), letter("a", 1), letter("b", 1), letter("b", 0)} {
		if b.put(m) {
			t.Errorf("%v was acknowledged before", m.key())
		}
	}
	if got, want := b.order(), []string{"a1", "a2", "b0", "b1", "a3"}; !slices.Equal(got, want) {
		t.Errorf("waiting are %q, want %q", got, want)
	}

	r := &reader{session: "a"}
	b.readers[r] = true
	first, second := b.take(r), b.take(r)
	b.acknowledged(second)
	b.leave(r)
	if got, want := b.order(), []string{"b0", "b1", "a1", "a3"}; !slices.Equal(got, want) {
		t.Errorf("waiting are %q, want %q", got, want)
	}
	if !b.put(letter("a", 2)) {
		t.Error("what was acknowledged comes again")
	}
	if b.acknowledged(first); b.take(r).Stamp.Sequence != 3 || b.take(r) != nil {
		t.Error("session a has one message left, 3")
	}
}

// A reader of everything leaves to others the sessions that they read.
func TestMailboxSharesOut(t *testing.T) {
	b := newMailbox()
	all, ofA := &reader{}, &reader{session: "a"}
	b.readers[all], b.readers[ofA] = true, true
	b.put(letter("a", 1))
	b.put(letter("b", 1))
	if got := b.wanted(nil); got != 2 {
		t.Errorf("%d are wanted, want 2", got)
	}
	if m := b.take(all); m.Message.Session != "b" || b.take(all) != nil {
		t.Error("the reader of everything takes of session a")
	}
	if b.leave(ofA); b.take(all) == nil {
		t.Error("nobody reads session a any more")
	}
}

// What one feed gives back stays while another has brought it too, and is acknowledged to both.
func TestMailboxOfTwoFeeds(t *testing.T) {
	b := newMailbox()
	shared, own := &feed{}, &feed{}
	for _, f := range []*feed{shared, own} {
		m := letter("a", 1)
		m.came = []delivery{{by: f}}
		b.put(m)
	}
	other := letter("b", 1)
	other.came = []delivery{{by: shared}}
	b.put(other)
	if shared.held != 2 || own.held != 1 || len(b.waiting) != 2 {
		t.Errorf("held are %d and %d of %d", shared.held, own.held, len(b.waiting))
	}
	if b.empty(shared); shared.held != 0 || !slices.Equal(b.order(), []string{"a1"}) {
		t.Errorf("the first has given back all, and %q wait", b.order())
	}
	if b.acknowledged(b.waiting[0]); own.held != 0 || len(b.open) != 0 {
		t.Errorf("acknowledged, and %d are held", own.held)
	}
}

// The end of a session that is given back comes again: until then the session is not over for a reader.
func TestMailboxGivesBackTheEnd(t *testing.T) {
	b, f, r := newMailbox(), &feed{}, &reader{session: "a"}
	for range 2 {
		end := letter("a", 1)
		end.Stamp.Receipt.State = session.Closed.String()
		end.came = []delivery{{by: f}}
		if b.put(end); !b.ended(r) {
			t.Error("the end came, and the session goes on")
		}
		if b.empty(f); b.ended(r) {
			t.Error("the end was given back, and the session is over")
		}
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	var r recent[int]
	for i := range remembered + 2 {
		r.add(i)
		r.add(i)
	}
	if r.has(0) || r.has(1) || !r.has(2) || !r.has(remembered+1) || len(r.is) != remembered {
		t.Errorf("remembers %d, want the last %d", len(r.is), remembered)
	}
	r.remove(5)
	r.add(-1)
	r.add(-2)
	if r.has(5) || r.has(2) || !r.has(3) || !r.has(-1) || !r.has(-2) || len(r.is) != remembered || len(r.ring) != remembered {
		t.Errorf("remembers %d of %d after one was removed", len(r.is), len(r.ring))
	}
}

// Something may be missing only where a connection broke and numbers are
// missing, once for each session.
func TestGaps(t *testing.T) {
	var g gaps
	for i, c := range []struct {
		session              performatives.SessionID
		sequence             uint64
		delivery, reconnects uint64
		from                 uint64
		may                  bool
	}{
		{"a", 1, 10, 0, 0, false}, // the first is not known to follow anything
		{"b", 1, 11, 0, 0, false},
		{"a", 3, 12, 0, 0, false}, // 2 is an act of our own
		{"a", 4, 14, 0, 0, false}, // another process took 13
		{"a", 5, 15, 1, 0, false}, // the connection broke between two
		{"a", 8, 18, 2, 6, true},  // it broke, and 16 and 17 are missing
		{"a", 9, 19, 2, 0, false},
		{"b", 5, 20, 2, 2, true}, // which may have been of b
		{"b", 7, 21, 2, 0, false},
		{"a", 6, 22, 2, 0, false}, // it comes late
		{"c", 9, 23, 2, 0, false},
	} {
		from, may := g.missing(letter(c.session, c.sequence), c.delivery, c.reconnects)
		if may != c.may || may && from != c.from {
			t.Errorf("delivery %d: from %d, %v; want from %d, %v", i, from, may, c.from, c.may)
		}
	}
}

// kept counts how often it is said to be in progress.
type kept struct {
	jetstream.Msg

	times int
}

func (k *kept) InProgress() error { k.times++; return nil }

// A message is kept while its reader works on it, and no longer, also if its
// timer fired just before.
func TestKeptNoLonger(t *testing.T) {
	in := newInbox(nil)
	f := &feed{in: in, ackWait: 27 * time.Second}
	in.feeds[""] = f
	raw, m := &kept{}, letter("a", 1)
	m.came = []delivery{{f, raw}}
	in.open[m.key()] = m
	k := in.keep(m)
	if k.every != 9*time.Second {
		t.Errorf("it is kept every %v", k.every)
	}
	k.again()
	if raw.times != 1 || !k.timer.Stop() {
		t.Errorf("it was kept %d times, and no timer runs", raw.times)
	}
	k.stop()
	k.again()
	if raw.times != 1 || k.timer.Stop() {
		t.Errorf("it was kept %d times, and its reader is done with it", raw.times)
	}
}
