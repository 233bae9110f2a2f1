package inbox

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// sessions is a page of the reader's sessions.
type sessions struct {
	Rows []sessionRow
	Next string
}

type sessionRow struct {
	api.SessionSummary
	Title string
	At    time.Time
}

func (i *Inbox) sessionsPage(w http.ResponseWriter, r *http.Request, who *person) {
	list, err := ask(r.Context(), i, who.Agent, api.SessionList, api.ListSessions{Cursor: r.URL.Query().Get("cursor")})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	p := i.page(r, who, "sessions", "Sessions")
	p.Sessions = &sessions{Next: list.Next}
	for _, s := range list.Sessions {
		row := sessionRow{SessionSummary: s, Title: oneLine(s.Purpose), At: stamp(s.Updated)}
		if row.Title == "" {
			row.Title = "Session " + string(s.Session)
		}
		p.Sessions.Rows = append(p.Sessions.Rows, row)
	}
	i.show(w, r, http.StatusOK, "page", p)
}

// A sessionView is one session.
type sessionView struct {
	api.SessionView
	Title string
	Talk  []entry
	Next  *uint64
}

// Classification is the confidentiality that the session inherits of its parties, in words.
func (v sessionView) Classification() string { return classified(v.CCC) }

// classified is a regulatory classification in words; "" for none.
func classified(ccc jsontext.Value) string {
	var inherited performatives.Regulation
	if len(ccc) == 0 || json.Unmarshal(ccc, &inherited) != nil || inherited.Classification == performatives.Unregulated {
		return ""
	}
	return strings.ReplaceAll(inherited.Classification, "_", " ")
}

func (i *Inbox) sessionPage(w http.ResponseWriter, r *http.Request, who *person) {
	id := performatives.SessionID(r.PathValue("id"))
	view, err := ask(r.Context(), i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	messages, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: since(r), Limit: api.MaxPage})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	v := &sessionView{SessionView: view, Title: oneLine(view.Purpose), Talk: i.newTeller(r.Context(), who, who.Agent.Organisation()).all(messages.Messages), Next: messages.Next}
	if v.Title == "" {
		v.Title = "Session"
	}
	p := i.page(r, who, "sessions", v.Title)
	p.Session = v
	i.show(w, r, http.StatusOK, "page", p)
}

// since returns where a page of a long conversation starts.
func since(r *http.Request) uint64 {
	n, err := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
