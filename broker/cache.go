package broker

import (
	"context"
	"fmt"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// The cached sessions are bounded in number and bytes. A session that is not cached is read
// again.
const (
	maxCached      = 4096
	maxCachedBytes = 256 << 20
)

// longOffer is how long an offer may be that stays in memory when it is over.
const longOffer = 4 << 10

// busied notes that a session works, so it cannot be evicted.
func (s *sessions) busied(l *cachedSession) {
	if l.idle != nil {
		s.idle.Remove(l.idle)
		l.idle = nil
	}
}

// idled notes that a session has done its work, and evicts others if there are too many now.
// A session that nobody opened goes at once: a question about it must not evict another.
func (s *sessions) idled(l *cachedSession) {
	if l.state.Phase == session.Idle && l.indeterminate == nil {
		s.evict(l)
		return
	}
	l.compact() // what a refused act needed
	s.bytes -= l.size
	l.size = l.memory()
	s.bytes += l.size
	if len(l.unapplied) == 0 && l.indeterminate == nil {
		l.idle = s.idle.PushBack(l)
	}
	for len(s.cached) > maxCached || s.bytes > s.most {
		oldest := s.idle.Front()
		if oldest == nil {
			return
		}
		s.evict(oldest.Value.(*cachedSession)) //nolint:errcheck,forcetypeassert // the list has no others
	}
}

func (s *sessions) evict(l *cachedSession) {
	s.busied(l)
	s.bytes -= l.size
	delete(s.cached, l.id)
}

// memory is about how many bytes a cached session takes.
func (l *cachedSession) memory() int {
	const some, ofInbox, ofEntry = 2048, 128, 8
	n := some + l.state.Size() + ofEntry*cap(l.sequences) + ofInbox*len(l.inboxes)
	for _, d := range l.unapplied {
		n += d.entry.Size()
	}
	return n
}

// compact leaves out of memory what long offers that are over offered.
func (l *cachedSession) compact() { l.state = l.state.Compact(longOffer) }

// restore reads what compact left out and judging a message needs.
func (b *Broker) restore(ctx context.Context, l *cachedSession, m *performatives.Message) error {
	return b.restoreOffers(ctx, l, l.state.Needed(m, b.clock(l)))
}

func (b *Broker) restoreOffers(ctx context.Context, l *cachedSession, offers []*session.Offer) error {
	for _, o := range offers {
		if err := b.restoreOffer(ctx, l, o); err != nil {
			return err
		}
	}
	return nil
}

// restoreEscalated reads what an item of the escalation inbox shows, if it may have to be
// written.
func (b *Broker) restoreEscalated(ctx context.Context, l *cachedSession) error {
	for _, newest := range l.state.NewestEscalations() { // several are about one offer
		if !l.archived && (newest.Open() || len(l.unapplied) > 0 && newest.End.Sequence >= l.unapplied[0].sequence) {
			return b.restoreOffers(ctx, l, l.state.AtIssue(newest))
		}
	}
	return nil
}

// restoreOffer reads what an offer offered from its entry.
func (b *Broker) restoreOffer(ctx context.Context, l *cachedSession, o *session.Offer) error {
	e, err := b.parts.Store.At(ctx, api.SessionsStream, l.sequences[o.Sequence])
	if err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("entry %d: %w", o.Sequence, archive.ErrMoved)
	}
	entry, err := transcript.Read(e.Data)
	if err != nil {
		return err
	}
	l.state, err = l.state.Restore(o.ID, entry.Message.RawBody)
	return err
}
