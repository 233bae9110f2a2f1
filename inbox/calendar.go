package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// feedRows bounds the events of a feed. What is overdue longest, and due first, comes first.
const feedRows = 1_000

// feedsAtOnce are the feeds that are read at once. Their humans take turns, and wait no longer than feedFor.
const (
	feedsAtOnce = 4
	feedFor     = 10 * time.Second
)

// A calendar program reads a feed by a URL with a token, without signing in.
func (i *Inbox) feed(w http.ResponseWriter, r *http.Request) {
	token, named := strings.CutSuffix(r.PathValue("file"), ".ics")
	if i.failures.tooMany(i.From(r)) {
		i.noFeed(w, tooManyFailures("your address"))
		return
	}
	if !named {
		token = ""
	}
	whose, err := i.Service.Custody.AdmitFeed(r.Context(), token)
	if isCode(err, session.Unauthorized) {
		i.failures.add(i.From(r))
		http.Error(w, "there is no such feed", http.StatusNotFound)
		return
	}
	if err == nil {
		err = i.Service.As(whose).Metered(r.Context())
	}
	var feed []byte
	if err == nil {
		feed, err = i.made(r.Context(), whose)
	}
	if err != nil {
		i.noFeed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/calendar; charset=utf-8")
	h.Set("Content-Disposition", `inline; filename="due.ics"`)
	send(w, r, http.StatusOK, feed)
}

// made is a human's feed, once it is its turn.
func (i *Inbox) made(ctx context.Context, a performatives.Agent) ([]byte, error) {
	waits, cancel := context.WithTimeout(ctx, feedFor)
	defer cancel()
	leave, came := i.feeding.Take(waits, a)
	if !came {
		return nil, session.Refuse(session.Unavailable, "other feeds are being read; try again")
	}
	defer leave()
	rows, _, err := i.allDue(ctx, a, "", "")
	if err != nil {
		return nil, err
	}
	return i.calendar(rows), nil
}

// noFeed answers a program that gets no feed. The URL has a secret, so it is logged nowhere.
func (i *Inbox) noFeed(w http.ResponseWriter, err error) {
	status, words := http.StatusServiceUnavailable, "an internal error occurred; try again"
	if refusal, is := refusalOf(err); is {
		status, words = refusal.Code.Status(), refusal.Message
	} else {
		i.Log.Warn("inbox feed", zap.Error(err))
	}
	w.Header().Set("Retry-After", "60")
	http.Error(w, clean(words), status)
}

// calendar is what is due as an iCalendar object (RFC 5545). What has no date is no event.
func (i *Inbox) calendar(rows []dueRow) []byte {
	now := i.Now()
	c := new(ical)
	c.line("BEGIN", "VCALENDAR")
	c.line("VERSION", "2.0")
	c.line("PRODID", "-//parley//due//EN")
	c.line("CALSCALE", "GREGORIAN")
	c.line("METHOD", "PUBLISH")
	c.text("NAME", "Due in deals")
	c.text("X-WR-CALNAME", "Due in deals")
	c.line("REFRESH-INTERVAL;VALUE=DURATION", "PT1H")
	c.line("X-PUBLISHED-TTL", "PT1H")
	n := 0
	for _, row := range rows {
		if row.Until.IsZero() {
			continue
		}
		if n++; n > feedRows {
			break
		}
		i.event(c, &row, now)
	}
	c.line("END", "VCALENDAR")
	return []byte(c.String())
}

// event adds what is due. Its UID is that of the obligation, whatever becomes of it.
func (i *Inbox) event(c *ical, row *dueRow, now time.Time) {
	sum := sha256.Sum256([]byte(string(row.Session) + "\x00" + row.Commitment + "\x00" + row.ID))
	title := oneLine(row.Action)
	if row.overdue(now) {
		title = "Overdue: " + title
	}
	about := []string{"Status: " + row.Standing, "Deal: " + row.Title, "Obligation: " + oneLine(row.Commitment+"/"+row.ID) + " of " + i.called(row.Party) + ", " + organisation(row.Party)}
	if row.Delivery != nil {
		about = append(about, "Delivered: to be accepted or rejected by "+i.names(row.For))
	}
	if row.Much != "" {
		about = append(about, "Still due: "+row.Much)
	}
	if worth := row.Worth; worth != "" {
		about = append(about, "Worth: "+worth)
	}
	about = append(about, "Session: "+string(row.Session))
	c.line("BEGIN", "VEVENT")
	c.line("UID", hex.EncodeToString(sum[:16])+"@parley")
	c.line("DTSTAMP", instant(now))
	c.line("DTSTART", instant(row.Until))
	c.text("SUMMARY", title)
	c.text("DESCRIPTION", strings.Join(about, "\n"))
	c.line("CLASS", "PRIVATE")
	c.line("TRANSP", "TRANSPARENT")
	c.line("END", "VEVENT")
}

func (i *Inbox) names(all []performatives.Agent) string {
	names := make([]string, len(all))
	for n, a := range all {
		names[n] = i.called(a) + " of " + organisation(a)
	}
	return strings.Join(names, ", ")
}

// instant is a time in UTC as iCalendar has it.
func instant(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// An ical is an iCalendar object that is being written.
type ical struct{ strings.Builder }

// foldAt is the most octets of a line (RFC 5545 section 3.1).
const foldAt = 75

// line adds a content line, and folds it between characters.
func (c *ical) line(name, value string) {
	rest, room := name+":"+value, foldAt
	for len(rest) > room {
		at := room
		for !utf8.RuneStart(rest[at]) {
			at--
		}
		c.WriteString(rest[:at] + "\r\n ")
		rest, room = rest[at:], foldAt-1
	}
	c.WriteString(rest + "\r\n")
}

var escaped = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`)

// text adds a line whose value is text (RFC 5545 section 3.3.11).
func (c *ical) text(name, value string) {
	c.line(name, escaped.Replace(clean(strings.ToValidUTF8(value, "�"))))
}

// ---- a human's own feeds ----

// calendarProof is the purpose of the proof that makes a feed: a cookie alone cannot make what outlives it.
const calendarProof = "parley inbox: calendar feed"

// addFeed makes a feed. Its token is shown once.
func (i *Inbox) addFeed(w http.ResponseWriter, r *http.Request, who *person) {
	var q proof
	if !i.read(w, r, &q) {
		return
	}
	if err := i.proves(r, who, q, calendarProof); err != nil {
		i.fails(w, r, "", err)
		return
	}
	made, err := i.Service.Custody.AddFeed(r.Context(), who.Agent)
	i.answer(w, r, map[string]string{"path": "calendar/" + made.Token + ".ics"}, err)
}

func (i *Inbox) removeFeed(w http.ResponseWriter, r *http.Request, who *person) {
	var q api.TokenRef
	if i.read(w, r, &q) {
		i.answer(w, r, map[string]string{"id": q.ID}, i.Service.Custody.RemoveFeed(r.Context(), who.Agent, q.ID))
	}
}
