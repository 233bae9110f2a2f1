package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
)

// Insights says in sentences how sessions went; a digest has neither modes nor turns.
func Insights(f api.Insights, digest bool) string {
	var b strings.Builder
	day := func(text string) string { return text[:min(len(text), len("2006-01-02"))] }
	ended := "sessions"
	if f.Sessions == 1 {
		ended = "session"
	}
	fmt.Fprintf(&b, "%s to %s: %d %s ended; open now: %d.\n", day(f.Since), day(f.Until), f.Sessions, ended, f.Open)
	if f.Sessions == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "%d agreed, %d rejected, %d stalled, %d failed.\n", f.Ends.Agreed, f.Ends.Rejected, f.Ends.Stalled, f.Ends.Failed)
	if digest {
		f.Modes, f.Turns = nil, nil
	}
	for _, m := range f.Modes {
		fmt.Fprintf(&b, "  %-14s %d agreed, %d rejected, %d stalled, %d failed\n", Clean(m.Mode), m.Agreed, m.Rejected, m.Stalled, m.Failed)
	}
	for _, t := range f.Types {
		fmt.Fprintf(&b, "Of %s: %d accepted, %d rejected, %d stalled.\n", Clean(t.Type), t.Agreed, t.Rejected, t.Stalled)
	}
	for _, s := range f.Scenarios {
		fmt.Fprintf(&b, "Between %s: %d accepted, %d rejected, %d stalled.\n", Clean(s.Scenario), s.Agreed, s.Rejected, s.Stalled)
	}
	if f.Agreed.Count > 0 {
		fmt.Fprintf(&b, "Agreement took %s in the median, and at most %s in nine of ten.\n", took(f.Agreed.Median), took(f.Agreed.P90))
	}
	if !digest {
		b.WriteString("Turns taken:\n")
	}
	for _, t := range f.Turns {
		fmt.Fprintf(&b, "  %3d %s %d\n", t.Turns, strings.Repeat("▇", max(1, 40*t.Sessions/f.Sessions)), t.Sessions)
	}
	for _, list := range []struct {
		title string
		names []api.Frequency
	}{{"Most countered", f.Terms}, {"Rejected for", f.Rejects}, {"Asked about", f.Asked}, {"Common objections", f.Objections}} {
		if len(list.names) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:", list.title)
		for i, n := range list.names[:min(len(list.names), 8)] {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s (%d)", Clean(n.Name), n.Count)
		}
		b.WriteString("\n")
	}
	if e := f.Escalated; e.Time.Count+e.Expired > 0 {
		fmt.Fprintf(&b, "Escalations: %d approved, %d denied, %d modified, %d with guidance, %d undecided.\n", e.Approved, e.Denied, e.Modified, e.Guidance, e.Expired)
		if e.Time.Count > 0 {
			fmt.Fprintf(&b, "Decisions took %s in the median.\n", took(e.Time.Median))
		}
	}
	return b.String()
}

func took(ms int64) string { return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() }
