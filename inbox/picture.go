package inbox

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

// A picture shows one numeric term over the offers of a deal: what each side offered, and what
// the reader's side may agree to.
type picture struct {
	ID, Title, Desc string
	Points          []point
	Ours, Theirs    string // what the lines go through, "x,y x,y"
	Bounds          []line
	Decisions       []mark
	Low, High       string // the ends of the scale
}

// A point is one offer.
type point struct {
	X, Y     int
	Ours     bool
	By       performatives.Agent
	Offer    string
	Value    string
	Status   string
	Standing bool   // open or accepted
	Decided  string // what humans decided after it, before the next offer
}

// A mark is where humans decided, after an offer.
type mark struct {
	X    int
	Text string
}

// A line is a bound that a human set.
type line struct {
	Y    int
	Text string
}

// The measures of a picture, in units of its view box. A phone shows it at half of them.
const (
	pictureWidth  = 480
	pictureHeight = 200
	pictureLeft   = 16
	pictureTop    = 28
	pictureBottom = 172
	mostPictures  = 4
)

// A series is one numeric term in the offers.
type series struct {
	path   string
	values map[int]float64 // by offer
	bounds []bound
}

// A bound is a highest or lowest value that an approval allows.
type bound struct {
	value float64
	text  string
}

// pictures draws the numeric terms that changed, those that changed most often first.
func pictures(offers []api.SnapshotOffer, d *deal, us performatives.Organisation, labels map[string]api.Label) (all []picture) {
	if len(offers) == 0 {
		return nil
	}
	amount, decided := amountOf(offers[len(offers)-1].Terms), d.decided(offers)
	for _, s := range changing(offers) {
		if len(all) == mostPictures {
			break
		}
		s.bounds = boundsOf(s.path, amount != nil && amount.Path == s.path, d.Authorities, us)
		p := s.draw(offers, decided, us)
		p.ID = "term-" + strconv.Itoa(len(all))
		p.Title = cmp.Or(oneLine(labels[s.path].Title), inWords(s.path))
		all = append(all, p)
	}
	return all
}

// decided says what humans decided after each offer and before the next, as far as the conversation is shown.
func (d *deal) decided(offers []api.SnapshotOffer) []string {
	said := make([]string, len(offers))
	for _, e := range d.Conversation {
		if e.Decision == "" {
			continue
		}
		for n, o := range slices.Backward(offers) {
			at := slices.IndexFunc(d.Proposals, func(p api.OfferView) bool { return p.Proposal == o.ID })
			if at < 0 || d.Proposals[at].Sequence > e.Number {
				continue
			}
			if said[n] != "" {
				said[n] += "; "
			}
			said[n] += pathOf(e.From) + ": " + oneLine(e.Decision)
			break
		}
	}
	return said
}

// changing returns the numeric terms that at least two offers have, with different values.
func changing(offers []api.SnapshotOffer) (all []series) {
	at := map[string]int{}
	for n, o := range offers {
		for _, c := range api.Compare(o.Terms, nil, nil) {
			v, ok := figure(c.After)
			if !ok {
				continue
			}
			if _, seen := at[c.Path]; !seen {
				at[c.Path] = len(all)
				all = append(all, series{path: c.Path, values: map[int]float64{}})
			}
			all[at[c.Path]].values[n] = v
		}
	}
	moved := func(s series) (n int) {
		was, has := 0.0, false
		for i := range offers {
			if v, ok := s.values[i]; ok {
				if has && v != was {
					n++
				}
				was, has = v, true
			}
		}
		return n
	}
	all = slices.DeleteFunc(all, func(s series) bool { return moved(s) == 0 })
	slices.SortStableFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(moved(b), moved(a)), cmp.Compare(a.path, b.path))
	})
	return all
}

// figure reads a number, or a text that is a decimal.
func figure(v jsontext.Value) (n float64, ok bool) {
	text := strings.TrimSpace(string(v))
	if v.Kind() == '"' {
		if json.Unmarshal(v, &text) != nil || !isDecimal(text) {
			return 0, false
		}
	} else if v.Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0)
}

// boundsOf are the bounds on a term that people of the reader's organisation have set.
func boundsOf(path string, amount bool, allowed []api.AuthorityView, us performatives.Organisation) (all []bound) {
	for _, a := range allowed {
		if a.OnBehalfOf.Organisation() != us {
			continue
		}
		if a.MaxAmount != nil && (a.TermPath == path || a.TermPath == "" && amount) {
			all = append(all, bound{*a.MaxAmount, "at most " + render.Money(*a.MaxAmount, a.Currency)})
		}
		for _, b := range a.Bounds {
			if b.TermPath != path {
				continue
			}
			if b.Max != nil {
				all = append(all, bound{*b.Max, "at most " + render.Money(*b.Max, b.Currency)})
			}
			if b.Min != nil {
				all = append(all, bound{*b.Min, "at least " + render.Money(*b.Min, b.Currency)})
			}
		}
	}
	return all
}

func (s series) draw(offers []api.SnapshotOffer, decided []string, us performatives.Organisation) picture {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range s.values {
		low, high = min(low, v), max(high, v)
	}
	for _, b := range s.bounds {
		low, high = min(low, b.value), max(high, b.value)
	}
	y := func(v float64) int {
		if high == low {
			return (pictureTop + pictureBottom) / 2
		}
		return pictureBottom - int(math.Round((v/2-low/2)/(high/2-low/2)*(pictureBottom-pictureTop))) // halves: the difference of two may be too large
	}
	p := picture{Low: render.Figure(low), High: render.Figure(high)}
	var said []string
	ours, theirs := []string{}, []string{}
	for n, o := range offers {
		v, ok := s.values[n]
		if !ok {
			continue
		}
		at := point{
			X: pictureLeft + n*(pictureWidth-2*pictureLeft)/max(1, len(offers)-1), Y: y(v), Ours: o.By.Organisation() == us,
			By: o.By, Offer: o.ID, Value: render.Figure(v), Status: o.Status, Standing: o.Status == "open" || o.Status == "accepted", Decided: decided[n],
		}
		through := &theirs
		if at.Ours {
			through = &ours
		}
		*through = append(*through, strconv.Itoa(at.X)+","+strconv.Itoa(at.Y))
		text := at.Value
		if at.Decided != "" {
			text += " (" + at.Decided + ")"
			p.Decisions = append(p.Decisions, mark{at.X, at.Decided})
		}
		said = append(said, text)
		p.Points = append(p.Points, at)
	}
	p.Ours, p.Theirs = strings.Join(ours, " "), strings.Join(theirs, " ")
	p.Desc = strings.Join(said, ", then ")
	for _, b := range s.bounds {
		p.Bounds = append(p.Bounds, line{y(b.value), b.text})
		p.Desc += "; people allow " + b.text
	}
	return p
}
