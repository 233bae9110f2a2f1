package api

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/session"
)

// A part is a list of a view. A view that is too large for one message has some of each part, and
// each can be read page by page.
type part struct {
	name  string
	clear func(*SessionView)
	size  func(v *SessionView, most int) int                                  // of the list; it stops above most
	trim  func(to, from *SessionView) (omitted int)                           // copies what partBytes hold
	page  func(to, from *SessionView, start, limit int) (next int, more bool) // copies a page
}

// Bytes of a view that is too large for one message.
const (
	partBytes  = 64 << 10  // of each part
	entryBytes = 4 << 10   // of an entry of a part
	restBytes  = 256 << 10 // of all that is no part
)

// parts are in the order in which a view has them. Of participants and deadlines the first
// are kept, of the rest the newest.
var parts = []part{
	partOf("participants", false, func(v *SessionView) *[]PartyView { return &v.Participants }),
	partOf("proposals", true, func(v *SessionView) *[]OfferView { return &v.Proposals }),
	partOf("commitments", true, func(v *SessionView) *[]OfferView { return &v.Commitments }),
	partOf("delegations", true, func(v *SessionView) *[]GrantView { return &v.Delegations }),
	partOf("authorities", true, func(v *SessionView) *[]AuthorityView { return &v.Authorities }),
	partOf("obligations", false, func(v *SessionView) *[]ObligationView { return &v.Owed }),
	partOf("disputes", true, func(v *SessionView) *[]DisputeView { return &v.Disputes }),
	partOf("deadlines", false, func(v *SessionView) *[]DeadlineView { return &v.Deadlines }),
}

func partOf[E any](name string, newest bool, of func(*SessionView) *[]E) part {
	return part{
		name:  name,
		clear: func(v *SessionView) { *of(v) = nil },
		size: func(v *SessionView, most int) (n int) {
			for i := range *of(v) {
				if n += fit.Size((*of(v))[i]) + 1; n > most {
					break
				}
			}
			return n
		},
		trim: func(to, from *SessionView) (omitted int) {
			all := slices.Clone(*of(from))
			if newest {
				slices.Reverse(all)
			}
			kept, size := 0, 0
			for i := range all {
				fit.To(&all[i], entryBytes)
				if size += fit.Size(all[i]) + 1; size > partBytes {
					break
				}
				kept++
			}
			omitted, all = len(all)-kept, all[:kept]
			if newest {
				slices.Reverse(all)
			}
			*of(to) = all
			return omitted
		},
		page: func(to, from *SessionView, start, limit int) (next int, more bool) {
			page, all := NewPage[E](limit), *of(from)
			for next = min(start, len(all)); next < len(all); next++ {
				entry := all[next]
				fit.To(&entry, MaxPageBytes)
				if more = !page.Add(entry, fit.Size(entry)); more {
					break
				}
			}
			*of(to) = page.Items
			return next, more
		},
	}
}

// PartNames are the parts of a view that can be asked for.
func PartNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// ViewPage answers session.get: the whole view if one message holds it, else a view with some of
// each part, or a page of the part that is asked for. What is sealed is there for who opens it.
func ViewPage(s *session.State, at time.Time, q GetSession, opens Opens, unsealed Unsealed) (SessionView, error) {
	if q.Part == "" && q.Cursor != "" {
		return SessionView{}, malformedRequest("/cursor", "a cursor goes with a part: "+strings.Join(PartNames(), ", "))
	}
	v := ViewSession(s, at)
	v.hide(s, opens, unsealed)
	if q.Part == "" {
		v.bound()
		return v, nil
	}
	i := slices.IndexFunc(parts, func(p part) bool { return p.name == q.Part })
	if i < 0 {
		return SessionView{}, malformedRequest("/part", "part is one of "+strings.Join(PartNames(), ", "))
	}
	start := 0
	if q.Cursor != "" {
		var err error
		if start, err = strconv.Atoi(q.Cursor); err != nil || start < 0 {
			return SessionView{}, malformedRequest("/cursor", "cursor is next of the page before")
		}
	}
	page := SessionView{Session: v.Session, State: v.State, Mode: v.Mode, Created: v.Created, Updated: v.Updated, Head: v.Head}
	if next, more := parts[i].page(&page, &v, start, q.Limit); more {
		page.Next = strconv.Itoa(next)
	}
	return page, nil
}

func malformedRequest(path, why string) error {
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}

// bound makes a view fit one message. One that fits stays as it is.
func (v *SessionView) bound() {
	rest := *v
	for _, p := range parts {
		p.clear(&rest)
	}
	size := fit.Size(rest)
	for _, p := range parts {
		if size <= MaxPageBytes {
			size += p.size(v, MaxPageBytes-size)
		}
	}
	if size <= MaxPageBytes {
		return
	}
	fit.To(&rest, restBytes)
	omitted := map[string]int{}
	for _, p := range parts {
		if n := p.trim(&rest, v); n > 0 {
			omitted[p.name] = n
		}
	}
	if rest.Truncated = true; len(omitted) > 0 {
		rest.Omitted = omitted
	}
	*v = rest
}
