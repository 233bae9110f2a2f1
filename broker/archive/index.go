package archive

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// The archive's index has the rows of its sessions; those that moved together are on
// one page. A message for each row would be a subject for each session, among the
// rows of open sessions, which change all the time: a server that was killed would
// have to read them all.

// IndexPage is the message that lists sessions which are in the archive.
func IndexPage(rows []sessionlist.Listed) (store.Message, error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return store.Message{}, err
	}
	data, err := compress(zstdPlain, text)
	return store.Message{Subject: api.ArchiveIndexPage, Data: data, Header: store.Header{compressionHeader: {zstdPlain}}}, err
}

func rowsOn(page *store.Message) (rows []sessionlist.Listed, err error) {
	text, err := decompress(page)
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
}

// Follow calls saw with each page of the index until work closes, and with no rows for one that cannot be read; see
// sessionlist.Options.
func (r *Reader) Follow(
	ctx context.Context, work *background.Group, saw func(page sessionlist.Page, old bool),
) (caughtUp <-chan struct{}, err error) {
	return r.store.Follow(ctx, work, store.Feed{Stream: api.ArchiveIndexStream}, func(m store.Message, old bool) {
		rows, err := rowsOn(&m)
		if err != nil {
			r.log.Error("a page of the archive's index cannot be read", zap.Uint64("page", m.Sequence), zap.Error(err))
			rows = nil
		}
		page := sessionlist.Page{Number: m.Sequence, Rows: rows}
		if kept, err := time.ParseDuration(m.Header.Get(store.TTLHeader)); err == nil {
			page.Expires = m.Time.Add(kept)
		}
		saw(page, old)
	})
}

// Row reads a session's row on a page of the index, nil where there is none.
func (r *Reader) Row(ctx context.Context, page uint64, id performatives.SessionID) (*sessionlist.Row, error) {
	m, err := r.store.At(ctx, api.ArchiveIndexStream, page)
	if err != nil || m == nil {
		return nil, err
	}
	rows, err := rowsOn(m)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a page that cannot be read counts as none
	}
	for _, listed := range rows {
		if listed.Session == id {
			return &listed.Row, nil
		}
	}
	return nil, nil //nolint:nilnil // no row is an answer
}
