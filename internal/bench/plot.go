package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Plot draws throughput and latency against sessions at a time, as SVG: one row
// for each fsync setting. Both axes are logarithmic.
func (r Report) Plot() []byte {
	var syncs []string
	for _, l := range r.Levels {
		if !slices.Contains(syncs, l.Sync) {
			syncs = append(syncs, l.Sync)
		}
	}
	p := &plot{}
	width, height := 3*(panelWidth+gap)+gap, len(syncs)*(panelHeight+gap+heading)+gap+legend
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height)
	p.add(`<style>svg{background:#fff;color:#222}.grid{stroke:#ddd}.parley{stroke:#0b62a4;fill:#0b62a4}.raw{stroke:#888;fill:#888}path{fill:none!important;stroke-width:2}.p99{stroke-dasharray:5 4}text{fill:#222;stroke:none}</style>`)
	for row, sync := range syncs {
		var levels []Level
		for _, l := range r.Levels {
			if l.Sync == sync {
				levels = append(levels, l)
			}
		}
		slices.SortFunc(levels, func(a, b Level) int { return a.Sessions - b.Sessions })
		top := gap + heading + row*(panelHeight+gap+heading)
		for column, panel := range panels {
			panel.draw(p, levels, gap+column*(panelWidth+gap), top, sync)
		}
	}
	for i, c := range []struct{ class, text string }{
		{"parley", "parley"}, {"raw", "raw JetStream, nothing validated"}, {"parley p99", "parley, p99"}, {"raw p99", "raw, p99"},
	} {
		x := gap + i*260
		p.add(`<path class=%q d="M%d %dh30"/><text x="%d" y="%d">%s</text>`, c.class, x, height-gap/2-4, x+36, height-gap/2, c.text)
	}
	p.add("</svg>")
	return []byte(p.text.String())
}

// Sizes in the units of the drawing.
const (
	panelWidth, panelHeight = 300, 220
	gap, heading, legend    = 56, 16, 20
)

type plot struct{ text strings.Builder }

func (p *plot) add(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// A panel draws one or two figures of both targets.
type panel struct {
	title string
	lines []line
}

type line struct {
	class string
	of    func(Level) float64
}

var panels = []panel{
	{"acts/s", []line{
		{"raw", func(l Level) float64 { return l.Raw.PerSecond }},
		{"parley", func(l Level) float64 { return l.Parley.PerSecond }},
	}},
	{"submit → accepted, ms", []line{
		{"raw", func(l Level) float64 { return l.Raw.Accepted.P50 / 1000 }},
		{"raw p99", func(l Level) float64 { return l.Raw.Accepted.P99 / 1000 }},
		{"parley", func(l Level) float64 { return l.Parley.Accepted.P50 / 1000 }},
		{"parley p99", func(l Level) float64 { return l.Parley.Accepted.P99 / 1000 }},
	}},
	{"submit → received, ms", []line{
		{"raw", func(l Level) float64 { return l.Raw.Received.P50 / 1000 }},
		{"raw p99", func(l Level) float64 { return l.Raw.Received.P99 / 1000 }},
		{"parley", func(l Level) float64 { return l.Parley.Received.P50 / 1000 }},
		{"parley p99", func(l Level) float64 { return l.Parley.Received.P99 / 1000 }},
	}},
}

func (n panel) draw(p *plot, levels []Level, left, top int, sync string) {
	low, high := math.Inf(1), 0.0
	for _, l := range levels {
		for _, line := range n.lines {
			if v := line.of(l); v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high == 0 {
		return
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high*1.0001)))
	y := func(v float64) float64 {
		return float64(top) + panelHeight*(1-math.Log(v/low)/math.Log(high/low))
	}
	first, last := float64(levels[0].Sessions), float64(levels[len(levels)-1].Sessions)
	x := func(sessions int) float64 {
		if first == last {
			return float64(left) + panelWidth/2
		}
		return float64(left) + panelWidth*math.Log(float64(sessions)/first)/math.Log(last/first)
	}
	p.add(`<text x="%d" y="%d" font-weight="bold">%s, --sync %s</text>`, left, top-10, n.title, sync)
	for power := math.Log10(low); power <= math.Log10(high)+.5; power++ {
		v := math.Pow(10, math.Round(power))
		p.add(`<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`, left, y(v), panelWidth, left-6, y(v)+4, v)
	}
	for _, l := range levels {
		p.add(`<path class="grid" d="M%.1f %dv%d"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(l.Sessions), top, panelHeight, x(l.Sessions), top+panelHeight+16, l.Sessions)
	}
	for _, line := range n.lines {
		var path strings.Builder
		for i, l := range levels {
			command := 'L'
			if i == 0 {
				command = 'M'
			}
			at := y(line.of(l))
			fmt.Fprintf(&path, "%c%.1f %.1f", command, x(l.Sessions), at)
			p.add(`<circle class=%q cx="%.1f" cy="%.1f" r="2.5"><title>%d sessions at a time: %.3g</title></circle>`, line.class, x(l.Sessions), at, l.Sessions, line.of(l))
		}
		p.add(`<path class=%q d=%q/>`, line.class, path.String())
	}
}
