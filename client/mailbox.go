package client

import (
	"cmp"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/performatives"
)

// A mailbox holds what was delivered and not acknowledged, and hands each
// message to one reader. Its methods need the inbox's lock.
type mailbox struct {
	waiting []*Message       // for a reader; those of a session in the order of the transcript
	open    map[key]*Message // waiting or taken
	done    recent[key]      // acknowledged
	over    recent[performatives.SessionID]
	faults  []error         // deliveries that cannot be read, for whoever reads next
	bad     map[uint64]bool // positions in the stream of those
	readers map[*reader]bool
	changed chan struct{} // closed at every change
}

func newMailbox() mailbox {
	return mailbox{
		open: map[key]*Message{}, bad: map[uint64]bool{}, readers: map[*reader]bool{}, changed: make(chan struct{}),
	}
}

// A reader is one loop. It takes the messages of its session, or with none
// those of the sessions that have no reader of their own.
type reader struct {
	session performatives.SessionID
	acts    []performatives.Performative // none is all
	feed    *feed
}

func (b *mailbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// put lets a message in, at its place, unless it was in before. What was
// acknowledged before is to be acknowledged again.
func (b *mailbox) put(m *Message) (again bool) {
	k := m.key()
	came := m.came
	m.came = nil
	if b.done.has(k) {
		return true
	}
	old, known := b.open[k]
	if !known {
		old, b.open[k] = m, m
	}
	for _, d := range came {
		old.arrived(d)
	}
	if known {
		return false
	}
	if m.State().Over() {
		b.over.add(k.session)
	}
	b.wait(m)
	b.wake()
	return false
}

// wait puts a message before the later ones of its session.
func (b *mailbox) wait(m *Message) {
	m.taken = nil
	at := slices.IndexFunc(b.waiting, func(w *Message) bool {
		return w.Message.Session == m.Message.Session && w.Stamp.Sequence > m.Stamp.Sequence
	})
	if at < 0 {
		at = len(b.waiting)
	}
	b.waiting = slices.Insert(b.waiting, at, m)
}

// take hands a reader the first message that waits for it.
func (b *mailbox) take(r *reader) *Message {
	at := slices.IndexFunc(b.waiting, func(m *Message) bool { return b.isFor(m, r) })
	if at < 0 {
		return nil
	}
	m := b.waiting[at]
	b.waiting = slices.Delete(b.waiting, at, at+1)
	m.taken = r
	return m
}

func (b *mailbox) isFor(m *Message, r *reader) bool {
	if len(r.acts) > 0 && !slices.Contains(r.acts, m.Act()) {
		return false
	}
	if r.session != "" {
		return r.session == m.Message.Session
	}
	for other := range b.readers {
		if other.session == m.Message.Session {
			return false
		}
	}
	return true
}

// ended reports whether nothing that the reader might take will come any more.
func (b *mailbox) ended(r *reader) bool { return r.session != "" && b.over.has(r.session) }

// leave is for a reader that ends: what it did not acknowledge waits again.
func (b *mailbox) leave(r *reader) {
	delete(b.readers, r)
	for _, m := range b.open {
		if m.taken == r {
			b.wait(m)
		}
	}
	b.wake()
}

// acknowledged forgets a message.
func (b *mailbox) acknowledged(m *Message) {
	k := m.key()
	if b.open[k] != m {
		return
	}
	delete(b.open, k)
	for _, d := range m.came {
		d.by.held--
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(w *Message) bool { return w == m })
	b.done.add(k)
	b.wake()
}

// wanted is how many messages wait for a feed's readers.
func (b *mailbox) wanted(f *feed) int {
	n := 0
	for _, m := range b.waiting {
		for r := range b.readers {
			if r.feed == f && b.isFor(m, r) {
				n++
				break
			}
		}
	}
	return n
}

// empty gives back what a feed brought: it returns the deliveries, in their order. What
// another feed has brought as well stays.
func (b *mailbox) empty(f *feed) []jetstream.Msg {
	var given []*Message
	raws := map[*Message]jetstream.Msg{}
	for k, m := range b.open {
		at := slices.IndexFunc(m.came, func(d delivery) bool { return d.by == f })
		if at < 0 {
			continue
		}
		if raw := m.came[at].raw; raw != nil {
			given, raws[m] = append(given, m), raw
		}
		if m.came = slices.Delete(m.came, at, at+1); len(m.came) == 0 {
			delete(b.open, k)
			b.waiting = slices.DeleteFunc(b.waiting, func(w *Message) bool { return w == m })
			if m.State().Over() {
				b.over.remove(k.session) // its end comes again
			}
		}
	}
	f.held = 0
	b.bad = map[uint64]bool{}
	slices.SortFunc(given, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(a.Message.Session, b.Message.Session), cmp.Compare(a.Stamp.Sequence, b.Stamp.Sequence))
	})
	var back []jetstream.Msg
	for _, m := range given {
		back = append(back, raws[m])
	}
	return back
}

// fault notes a delivery that cannot be read, once.
func (b *mailbox) fault(position uint64, err error) {
	if b.bad[position] {
		return
	}
	b.bad[position] = true
	b.faults = append(b.faults, err)
	b.wake()
}

// recent remembers the last ones of many.
type recent[K comparable] struct {
	is   map[K]bool
	ring []K
	next int
}

// remembered is how many: far more than can be acknowledged within the ack
// wait and yet come again.
const remembered = 1 << 14

func (r *recent[K]) has(k K) bool { return r.is[k] }

func (r *recent[K]) remove(k K) {
	if r.is[k] {
		delete(r.is, k)
		r.ring = slices.Concat(r.ring[r.next:], r.ring[:r.next]) // the oldest first
		r.next = 0
		at := slices.Index(r.ring, k)
		r.ring = slices.Delete(r.ring, at, at+1)
	}
}

func (r *recent[K]) add(k K) {
	switch {
	case r.is[k]:
		return
	case r.is == nil:
		r.is = map[K]bool{}
	}
	if len(r.ring) < remembered {
		r.ring = append(r.ring, k)
	} else {
		delete(r.is, r.ring[r.next])
		r.ring[r.next] = k
		r.next = (r.next + 1) % remembered
	}
	r.is[k] = true
}
