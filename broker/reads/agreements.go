package reads

import (
	"context"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/transcript"
)

// AgreementMade says that an agreement was made whose leaf is not in the public log yet.
func (x *Reads) AgreementMade(id performatives.SessionID, a session.Agreement) {
	x.unlogged.Store(agreement.IDOf(id, a.Name), id)
}

// AppendAgreement appends the leaf of an agreement to the public log.
func (x *Reads) AppendAgreement(ctx context.Context, s *Session, a session.Agreement) error {
	d, acceptedAt, err := x.document(ctx, s, a)
	if err != nil {
		return err
	}
	leaf, err := d.Leaf(acceptedAt, agreement.PublishIn(&s.State, a))
	if err != nil {
		return err
	}
	if err := x.o.Ledger.Append(ctx, inclusion.Agreement, string(d.ID), s.State.ID, leaf); err != nil {
		return err
	}
	x.unlogged.Delete(d.ID)
	return nil
}

// document makes one of the agreements of its entries.
func (x *Reads) document(ctx context.Context, s *Session, a session.Agreement) (d agreement.Document, acceptedAt string, err error) {
	d, err = agreement.Made(&s.State, a, func(sequence uint64) (e transcript.Entry, err error) {
		data, err := x.entry(ctx, s, sequence)
		if err == nil {
			e, err = transcript.Read(data)
		}
		if err == nil {
			err = e.Message.DecodeBody()
		}
		if sequence == a.Made() {
			acceptedAt = e.Stamp.Receipt.AcceptedAt
		}
		return e, err
	})
	return d, acceptedAt, err
}

// entry reads one of a session's entries.
func (x *Reads) entry(ctx context.Context, s *Session, sequence uint64) ([]byte, error) {
	if entry := s.Recent(sequence); entry != nil {
		return entry, nil
	}
	return x.o.Reader.One(ctx, s.State.ID, sequence, s.Sequences, s.Archived)
}

// AgreementGet answers agreement.get.
func (x *Reads) AgreementGet(ctx context.Context, c api.Caller, q api.GetAgreement) (d agreement.Document, err error) {
	if q.Session == "" {
		if q.Session, err = x.sessionOf(ctx, q.Agreement); err != nil {
			return d, err
		}
	}
	s := new(Session)
	if err := x.Readable(ctx, c, q.Session, func(now *Session) error { s = now; return nil }); err != nil {
		return d, err
	}
	var found *session.Agreement
	for _, a := range s.State.Agreements() {
		if id := func(name string) bool { return agreement.IDOf(s.State.ID, name) == q.Agreement }; q.Agreement == "" || id(a.Name) || a.Commitment != "" && id(a.Commitment) {
			found = &a
		}
	}
	if found == nil {
		return d, session.Refuse(session.ProposalUnknown, "the session has no such agreement")
	}
	if d, _, err = x.document(ctx, s, *found); err != nil {
		return d, err
	}
	if d.Log, err = x.o.Ledger.Proof(ctx, inclusion.Agreement, string(d.ID)); err != nil {
		return d, err
	}
	if size := fit.Size(d); size > api.MaxPageBytes {
		return d, session.Refuse(session.TooLarge, "the agreement has %d bytes, a reply at most %d: 'parley agreement export' makes it of the transcript", size, api.MaxPageBytes)
	}
	return d, nil
}

// sessionOf is the session of an agreement. One that no session has is answered like the agreement
// of others, after the same work.
func (x *Reads) sessionOf(ctx context.Context, id agreement.ID) (performatives.SessionID, error) {
	if id == "" {
		return "", session.Refuse(session.MalformedEnvelope, "name agreementId or sessionId")
	}
	if !id.Valid() {
		return "", session.NoSuchSession()
	}
	if s, unlogged := x.unlogged.Load(id); unlogged {
		return s.(performatives.SessionID), nil //nolint:errcheck,forcetypeassert // it holds no others
	}
	s, err := x.o.Ledger.SessionOf(ctx, inclusion.Agreement, string(id))
	if err == nil && s == "" {
		s = NoneSuch()
	}
	return s, err
}

// maxAgreeing bounds the sessions that one page of agreements is chosen from.
const maxAgreeing = 500

// AgreementList answers agreement.list. Its cursor is a session, and how many of its
// agreements were listed.
func (x *Reads) AgreementList(ctx context.Context, c api.Caller, q api.ListAgreements) (api.Agreements, error) {
	cursor, listed, within := strings.Cut(q.Cursor, ".")
	at, err := sessionlist.ParseCursor(cursor)
	if err != nil {
		return api.Agreements{}, err
	}
	skip, err := strconv.Atoi(listed)
	if listed != "" && (err != nil || skip < 0) {
		return api.Agreements{}, sessionlist.NoCursor()
	}
	page := api.NewPage[api.AgreementRow](q.Limit)
	s := new(Session)
	if q.Session != "" {
		err := x.Readable(ctx, c, q.Session, func(now *Session) error { s = now; return nil })
		if err == nil {
			err = x.addAgreements(ctx, page, s, skip)
		}
		return agreementsPage(page, q.Session, skip, s), err
	}
	before := at
	if within {
		before = at.Including() // if it is one of the caller's
	}
	sessions, err := x.OfCaller(ctx, c, "", before, maxAgreeing)
	if err != nil {
		return api.Agreements{}, err
	}
	if len(sessions) == 0 || sessions[0] != at {
		skip = 0
	}
	for _, next := range sessions {
		s = new(Session)
		if err := x.Listed(ctx, c, next.Session(), func(now *Session) error {
			if c.Operator || now.State.MayRead(c.Agent, now.At) || x.MayAudit(c, now) || x.DecidesIn(c, now) {
				s = now
			}
			return nil
		}); err != nil {
			return api.Agreements{}, err
		}
		before := len(page.Items)
		if err := x.addAgreements(ctx, page, s, skip); err != nil {
			return api.Agreements{}, err
		}
		if added := len(page.Items) - before; added < len(s.State.AgreementsAfter(skip)) {
			return api.Agreements{Agreements: page.Items, Next: next.Cursor() + "." + strconv.Itoa(skip+added)}, nil
		}
		skip, at = 0, next
	}
	found := api.Agreements{Agreements: page.Items}
	if len(sessions) >= maxAgreeing {
		found.Next = at.Cursor()
	}
	return found, nil
}

func agreementsPage(page *api.PageOf[api.AgreementRow], id performatives.SessionID, skip int, s *Session) api.Agreements {
	found := api.Agreements{Agreements: page.Items}
	if len(page.Items) < len(s.State.AgreementsAfter(skip)) {
		found.Next = string(id) + "." + strconv.Itoa(skip+len(page.Items))
	}
	return found
}

// addAgreements adds a session's agreements but the first skip to a page, as far as it has room.
func (x *Reads) addAgreements(ctx context.Context, page *api.PageOf[api.AgreementRow], s *Session, skip int) error {
	for _, a := range s.State.AgreementsAfter(skip) {
		d, acceptedAt, err := x.document(ctx, s, a)
		if err != nil {
			return err
		}
		row := api.ViewAgreement(&s.State, a, d, acceptedAt)
		fit.To(&row, api.MaxRowBytes)
		if !page.Add(row, fit.Size(row)) {
			return nil
		}
	}
	return nil
}
