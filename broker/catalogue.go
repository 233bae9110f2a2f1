package broker

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
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
func CataloguePage(lines []Listed) (*nats.Msg, error) {
	text, err := json.Marshal(lines)
	if err != nil {
		return nil, err
	}
	data, err := pack(zstdPlain, text)
	return &nats.Msg{Subject: api.CataloguePage, Data: data, Header: nats.Header{packHeader: {zstdPlain}}}, err
}

func readPage(m *jetstream.RawStreamMsg) (lines []Listed, err error) {
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
			m.Header.Set(jetstream.MsgTTLHeader, keep.String())
		}
		ack, err := b.js.PublishMsg(ctx, m)
		if err != nil {
			return err
		}
		b.index.turn(lines, ack.Sequence)
	}
	if err := b.durable(api.CatalogueStream, 0); err != nil {
		return err
	}
	b.reaches(allCatalogued)
	for _, l := range moved {
		if err := b.log.streams[api.IndexStream].Purge(ctx, jetstream.WithPurgeSubject(api.IndexOver(l.Session))); err != nil {
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
	if !b.archives() {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	if err := within(ctx, b.index.loaded); err != nil {
		return nil, err
	}
	b.index.mu.RLock()
	at := b.index.lines.page(id)
	b.index.mu.RUnlock()
	if at == 0 {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	m, err := b.log.at(ctx, api.CatalogueStream, at)
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
	if !x.b.archives() {
		return nil
	}
	all := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}
	caughtUp, err := x.b.followFrom(ctx, api.CatalogueStream, all, func(m jetstream.Msg, old bool) {
		meta, err := m.Metadata()
		if err != nil {
			return
		}
		lines, err := readPage(&jetstream.RawStreamMsg{Header: m.Headers(), Data: m.Data()})
		if err != nil {
			x.b.Log.Error("catalogue", zap.Uint64("page", meta.Sequence.Stream), zap.Error(err))
			return
		}
		for _, l := range lines {
			if old {
				past.rows[past.add(compact(l.Session), l.line())].page = uint32(meta.Sequence.Stream) //nolint:gosec // there are fewer pages
			} else {
				x.keep(l.Session, l.line())
			}
		}
		if !old {
			x.turn(lines, meta.Sequence.Stream)
		}
	})
	if err != nil {
		return err
	}
	return within(ctx, caughtUp)
}
