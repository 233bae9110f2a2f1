package broker

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// The catalogue has the lines of the sessions in the archive, those that moved
// together on one page. Each line of its own, they would be a subject each, and
// among the lines of other sessions, which are written all the time: what a killed
// server would have to read whole.

// A Listed is a line on a page.
type Listed struct {
	Session performatives.SessionID `json:"sessionId"`
	State   session.Phase           `json:"state"`
	Parties []performatives.Agent   `json:"participants"`
	Entries uint64                  `json:"entries"`
}

func (l *Listed) line() line { return line{l.State, l.Parties, l.Entries} }

// CataloguePage is the message that lists sessions which are in the archive.
func CataloguePage(lines []Listed) (store.Message, error) {
	text, err := json.Marshal(lines)
	if err != nil {
		return store.Message{}, err
	}
	data, err := pack(zstdPlain, text)
	return store.Message{Subject: api.CataloguePage, Data: data, Header: store.Header{packHeader: {zstdPlain}}}, err
}

func readPage(m *store.Message) (lines []Listed, err error) {
	text, err := unpack(m.Header.Get(packHeader), m.Data)
	if err != nil {
		return nil, err
	}
	return lines, json.Unmarshal(text, &lines)
}

// enterCatalogue writes pages of sessions that are in the archive, and has their own
// lines go when the pages are on disk.
func (b *Broker) enterCatalogue(ctx context.Context, moved []Listed) error {
	kept := map[time.Duration][]Listed{} // by how long
	for _, l := range moved {
		if !b.index.catalogued(l.Session) {
			keep := b.Archive.keeps(l.State)
			kept[keep] = append(kept[keep], l)
		}
	}
	for keep, lines := range kept {
		m, err := CataloguePage(lines)
		if err != nil {
			return err
		}
		if keep > 0 { // a page goes when its sessions do
			m.Header.Set(store.TTLHeader, keep.String())
		}
		page, err := b.store.Put(ctx, m)
		if err != nil {
			return err
		}
		b.index.turn(lines, page)
	}
	if err := b.store.Sync(api.CatalogueStream, 0); err != nil {
		return err
	}
	b.reaches(allCatalogued)
	for _, l := range moved {
		if err := b.store.Purge(ctx, api.IndexStream, api.IndexOver(l.Session)); err != nil {
			return err
		}
		b.reaches(lineGone)
	}
	return nil
}

// turn notes on which page sessions are.
func (x *index) turn(page []Listed, at uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range page {
		x.lines.paged(l.Session, at)
	}
}

// catalogued tells whether a session is known to be on a page.
func (x *index) catalogued(id performatives.SessionID) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lines.page(id) > 0
}

// catalogueLine is what the catalogue, as it is stored, has of a session, nil for nothing.
func (b *Broker) catalogueLine(ctx context.Context, id performatives.SessionID) (*line, error) {
	if !b.store.Archives() {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	if err := background.Await(ctx, b.index.loaded); err != nil {
		return nil, err
	}
	b.index.mu.RLock()
	at := b.index.lines.page(id)
	b.index.mu.RUnlock()
	if at == 0 {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	m, err := b.store.At(ctx, api.CatalogueStream, at)
	if err != nil || m == nil {
		return nil, err
	}
	lines, err := readPage(m)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // what cannot be read counts as not there
	}
	for _, l := range lines {
		if l.Session == id {
			found := l.line()
			return &found, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is an answer
}

// loadCatalogue reads the pages into past, and follows what is written from then on.
func (x *index) loadCatalogue(ctx context.Context, past *lines) error {
	if !x.b.store.Archives() {
		return nil
	}
	caughtUp, err := x.b.store.Follow(ctx, x.b.work, store.Feed{Stream: api.CatalogueStream}, func(m store.Message, old bool) {
		lines, err := readPage(&m)
		if err != nil {
			x.b.Log.Error("catalogue", zap.Uint64("page", m.Sequence), zap.Error(err))
			return
		}
		for _, l := range lines {
			if old {
				past.rows[past.add(compact(l.Session), l.line())].page = uint32(m.Sequence) //nolint:gosec // there are fewer pages
			} else {
				x.Keep(l.Session, l.line())
			}
		}
		if !old {
			x.turn(lines, m.Sequence)
		}
	})
	if err != nil {
		return err
	}
	return background.Await(ctx, caughtUp)
}
