package inbox

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
)

// insights is a page of charts on how sessions went that ended in a time.
type insights struct {
	api.Insights
	Periods []period
	Modes   []modeRow
	Mode    string // the only one that counts; "" is any
	Any     string // the link to all modes
	Kinds   []kindTable
	Charts  []chart
	Facts   []fact
	Since   time.Time
	Until   time.Time
}

// A period is a link to the same page of another time.
type period struct {
	Label, Link string
	Now         bool
}

// A fact is a figure that no chart shows.
type fact struct{ Name, Value string }

// A kindTable says how sessions of each kind ended.
type kindTable struct {
	ID, Title, Name string
	Rows            []kindRow
}

type kindRow struct {
	Name string
	api.Ends
}

// kinds are those of which there is something to see: types of match, and who negotiated.
func kinds(f *api.Insights) (all []kindTable) {
	types, scenarios := kindTable{ID: "types", Title: "By type", Name: "Type"}, kindTable{ID: "scenarios", Title: "By who negotiated", Name: "Agents"}
	for _, t := range f.Types {
		types.Rows = append(types.Rows, kindRow{t.Type, t.Ends})
	}
	for _, s := range f.Scenarios {
		scenarios.Rows = append(scenarios.Rows, kindRow{s.Scenario, s.Ends})
	}
	for _, table := range []kindTable{types, scenarios} {
		if len(table.Rows) > 0 {
			all = append(all, table)
		}
	}
	return all
}

type modeRow struct {
	api.ModeEnds
	Link string
}

// periods are what the page can show. The first one is the default.
var periods = []struct {
	name, label string
	days        int
}{{"week", "7 days", 7}, {"month", "30 days", 30}, {"quarter", "90 days", 90}, {"year", "A year", 365}}

func (i *Inbox) insights(r *http.Request, who *person) (*insights, error) {
	chosen, mode := periods[0], r.URL.Query().Get("mode")
	for _, p := range periods {
		if p.name == r.URL.Query().Get("period") {
			chosen = p
		}
	}
	until := i.Now()
	since := until.AddDate(0, 0, -chosen.days)
	found, err := ask(r.Context(), i, who.Agent, api.InsightsGet, api.GetInsights{Since: api.Timestamp(since), Mode: mode})
	if err != nil {
		return nil, err
	}
	v := &insights{Insights: found, Mode: oneLine(mode), Any: insightsLink(chosen.name, ""), Kinds: kinds(&found), Charts: charts(&found), Facts: facts(&found), Since: since, Until: until}
	for _, p := range periods {
		v.Periods = append(v.Periods, period{p.label, insightsLink(p.name, mode), p.name == chosen.name})
	}
	for _, m := range found.Modes {
		v.Modes = append(v.Modes, modeRow{m, insightsLink(chosen.name, m.Mode)})
	}
	return v, nil
}

func insightsLink(period, mode string) string {
	q := url.Values{}
	if period != periods[0].name {
		q.Set("period", period)
	}
	if mode != "" {
		q.Set("mode", mode)
	}
	if len(q) == 0 {
		return "insights"
	}
	return "insights?" + q.Encode()
}

// facts are the figures that no chart shows.
func facts(f *api.Insights) []fact {
	var all []fact
	add := func(name, value string) { all = append(all, fact{name, value}) }
	add("Sessions ended", strconv.Itoa(f.Sessions))
	add("Open now", strconv.Itoa(f.Open))
	if t := f.Agreed; t.Count > 0 {
		add("Time to agreement", fmt.Sprintf("%s in the median, at most %s in nine of ten", lasted(t.Median), lasted(t.P90)))
	}
	if t := f.Escalated.Time; t.Count > 0 {
		add("Time to decision", fmt.Sprintf("%s in the median, at most %s in nine of ten", lasted(t.Median), lasted(t.P90)))
	}
	return all
}

func lasted(ms int64) string { return span(time.Duration(ms) * time.Millisecond) }

// A chart is one row of bars, drawn and written as a table.
type chart struct {
	ID, Title, Desc string
	Names, Counts   string // what the columns of the table are
	Bars            []bar
	Width, Height   int
}

// A bar is one name and how often it counts.
type bar struct {
	Label, Short string
	Count        int
	Top, Middle  int // of the row
	Length       int
	End          int // where the bar ends
	Text         int // where the count is written
	Kind         string
}

// The measures of a chart, in units of its view box.
const (
	chartWidth = 520
	barsFrom   = 170
	longestBar = 290
	barStep    = 26
	mostBars   = 12
	mostLabel  = 22 // characters that are drawn; the table has all
)

// charts are those of which there is something to see.
func charts(f *api.Insights) []chart {
	turns := make([]api.Frequency, 0, mostBars)
	for n, t := range f.Turns {
		if n >= mostBars { // the last bar is all that took more
			turns[mostBars-1].Count += t.Sessions
			turns[mostBars-1].Name = plural(f.Turns[mostBars-1].Turns, "turn or more", "turns or more")
			continue
		}
		turns = append(turns, api.Frequency{Name: plural(t.Turns, "turn", "turns"), Count: t.Sessions})
	}
	e := f.Escalated
	var all []chart
	for _, c := range []struct {
		id, title, names, counts string
		bars                     []api.Frequency
	}{
		{"ends", "How sessions ended", "End", "Sessions", []api.Frequency{{Name: "agreed", Count: f.Ends.Agreed}, {Name: "rejected", Count: f.Ends.Rejected}, {Name: "stalled", Count: f.Ends.Stalled}, {Name: "failed", Count: f.Ends.Failed}}},
		{"turns", "Turns taken", "Turns", "Sessions", turns},
		{"terms", "Terms that were countered", "Term", "Sessions", f.Terms},
		{"objections", "Themes of objections", "Theme", "Sessions", f.Objections},
		{"rejects", "Why offers were rejected", "Code", "Sessions", f.Rejects},
		{"asked", "What was asked about", "Field", "Sessions", f.Asked},
		{"decisions", "Escalations of your organisation", "Decision", "Escalations", []api.Frequency{{Name: "approved", Count: e.Approved}, {Name: "denied", Count: e.Denied}, {Name: "modified", Count: e.Modified}, {Name: "guidance", Count: e.Guidance}, {Name: "undecided", Count: e.Expired}}},
	} {
		if drawn := draw(c.bars[:min(len(c.bars), mostBars)]); drawn != nil {
			all = append(all, chart{ID: c.id, Title: c.title, Desc: inSentence(drawn), Names: c.names, Counts: c.counts, Bars: drawn, Width: chartWidth, Height: len(drawn)*barStep + 6})
		}
	}
	return all
}

// draw measures bars, nil if all of them are empty.
func draw(counts []api.Frequency) []bar {
	most := 0
	for _, c := range counts {
		most = max(most, c.Count)
	}
	if most == 0 {
		return nil
	}
	all := make([]bar, 0, len(counts))
	for n, c := range counts {
		label := oneLine(c.Name)
		b := bar{Label: label, Short: clipped(label, mostLabel), Count: c.Count, Top: n*barStep + 6, Middle: n*barStep + 19, Length: c.Count * longestBar / most}
		if c.Count > 0 {
			b.Length = max(b.Length, 2)
		}
		b.End = barsFrom + b.Length
		b.Text = b.End + 6
		if slices.Contains([]string{"agreed", "approved", "rejected", "denied"}, c.Name) {
			b.Kind = c.Name
		}
		all = append(all, b)
	}
	return all
}

// inSentence reads the bars out.
func inSentence(bars []bar) string {
	var s string
	for n, b := range bars {
		if n > 0 {
			s += ", "
		}
		s += b.Label + " " + strconv.Itoa(b.Count)
	}
	return s
}
