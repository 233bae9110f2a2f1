package inbox

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// transcript sends the entries as JSON lines, what parley session verify reads.
func (i *Inbox) transcript(w http.ResponseWriter, r *http.Request, who *person) {
	id := performatives.SessionID(r.PathValue("id"))
	var lines []byte
	err := i.entriesOf(r.Context(), who, id, func(page api.Messages) bool {
		for _, entry := range page.Messages {
			lines = append(append(lines, entry...), '\n')
		}
		return false
	})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	download(w, r, string(id)+".jsonl", "application/jsonl", lines)
}

// agreement sends the document of an agreement, what parley agreement verify reads.
func (i *Inbox) agreement(w http.ResponseWriter, r *http.Request, who *person) {
	document, err := ask(r.Context(), i, who.Agent, api.AgreementGet, api.GetAgreement{Session: performatives.SessionID(r.PathValue("id"))})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	i.document(w, r, who, "agreement-"+r.PathValue("id")+".json", document)
}

// evidence sends what parley evidence verify reads. Where it does not fit one reply, its transcript is read
// by pages.
func (i *Inbox) evidence(w http.ResponseWriter, r *http.Request, who *person) {
	q := api.GetEvidence{Session: performatives.SessionID(r.PathValue("id"))}
	bundle, err := ask(r.Context(), i, who.Agent, api.SessionEvidence, q)
	if isCode(err, session.TooLarge) {
		q.Bare = true
		if bundle, err = ask(r.Context(), i, who.Agent, api.SessionEvidence, q); err == nil {
			err = i.entriesOf(r.Context(), who, q.Session, func(page api.Messages) bool { return bundle.Take(page.Messages, page.Sealed) })
		}
	}
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	i.document(w, r, who, "evidence-"+r.PathValue("id")+".json", bundle)
}

func (i *Inbox) document(w http.ResponseWriter, r *http.Request, who *person, name string, document any) {
	data, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	download(w, r, name, "application/json", data)
}

// entriesOf reads a transcript by pages, until take returns true.
func (i *Inbox) entriesOf(ctx context.Context, who *person, id performatives.SessionID, take func(api.Messages) bool) error {
	for at := uint64(0); ; {
		page, err := ask(ctx, i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: at, Limit: api.MaxPage})
		if err != nil || take(page) || page.Next == nil {
			return err
		}
		at = *page.Next
	}
}

// maxExported are the rows of an export: what the broker lists of ended items.
const maxExported = 10_000

// A sheet is a table in CSV (RFC 4180).
type sheet struct {
	out  bytes.Buffer
	rows *csv.Writer
	n    int // rows below the names
}

func newSheet(names ...string) *sheet {
	s := new(sheet)
	s.rows = csv.NewWriter(&s.out)
	s.rows.UseCRLF = true
	s.rows.Write(names) //nolint:errcheck // to memory
	return s
}

func (s *sheet) add(row ...string) {
	for n := range row {
		row[n] = cell(row[n])
	}
	s.rows.Write(row) //nolint:errcheck // to memory
	s.n++
}

func (s *sheet) full() bool { return s.n >= maxExported }

func (s *sheet) send(w http.ResponseWriter, r *http.Request, name string) {
	s.rows.Flush()
	download(w, r, name, "text/csv; charset=utf-8; header=present", s.out.Bytes())
}

// cell makes text what a spreadsheet shows and does not compute.
func cell(text string) string {
	text = oneLine(text)
	if strings.IndexAny(text, "=+-@＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

func uris(all []performatives.Agent) string {
	texts := make([]string, len(all))
	for n, a := range all {
		texts[n] = string(a)
	}
	return strings.Join(texts, " ")
}

func download(w http.ResponseWriter, r *http.Request, name, kind string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	send(w, r, http.StatusOK, data)
}
