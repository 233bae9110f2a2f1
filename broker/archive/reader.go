package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// A Reader reads transcripts, wherever they are: in their stream, in the archive, or on the way there.
type Reader struct {
	store *store.Store
	log   *zap.Logger
}

// NewReader makes a reader of a store, which may have no archive.
func NewReader(s *store.Store, log *zap.Logger) *Reader { return &Reader{s, log} }

// ErrMoved means that entries have left the stream: the session is moving to the archive.
var ErrMoved = errors.New("the session has left the stream")

// Page is a page of a transcript whose entries have these stream sequences, unless it is archived, with
// the sealed parts that its reader opens.
func (r *Reader) Page(ctx context.Context, q api.ListMessages, sequences []uint64, archived bool, opens Opens) (api.Messages, error) {
	if !archived {
		found, err := r.inStream(ctx, q, sequences, opens)
		if !errors.Is(err, ErrMoved) || !r.store.Archives() {
			return found, err
		}
	}
	return r.inArchive(ctx, q, opens)
}

func (r *Reader) inStream(ctx context.Context, q api.ListMessages, sequences []uint64, opens Opens) (api.Messages, error) {
	found := api.Messages{Messages: []jsontext.Value{}}
	if q.Since >= uint64(len(sequences)) {
		return found, nil
	}
	next, size := q.Since, 0
	err := r.store.Read(ctx, api.SessionsStream, api.Session(q.Session), sequences[q.Since], func(e store.Message) error {
		entry := EntryOf(e)
		if len(found.Messages) == api.PageSize(q.Limit) || size+entry.Size() > api.MaxPageBytes && size > 0 {
			found.Next = &next
			return store.ErrEnough
		}
		if next < uint64(len(sequences)) && e.Sequence != sequences[next] {
			return ErrMoved
		}
		found.Messages = append(found.Messages, e.Data)
		size += entry.Size()
		next++
		return entry.shown(&found, opens)
	})
	if err == nil && found.Next == nil && next < uint64(len(sequences)) {
		err = ErrMoved
	}
	return found, err
}

func (r *Reader) inArchive(ctx context.Context, q api.ListMessages, opens Opens) (api.Messages, error) {
	found := api.Messages{Messages: []jsontext.Value{}}
	entries, err := r.Archived(ctx, q.Session)
	if err != nil {
		return found, err
	}
	size := 0
	for next := q.Since; next < uint64(len(entries)); next++ {
		if len(found.Messages) == api.PageSize(q.Limit) || size+entries[next].Size() > api.MaxPageBytes && size > 0 {
			found.Next = &next
			break
		}
		found.Messages = append(found.Messages, entries[next].Data)
		size += entries[next].Size()
		if err := entries[next].shown(&found, opens); err != nil {
			return found, err
		}
	}
	return found, nil
}

// One is an entry of a session whose entries have these stream sequences, unless it is archived.
func (r *Reader) One(ctx context.Context, id performatives.SessionID, sequence uint64, sequences []uint64, archived bool) ([]byte, error) {
	if !archived && sequence < uint64(len(sequences)) {
		m, err := r.store.At(ctx, api.SessionsStream, sequences[sequence])
		if err != nil {
			return nil, err
		}
		if m != nil {
			return m.Data, nil
		}
	}
	entries, err := r.Archived(ctx, id)
	if err == nil && sequence >= uint64(len(entries)) {
		err = fmt.Errorf("session %s has no entry %d", id, sequence)
	}
	if err != nil {
		return nil, err
	}
	return entries[sequence].Data, nil
}

// All are the entries of a session that has so many.
func (r *Reader) All(ctx context.Context, id performatives.SessionID, n uint64) (entries [][]byte, err error) {
	err = r.store.Read(ctx, api.SessionsStream, api.Session(id), 0, func(e store.Message) error {
		entries = append(entries, e.Data)
		return nil
	})
	if err == nil && uint64(len(entries)) < n {
		entries = nil
		archived, failed := r.Archived(ctx, id)
		for _, e := range archived {
			entries = append(entries, e.Data)
		}
		err = failed
	}
	return entries, err
}

// errIncomplete means that the archive lacks entries of a session.
var errIncomplete = errors.New("the archive lacks entries")

// Archived is the transcript of a session in the archive, or what is left of it, nil where the archive does not have
// all of it.
func (r *Reader) Archived(ctx context.Context, id performatives.SessionID) (entries []Entry, err error) {
	if !r.store.Archives() {
		return nil, nil
	}
	last, err := r.store.Last(ctx, api.ArchiveStream, api.Archive(id))
	if err != nil || last == nil || last.Header.Get(lastHeader) == "" && !isErased(last) {
		return nil, err
	}
	has, err := r.holding(ctx, id)
	if err != nil {
		return nil, err
	}
	if has.left.complete() {
		return has.left.entries, nil
	}
	if !has.whole.complete() {
		return nil, fmt.Errorf("session %s: %w: it has %d of %d", id, errIncomplete, len(has.whole.entries), has.whole.want)
	}
	return has.whole.entries, nil
}

// A holding is what the archive has of a session. Only while it is being erased, it has both.
type holding struct{ whole, left parts }

// parts are the messages of a transcript, or of what is left of it.
type parts struct {
	entries []Entry
	want    int // so many entries, as the last message says; 0 if it is not there
	stored  []*store.Message
}

func (p *parts) complete() bool { return p.want > 0 && len(p.entries) == p.want }

func (r *Reader) holding(ctx context.Context, id performatives.SessionID) (h holding, err error) {
	err = r.store.Read(ctx, api.ArchiveStream, api.Archive(id), 0, func(m store.Message) error {
		of := &h.whole
		if isErased(&m) {
			of = &h.left
		}
		more, err := entriesIn(&m)
		if err != nil {
			return err
		}
		if last := m.Header.Get(lastHeader); last != "" {
			if of.want, err = strconv.Atoi(last); err != nil {
				return err
			}
		}
		of.entries, of.stored = append(of.entries, more...), append(of.stored, &m)
		return nil
	})
	return h, err
}
