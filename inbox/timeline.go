package inbox

import (
	"cmp"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A times is when a deal began, paused and ends, as a picture and as a list.
type times struct {
	Rows   []moment
	Bars   []stretch // the pauses
	Ticks  []stretch // the deadlines
	Now    int       // where the past ends, in units of the picture
	Desc   string
	Begins time.Time
	Ends   time.Time // of the scale
}

// A moment is one line of a timeline.
type moment struct {
	Kind  string // "", pause, now or due
	At    time.Time
	Until time.Time // of a pause that is over
	Text  string
	Ref   string
	Held  bool // a deadline that moves on as a human decides
}

// A stretch is a time on the picture.
type stretch struct {
	X, Width int
	Title    string
}

// The picture of a timeline, in units of its view box: what is past has two thirds of it.
const (
	timesLeft  = 8
	timesRight = 312
	timesNow   = 208
)

// timeline lists when a deal began, when it paused, and what passes next.
func timeline(v *api.SessionView, status string, now time.Time) *times {
	t := &times{Begins: stamp(v.Created), Ends: now, Now: timesNow}
	t.Rows = append(t.Rows, moment{At: t.Begins, Text: "Opened"})
	over := v.State.Over()
	if over {
		t.Ends, t.Now = stamp(v.Updated), timesRight
	}
	for _, p := range v.Pauses {
		row := moment{Kind: "pause", At: stamp(p.From), Until: stamp(p.Until), Text: "Paused: a human decides"}
		until := cmp.Or(p.Until, api.Timestamp(now))
		if !row.Until.IsZero() {
			row.Text = "Paused for " + span(row.Until.Sub(row.At)) + " until a human decided"
		}
		t.Rows = append(t.Rows, row)
		from, to := t.at(row.At, t.Begins, now, timesLeft, t.Now, over), t.at(stamp(until), t.Begins, now, timesLeft, t.Now, over)
		t.Bars = append(t.Bars, stretch{from, max(3, to-from), row.Text})
	}
	if over {
		t.Rows = append(t.Rows, moment{At: t.Ends, Text: status})
	} else {
		t.Rows = append(t.Rows, moment{Kind: "now", At: now, Text: "Now: " + status})
		t.due(v, now)
	}
	t.Desc = plural(len(v.Pauses), "pause", "pauses") + ", " + plural(len(t.Ticks), "deadline", "deadlines") + " to come"
	return t
}

// due adds the deadlines.
func (t *times) due(v *api.SessionView, now time.Time) {
	last := now
	for _, d := range v.Deadlines {
		if at := stamp(d.At); at.After(last) {
			last = at
		}
	}
	for _, d := range v.Deadlines {
		row := moment{Kind: "due", At: stamp(d.At), Text: deadline(d.Code), Ref: d.Ref, Held: d.Paused}
		if d.Code == session.EscalationExpired {
			row.Ref = "" // it is the only one
		}
		t.Rows = append(t.Rows, row)
		t.Ticks = append(t.Ticks, stretch{X: t.at(row.At, now, last, timesNow, timesRight, false), Title: row.Text + ", " + render.Moment(row.At)})
	}
	t.Ends = last
}

// at is where a time stands between two others, from left to right. Of what is over the scale ends at its end.
func (t *times) at(when, from, until time.Time, left, right int, over bool) int {
	if over {
		until = t.Ends
	}
	whole := until.Sub(from)
	if whole <= 0 {
		return left
	}
	share := min(1, max(0, float64(when.Sub(from))/float64(whole)))
	return left + int(share*float64(right-left))
}

// deadlines are what passes at a deadline, in words.
var deadlines = map[string]string{
	session.SessionTimeout: "The session ends", session.InvitationTimeout: "The invitation ends", session.EscalationExpired: "The escalation ends",
	session.ProposalExpired: "The offer expires", session.ResponseTimeout: "The answer is late", session.ParkedTurn: "The turn passes to a standby",
}

func deadline(code string) string { return cmp.Or(deadlines[code], oneLine(code)) }

// A graph is delegations as a picture: who gave authority to whom.
type graph struct {
	Nodes  []node
	Height int
	Desc   string
	List   []api.GrantView
	More   int // that the picture leaves out
}

// A node is an agent in the picture. Its path comes from whoever delegated to it.
type node struct {
	X, Y  int
	Path  string // "" of a principal
	Name  string
	Full  string
	Under string // the authority and the status
	Holds bool   // the delegation is in force
}

// The measures of the picture, in units of its view box, which is as wide as a phone shows it.
const (
	graphRow    = 42
	graphIndent = 20
	graphDepth  = 5 // from which on nodes stand below each other
	mostNodes   = 40
	graphWidth  = 300
	graphLetter = 8 // the width of one
)

// graphOf draws delegations; nil for none. called is the name of a principal.
func graphOf(all []api.GrantView, called func(performatives.Agent) string) *graph {
	if len(all) == 0 {
		return nil
	}
	g := &graph{List: all}
	used := make([]bool, len(all))
	var below func(from performatives.Agent, depth int, parent node)
	below = func(from performatives.Agent, depth int, parent node) {
		for n, v := range all {
			if used[n] || v.From != from {
				continue
			}
			used[n] = true
			child, drawn := g.add(called(v.To), depth, &parent)
			if !drawn {
				g.More++
			} else {
				last := &g.Nodes[len(g.Nodes)-1]
				last.Full, last.Under, last.Holds = string(v.To), v.Authority+", "+v.Status, v.Status == delegation.Active.String()
			}
			below(v.To, depth+1, child)
		}
	}
	given := map[performatives.Agent]bool{}
	for _, v := range all {
		given[v.To] = true
	}
	for _, roots := range []bool{true, false} { // then what is left of a circle
		for n, v := range all {
			if used[n] || roots && given[v.From] {
				continue
			}
			root, drawn := g.add(called(v.From), 0, nil)
			if drawn {
				last := &g.Nodes[len(g.Nodes)-1]
				last.Full, last.Under, last.Holds = string(v.From), "", true
			}
			below(v.From, 1, root)
		}
	}
	g.Height = len(g.Nodes) * graphRow
	g.Desc = plural(len(all), "delegation", "delegations") + ". The list below names each."
	return g
}

// add adds a node below the last, with a path from its parent.
func (g *graph) add(name string, depth int, parent *node) (n node, drawn bool) {
	if len(g.Nodes) == mostNodes {
		return n, false
	}
	n = node{X: 8 + min(depth, graphDepth)*graphIndent, Y: len(g.Nodes)*graphRow + 14}
	n.Name = clipped(name, (graphWidth-n.X-12)/graphLetter)
	if parent != nil {
		n.Path = "M" + strconv.Itoa(parent.X) + " " + strconv.Itoa(parent.Y) + "V" + strconv.Itoa(n.Y) + "H" + strconv.Itoa(n.X)
	}
	g.Nodes = append(g.Nodes, n)
	return n, true
}
