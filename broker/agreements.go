package broker

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inclusion"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// agreed are a session's agreements, and where their entries are.
type agreed struct {
	state     session.State
	sequences []uint64
	archived  bool
	recent    []delivery // entries that need not be read again
}

func agreedIn(l *cachedSession) agreed { return agreed{l.state, l.sequences, l.archived, l.unapplied} }

// agreement makes one of the agreements of its two entries.
func (b *Broker) agreement(ctx context.Context, s agreed, a session.Agreement) (d agreement.Document, acceptedAt string, err error) {
	var entries [2]transcript.Entry
	for i, sequence := range []uint64{a.Offer, a.Acceptance} {
		data, err := b.entryOf(ctx, s, sequence)
		if err != nil {
			return d, "", err
		}
		if entries[i], err = transcript.Read(data); err != nil {
			return d, "", err
		}
		if err := entries[i].Message.DecodeBody(); err != nil {
			return d, "", err
		}
	}
	d, err = agreement.Made(&s.state, a, entries[0], entries[1])
	return d, entries[1].Stamp.Receipt.AcceptedAt, err
}

// entryOf reads an entry from the transcript, or from the archive.
func (b *Broker) entryOf(ctx context.Context, s agreed, sequence uint64) ([]byte, error) {
	for _, d := range s.recent {
		if d.sequence == sequence && d.entry != nil {
			return d.entry, nil
		}
	}
	if !s.archived && sequence < uint64(len(s.sequences)) {
		m, err := b.store.At(ctx, api.SessionsStream, s.sequences[sequence])
		if err != nil {
			return nil, err
		}
		if m != nil {
			return m.Data, nil
		}
	}
	entries, err := b.archive.Entries(ctx, s.state.ID)
	if err == nil && sequence >= uint64(len(entries)) {
		err = fmt.Errorf("session %s has no entry %d", s.state.ID, sequence)
	}
	if err != nil {
		return nil, err
	}
	return entries[sequence], nil
}

// agreementGet answers agreement.get.
func (b *Broker) agreementGet(ctx context.Context, c api.Caller, q api.GetAgreement) (d agreement.Document, err error) {
	if q.Session == "" {
		if q.Session, err = b.sessionOf(ctx, q.Agreement); err != nil {
			return d, err
		}
	}
	var s agreed
	if err := b.readable(ctx, c, q.Session, func(l *cachedSession) error { s = agreedIn(l); return nil }); err != nil {
		return d, err
	}
	var found *session.Agreement
	for _, a := range s.state.Agreements() {
		if q.Agreement == "" || agreement.IDOf(s.state.ID, a.Proposal) == q.Agreement {
			found = &a
		}
	}
	if found == nil {
		return d, session.Refuse(session.ProposalUnknown, "the session has no such agreement")
	}
	if d, _, err = b.agreement(ctx, s, *found); err != nil {
		return d, err
	}
	if d.Log, err = b.ledger.Proof(ctx, inclusion.Agreement, string(d.ID)); err != nil {
		return d, err
	}
	if size := api.Size(d); size > api.MaxPageBytes {
		return d, session.Refuse(session.TooLarge, "the agreement has %d bytes, a reply at most %d: 'parley agreement export' makes it of the transcript", size, api.MaxPageBytes)
	}
	return d, nil
}

// sessionOf is the session of an agreement. What nobody has agreed on is answered like
// the agreement of others, after the same work.
func (b *Broker) sessionOf(ctx context.Context, id agreement.ID) (performatives.SessionID, error) {
	if id == "" {
		return "", session.Refuse(session.MalformedEnvelope, "name agreementId or sessionId")
	}
	if !id.Valid() {
		return "", session.NoSuchSession()
	}
	if s, unlogged := b.unlogged.Load(id); unlogged {
		return s.(performatives.SessionID), nil //nolint:errcheck,forcetypeassert // it holds no others
	}
	s, err := b.ledger.SessionOf(ctx, inclusion.Agreement, string(id))
	if err == nil && s == "" {
		s = noneSuch()
	}
	return s, err
}

// maxAgreeing bounds the sessions that one page of agreements is chosen from.
const maxAgreeing = 500

// agreementList answers agreement.list. Its cursor is a session, and how many of its
// agreements were listed.
func (b *Broker) agreementList(ctx context.Context, c api.Caller, q api.ListAgreements) (api.Agreements, error) {
	at, listed, within := strings.Cut(q.Cursor, ".")
	skip, err := strconv.Atoi(listed)
	if listed != "" && (err != nil || skip < 0) {
		return api.Agreements{}, session.Refuse(session.MalformedEnvelope, "cursor is next of the page before")
	}
	page := api.NewPage[api.AgreementRow](q.Limit)
	var s agreed
	if q.Session != "" {
		err := b.readable(ctx, c, q.Session, func(l *cachedSession) error { s = agreedIn(l); return nil })
		if err == nil {
			err = b.addAgreements(ctx, page, s, skip)
		}
		return agreementsPage(page, q.Session, skip, s), err
	}
	before := at
	if within {
		before += "." // that session too, if it is one of the caller's
	}
	sessions, err := b.ofCaller(ctx, c, "", before, maxAgreeing)
	if err != nil {
		return api.Agreements{}, err
	}
	if len(sessions) == 0 || string(sessions[0]) != at {
		skip = 0
	}
	for _, id := range sessions {
		s = agreed{}
		if err := b.listed(ctx, c, id, func(l *cachedSession) error {
			if c.Operator || l.state.MayRead(c.Agent, b.clock(l)) || b.mayAudit(c, l) || b.decidesIn(c, l) {
				s = agreedIn(l)
			}
			return nil
		}); err != nil {
			return api.Agreements{}, err
		}
		before := len(page.Items)
		if err := b.addAgreements(ctx, page, s, skip); err != nil {
			return api.Agreements{}, err
		}
		if added := len(page.Items) - before; added < len(s.state.AgreementsAfter(skip)) {
			return api.Agreements{Agreements: page.Items, Next: string(id) + "." + strconv.Itoa(skip+added)}, nil
		}
		skip, at = 0, string(id)
	}
	found := api.Agreements{Agreements: page.Items}
	if len(sessions) >= maxAgreeing {
		found.Next = at
	}
	return found, nil
}

func agreementsPage(page *api.PageOf[api.AgreementRow], id performatives.SessionID, skip int, s agreed) api.Agreements {
	found := api.Agreements{Agreements: page.Items}
	if len(page.Items) < len(s.state.AgreementsAfter(skip)) {
		found.Next = string(id) + "." + strconv.Itoa(skip+len(page.Items))
	}
	return found
}

// addAgreements adds a session's agreements but the first skip to a page, as far as it has room.
func (b *Broker) addAgreements(ctx context.Context, page *api.PageOf[api.AgreementRow], s agreed, skip int) error {
	for _, a := range s.state.AgreementsAfter(skip) {
		d, acceptedAt, err := b.agreement(ctx, s, a)
		if err != nil {
			return err
		}
		row := api.AgreementRow{
			Agreement: d.ID, Session: d.Negotiation, Proposal: a.Proposal, Parties: d.Parties, Category: d.Category,
			EffectiveFrom: d.EffectiveFrom, EffectiveUntil: d.EffectiveUntil, Hash: d.Hash, AcceptedAt: acceptedAt,
		}
		api.Fit(&row, api.MaxRowBytes)
		if !page.Add(row, api.Size(row)) {
			return nil
		}
	}
	return nil
}
