package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/transcript"
)

// An Archive says when sessions that are over leave the stream of transcripts,
// and how long they are kept then. The zero Archive is never.
type Archive struct {
	After  time.Duration // a session is over; 0 is never
	Every  time.Duration // that what is due moves; 0 is a quarter of After, an hour at most
	AtOnce uint          // so many sessions wait no longer; 0 is 100,000
	Closed time.Duration // how long a closed one is kept from then on; 0 is for ever
	Failed time.Duration // the same of a failed one
}

func (a Archive) keeps(p session.Phase) time.Duration {
	if p == session.Failed {
		return a.Failed
	}
	return a.Closed
}

// errNotWhole means that the archive does not have all of a session.
var errNotWhole = errors.New("the archive does not have all of it")

// archived reads a session from the archive, nil where it is not, or not all of it.
func (b *Broker) archived(ctx context.Context, id performatives.SessionID) (entries [][]byte, err error) {
	last, err := b.store.Last(ctx, api.ArchiveStream, api.Archive(id))
	if err != nil || last == nil || last.Header.Get(lastHeader) == "" {
		return nil, err
	}
	want, err := strconv.Atoi(last.Header.Get(lastHeader))
	if err != nil {
		return nil, err
	}
	if err := b.store.Read(ctx, api.ArchiveStream, api.Archive(id), 0, func(part store.Message) error {
		more, err := unarchived(part.Header.Get(packHeader), part.Data)
		entries = append(entries, more...)
		return err
	}); err != nil {
		return nil, err
	}
	if len(entries) != want {
		return nil, fmt.Errorf("session %s: %w: %d entries of %d", id, errNotWhole, len(entries), want)
	}
	return entries, nil
}

// fromArchive makes memory what the archive has of a session, and tells whether
// it has it. Nothing follows from it any more: it was settled before.
func (b *Broker) fromArchive(ctx context.Context, l *live) (is bool, err error) {
	if !b.store.Archives() {
		return false, nil
	}
	entries, err := b.archived(ctx, l.id)
	if err != nil || entries == nil {
		return false, err
	}
	for _, d := range l.undelivered { // it was settled, or it would not be there
		b.cluster.Applied(d.position)
	}
	l.forget(b.Modes)
	for _, data := range entries {
		e, err := transcript.Read(data)
		if err != nil {
			return true, fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
		if l.state, err = session.Replay(l.state, e.Message, e.Stamp); err != nil {
			return true, fmt.Errorf("%w: %w", cluster.ErrBroken, err)
		}
	}
	l.archived, l.loaded, l.indexed, l.members = true, true, l.state.Phase, len(l.state.Roll())
	b.resolved(l)
	return true, nil
}

// archivedMessages is a page of a session that was archived.
func (b *Broker) archivedMessages(ctx context.Context, q api.ListMessages) (api.Messages, error) {
	found := api.Messages{Messages: []jsontext.Value{}}
	entries, err := b.archived(ctx, q.Session)
	if err != nil {
		return found, err
	}
	size := 0
	for next := q.Since; next < uint64(len(entries)); next++ {
		if len(found.Messages) == page(q.Limit) || size+len(entries[next]) > maxPageBytes && size > 0 {
			found.Next = &next
			break
		}
		found.Messages = append(found.Messages, entries[next])
		size += len(entries[next])
	}
	return found, nil
}

// errNotOver means that a session cannot be archived now.
var errNotOver = errors.New("the session is not over and settled")

// archive writes a session to the archive, if it is not there yet.
func (b *Broker) archive(ctx context.Context, l *live) error {
	if _, err := b.current(ctx, l); err != nil || l.archived {
		return err
	}
	if !l.state.Phase.Over() || len(l.undelivered) > 0 || l.unresolved != nil {
		return errNotOver
	}
	if there, err := b.archived(ctx, l.id); err != nil || there != nil {
		return err
	}
	var entries [][]byte
	if err := b.store.Read(ctx, api.SessionsStream, api.Session(l.id), 1, func(e store.Message) error {
		entries = append(entries, e.Data)
		return nil
	}); err != nil {
		return err
	}
	if uint64(len(entries)) != l.state.Next {
		return errNotOver // another broker is moving it just now
	}
	return b.writeParts(ctx, l, entries)
}

// writeParts writes the parts that are not there: the same entries always make
// the same parts.
func (b *Broker) writeParts(ctx context.Context, l *live, entries [][]byte) error {
	prior, err := b.store.Last(ctx, api.ArchiveStream, api.Archive(l.id))
	if err != nil {
		return err
	}
	var done int
	var position uint64
	if prior != nil {
		if done, err = strconv.Atoi(prior.Header.Get(partHeader)); err != nil {
			return err
		}
		position = prior.Sequence
	}
	all, err := ArchiveMessages(l.id, entries)
	if err != nil {
		return err
	}
	for _, m := range all[min(done, len(all)):] {
		if keep := b.Archive.keeps(l.state.Phase); keep > 0 {
			m.Header.Set(store.TTLHeader, keep.String())
		}
		if position, err = b.store.PutIf(ctx, m, position); err != nil {
			return err
		}
		b.reaches(partArchived)
	}
	return nil
}

// leave lets sessions that are in the archive, on disk, leave the transcripts'
// stream: it denies deletion, and gives up what a consumer acknowledges.
func (b *Broker) leave(ctx context.Context, moved []Listed) error {
	if len(moved) == 0 {
		return nil
	}
	if err := b.store.Sync(api.ArchiveStream, 0); err != nil {
		return err
	}
	b.reaches(allArchived)
	filters := make([]string, len(moved))
	for i, l := range moved {
		filters[i] = api.Session(l.Session)
	}
	return b.store.Release(ctx, filters, func() { b.reaches(oneLeft) })
}
