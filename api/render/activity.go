package render

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
)

// Rate writes a rate, or a number of what there is.
func Rate(v float64) string {
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Milliseconds writes seconds so.
func Milliseconds(seconds float64) string { return strconv.FormatFloat(seconds*1000, 'f', 2, 64) }

// Figures are the parts of an activity that are a line each.
func Figures(a api.Activity) (lines [][2]string) {
	for _, part := range []struct {
		title  string
		values map[string]float64
	}{
		{"refusals/s", a.Refusals}, {"limits hit/s", a.LimitsHit}, {"sessions", a.Sessions}, {"escalations", a.Escalations},
		{"obligations", a.Obligations}, {"queues", a.Queues}, {"lag, s", a.Lag}, {"stuck sessions", map[string]float64{"": a.Stuck}},
		{"NATS servers", a.Servers},
	} {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(part.values)) {
			if v := part.values[name]; v != 0 {
				all = append(all, strings.TrimSpace(name+" "+Rate(v)))
			}
		}
		lines = append(lines, [2]string{part.title, cmp.Or(strings.Join(all, "  "), "none")})
	}
	return lines
}
