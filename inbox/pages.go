package inbox

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

//go:embed templates/*.html
var templates embed.FS

func (i *Inbox) openPages() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset": i.assets.at, "iso": iso, "moment": moment, "called": i.called, "path": pathOf, "org": organisation, "clean": clean, "line": oneLine,
		"money": money, "link": link, "plural": plural, "sentence": sentence, "letters": letters, "lacks": lacks,
		"left": func(due, now time.Time) string { return span(due.Sub(now)) },
		"ago":  func(at, now time.Time) string { return age(now.Sub(at)) },
	}).ParseFS(templates, "templates/*.html"))
}

// A page is the data of every page.
type page struct {
	Base  string // relative URL of the inbox, for links
	Title string
	Dev   bool
	Key   performatives.Key // of the broker, named in decisions
	Me    *person
	Now   time.Time
	At    string // which page it is

	Cursor string // where live updates start

	Queue    *queue
	Item     *item
	Sessions *sessions
	Agents   *agents
	Session  *sessionView
	Checks   *checks
	Check    *check
	Insights *insights
	Settings *settings
	Trouble  string
	Humans   []api.Card // under --dev, to choose from
}

func (i *Inbox) page(r *http.Request, who *person, at, title string) *page {
	p := &page{
		Base: strings.Repeat("../", max(0, strings.Count(r.URL.Path, "/")-1)), Title: title, Dev: i.Dev, Key: i.Key, Me: who, Now: i.Now(), At: at,
	}
	if at == "queue" || at == "checks" {
		if at, err := i.cursor(r.Context(), who); err == nil { // else the browser reloads everything when it connects
			p.Cursor = at.String()
		}
	}
	return p
}

// show renders a template completely before it writes, and escapes what is invisible
// wherever it stands: in text, attributes and the values of forms.
func (i *Inbox) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var out bytes.Buffer
	if err := i.pages.ExecuteTemplate(&out, name, data); err != nil {
		i.Log.Error("inbox page", zap.String("page", name), zap.Error(err))
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, status, []byte(clean(out.String())))
}

// trouble shows an error as a page, or as a part.
func (i *Inbox) trouble(w http.ResponseWriter, r *http.Request, who *person, err error) {
	status, words := http.StatusServiceUnavailable, "An internal error occurred. Try again."
	var refusal *session.Refusal
	if errors.As(err, &refusal) {
		status, words = refusal.Code.Status(), refusal.Message
	} else {
		i.Log.Warn("inbox", zap.String("path", r.URL.Path), zap.Error(err))
	}
	p := i.page(r, who, "", "Not available")
	p.Trouble = words
	if strings.HasPrefix(r.URL.Path, "/part/") {
		i.show(w, r, status, "trouble", p)
		return
	}
	i.show(w, r, status, "page", p)
}

// A load reads what a page or a part shows.
type load[T any] func(*http.Request, *person) (T, error)

// whole serves a page. put puts what was loaded into it.
func whole[T any](i *Inbox, at string, load load[T], put func(*page, T)) func(http.ResponseWriter, *http.Request, *person) {
	return func(w http.ResponseWriter, r *http.Request, who *person) {
		p := i.page(r, who, at, "") // first: live updates start before what is loaded
		loaded, err := load(r, who)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		put(p, loaded)
		i.show(w, r, http.StatusOK, "page", p)
	}
}

// part serves a part of a page, for its scripts.
func part[T any](i *Inbox, template string, load load[T]) func(http.ResponseWriter, *http.Request, *person) {
	return func(w http.ResponseWriter, r *http.Request, who *person) {
		loaded, err := load(r, who)
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		i.show(w, r, http.StatusOK, template, loaded)
	}
}

func (i *Inbox) itemPage(w http.ResponseWriter, r *http.Request, who *person) {
	p := i.page(r, who, "queue", "")
	it, err := i.item(r, who)
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	p.Item, p.Title = it, it.Title
	if p.Queue, err = i.queue(r, who, r.PathValue("id")); err != nil {
		i.trouble(w, r, who, err)
		return
	}
	i.show(w, r, http.StatusOK, "page", p)
}

func (i *Inbox) loginPage(w http.ResponseWriter, r *http.Request) {
	p := i.page(r, nil, "login", "Sign in")
	if i.Dev {
		humans, err := i.Humans(r.Context())
		if err != nil {
			i.trouble(w, r, nil, err)
			return
		}
		p.Humans = humans
	}
	i.show(w, r, http.StatusOK, "page", p)
}
