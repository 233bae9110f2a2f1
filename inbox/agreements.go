package inbox

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
)

// agreementsPageSize is the number of agreements on a page.
const agreementsPageSize = 100

// agreements is a page of what the reader's deals agreed on.
type agreements struct {
	Rows []agreedRow
	More string // link to the next page
}

// An agreedRow is one agreement.
type agreedRow struct {
	api.AgreementRow
	Title   string
	Amount  string
	Between []string // the parties, who made the offer first
	At      time.Time
}

func (i *Inbox) agreements(r *http.Request, who *person) (*agreements, error) {
	page, err := ask(r.Context(), i, who.Agent, api.AgreementList, api.ListAgreements{Limit: agreementsPageSize, Cursor: r.URL.Query().Get("cursor")})
	if err != nil {
		return nil, err
	}
	list := &agreements{}
	for _, a := range page.Agreements {
		row := agreedRow{AgreementRow: a, Title: cmp.Or(oneLine(a.Subject), "Agreement"), At: stamp(a.AcceptedAt)}
		if a.Amount != nil {
			row.Amount = render.Money(a.Amount.Value, a.Amount.Currency)
		}
		for _, p := range a.Parties {
			name := oneLine(string(p))
			if agent, err := p.Agent(); err == nil {
				name = i.called(agent) + " " + organisation(agent)
			}
			row.Between = append(row.Between, name)
		}
		list.Rows = append(list.Rows, row)
	}
	if page.Next != "" {
		list.More = link("agreements", url.Values{"cursor": {page.Next}}.Encode())
	}
	return list, nil
}
