package reads

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
)

// SessionGet answers session.get.
func (x *Reads) SessionGet(ctx context.Context, c api.Caller, q api.GetSession) (api.SessionView, error) {
	var s Session
	if err := x.Readable(ctx, c, q.Session, func(now *Session) error { s = *now; return nil }); err != nil {
		return api.SessionView{}, err
	}
	unsealed, err := x.o.Unsealed(ctx, &s.State, c.Agent) // the session goes on meanwhile
	if err != nil {
		return api.SessionView{}, err
	}
	return api.ViewPage(&s.State, s.At, q, c.Opens, unsealed)
}

// mostLooked are the sessions that one request looks at for what is asked. A page may have fewer
// rows than it could then, and says where the next one starts.
const mostLooked = 2_000

// SessionList answers session.list.
func (x *Reads) SessionList(ctx context.Context, c api.Caller, q api.ListSessions) (api.Sessions, error) {
	asked, err := newSelection(q)
	if err != nil {
		return api.Sessions{}, err
	}
	you, _ := x.o.Registry.Member(c.Agent)
	you.Agent = c.Agent
	page, most := api.NewPage[api.SessionSummary](q.Limit), api.PageSize(q.Limit)
	// add adds a session to the page if it is asked for, and reports whether the page is full instead.
	add := func(id performatives.SessionID) (full bool, err error) {
		err = x.Listed(ctx, c, id, func(s *Session) error {
			row := api.Summarise(&s.State, you, s.At)
			if x.readable(c, s) != nil {
				row = row.Unread()
			}
			if asked.has(row) {
				fit.To(&row, api.MaxRowBytes)
				full = !page.Add(row, fit.Size(row))
			}
			return nil
		})
		return full, err
	}
	if len(asked.words) == 1 && len(asked.words[0]) >= minID && q.Cursor == "" {
		named, err := x.o.List.Beginning(ctx, x.selection(c), asked.words[0], most)
		if err != nil {
			return api.Sessions{}, err
		}
		for _, at := range named {
			if _, err := add(at.Session()); err != nil {
				return api.Sessions{}, err
			}
		}
		if len(page.Items) > 0 && len(named) < most {
			return api.Sessions{Sessions: page.Items}, nil
		}
		page = api.NewPage[api.SessionSummary](q.Limit)
	}
	last, err := sessionlist.ParseCursor(q.Cursor)
	if err != nil {
		return api.Sessions{}, err
	}
	for looked := 0; ; {
		some, err := x.OfCaller(ctx, c, q.State, last, most+1)
		if err != nil {
			return api.Sessions{}, err
		}
		for _, at := range some {
			if len(page.Items) == most || looked == mostLooked {
				return api.Sessions{Sessions: page.Items, Next: last.Cursor()}, nil
			}
			full, err := add(at.Session())
			if err != nil {
				return api.Sessions{}, err
			}
			if full {
				return api.Sessions{Sessions: page.Items, Next: last.Cursor()}, nil
			}
			last = at
			looked++
		}
		if len(some) <= most {
			return api.Sessions{Sessions: page.Items}, nil
		}
	}
}

// minID is how many letters of the beginning of an id find its session, however old it is.
const minID = 8

// A selection is what a caller asks for of its sessions.
type selection struct {
	api.ListSessions
	words []string
}

func newSelection(q api.ListSessions) (selection, error) {
	if _, ok := session.ParsePhase(q.State); !ok && q.State != "" && q.State != api.OpenSessions && q.State != api.EndedSessions {
		return selection{}, session.Refuse(session.MalformedEnvelope, "there is no state %.40q; %s and %s are all that are not over, and that are", q.State, api.OpenSessions, api.EndedSessions)
	}
	if q.Awaiting != "" && q.Awaiting != "me" {
		return selection{}, session.Refuse(session.MalformedEnvelope, `awaiting is "me" or absent`)
	}
	for _, at := range []*string{&q.Since, &q.Until} {
		if *at == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, *at)
		if err != nil {
			return selection{}, session.Refuse(session.MalformedEnvelope, "%.40q is not a time in RFC 3339, such as 2026-03-14T09:26:53Z", *at)
		}
		*at = api.Timestamp(t)
	}
	return selection{q, strings.Fields(strings.ToLower(q.Search))}, nil
}

// has reports whether a session is asked for.
func (q *selection) has(row api.SessionSummary) bool {
	switch {
	case !api.InState(row.State, q.State), q.Awaiting != "" && !row.Awaiting,
		q.Since != "" && row.Updated < q.Since, q.Until != "" && row.Updated >= q.Until:
		return false
	}
	with := func(a performatives.Agent) bool { return string(a) == q.With || string(a.Organisation()) == q.With }
	if q.With != "" && !slices.ContainsFunc(row.Parties, with) {
		return false
	}
	if len(q.words) == 0 {
		return true
	}
	text := strings.ToLower(row.Purpose + " " + string(row.Session))
	for _, a := range row.Parties {
		text += " " + strings.ToLower(string(a))
	}
	return !slices.ContainsFunc(q.words, func(word string) bool { return !strings.Contains(text, word) })
}

// SessionMessages answers session.messages.
func (x *Reads) SessionMessages(ctx context.Context, c api.Caller, q api.ListMessages) (api.Messages, error) {
	return x.messages(ctx, c, c, q)
}

// Transcript is a page of a transcript for who was let in elsewhere.
func (x *Reads) Transcript(ctx context.Context, c api.Caller, q api.ListMessages) (api.Messages, error) {
	return x.messages(ctx, api.Caller{Operator: true}, c, q)
}

// messages is a page of what one caller may read, as another opens it.
func (x *Reads) messages(ctx context.Context, reader, opens api.Caller, q api.ListMessages) (api.Messages, error) {
	var sequences []uint64
	var archived bool
	var state session.State
	look := func(s *Session) error {
		state = s.State
		sequences, archived = s.Sequences, s.Archived
		if q.Message != "" {
			seen, has := s.State.Seen(q.Message)
			if !has {
				return session.Refuse(session.UnknownSession, "the session has no message %.36q", q.Message)
			}
			q.Since, q.Limit = seen.Sequence, 1
		}
		return nil
	}
	err := x.Readable(ctx, reader, q.Session, look)
	if errors.Is(err, transcript.ErrErased) && q.Message == "" {
		return x.o.Reader.Page(ctx, q, nil, true, archive.Opens{})
	}
	if err != nil {
		return api.Messages{}, err
	}
	unsealed, err := x.o.Unsealed(ctx, &state, opens.Agent)
	if err != nil {
		return api.Messages{}, err
	}
	return x.o.Reader.Page(ctx, q, sequences, archived, archive.Opens{Of: opens.Opens, Unsealed: unsealed})
}

// InboxMessages answers inbox.messages.
func (x *Reads) InboxMessages(ctx context.Context, c api.Caller, q api.ListInbox) (api.InboxPage, error) {
	page := api.InboxPage{Messages: []api.InboxMessage{}}
	switch {
	case c.Operator:
		return page, session.Refuse(session.Unauthorized, "an operator has no inbox")
	case q.Since == nil:
		end, err := x.o.Store.End(ctx, api.InboxStream, api.InboxOf(c.Agent))
		page.Cursor = end + 1
		return page, err
	}
	page.Cursor = *q.Since
	size := 0
	err := x.o.Store.Read(ctx, api.InboxStream, api.InboxOf(c.Agent), page.Cursor, func(m store.Message) error {
		if len(page.Messages) == api.PageSize(q.Limit) || size+len(m.Data) > api.MaxPageBytes && size > 0 {
			page.More = true
			return store.ErrEnough
		}
		parts, err := archive.EntryOf(m).Parts()
		if err != nil {
			return err
		}
		page.Messages = append(page.Messages, api.InboxMessage{Cursor: m.Sequence, Envelope: m.Data, Sealed: parts})
		page.Cursor = m.Sequence + 1
		size += len(m.Data)
		return nil
	})
	if err != nil || len(page.Messages) > 0 {
		return page, err
	}
	end, err := x.o.Store.End(ctx, api.InboxStream, api.InboxOf(c.Agent))
	page.Cursor = min(page.Cursor, end+1) // one of a store before it was restored may be beyond the end
	return page, err
}
