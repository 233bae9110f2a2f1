package escalation

import (
	"fmt"
	"strings"
	"time"
)

// A Calendar holds the hours when people work. Its zero value is around the clock.
type Calendar struct {
	Zone     string              `yaml:"zone"`     // IANA name; default UTC
	Hours    map[string][]string `yaml:"hours"`    // by day, mon to sun, or "workdays" for mon to fri: "09:00-17:30"
	Holidays []string            `yaml:"holidays"` // dates, "2026-12-25"

	zone     *time.Location
	week     [7][]span
	holidays map[string]bool
}

// A span of a day, in local time since midnight.
type span struct{ from, to time.Duration }

var days = map[string][]time.Weekday{
	"mon": {time.Monday}, "tue": {time.Tuesday}, "wed": {time.Wednesday}, "thu": {time.Thursday}, "fri": {time.Friday},
	"sat": {time.Saturday}, "sun": {time.Sunday},
	"workdays": {time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday},
}

// read checks the configuration and prepares it for Add.
func (c *Calendar) read() error {
	var err error
	if c.zone, err = time.LoadLocation(c.Zone); err != nil {
		return fmt.Errorf("zone: %w", err)
	}
	works := false
	for name, hours := range c.Hours {
		of, known := days[strings.ToLower(name)]
		if !known {
			return fmt.Errorf("hours: %q is not a day; use mon, tue, wed, thu, fri, sat, sun or workdays", name)
		}
		for _, text := range hours {
			s, err := readSpan(text)
			if err != nil {
				return fmt.Errorf("hours: %s: %w", name, err)
			}
			for _, d := range of {
				c.week[d] = append(c.week[d], s)
				works = true
			}
		}
	}
	if !works {
		return fmt.Errorf("hours: there are none; add some, such as workdays: [\"09:00-17:00\"]")
	}
	for d := range c.week {
		if err := inOrder(c.week[d]); err != nil {
			return fmt.Errorf("hours: %s: %w", time.Weekday(d), err)
		}
	}
	c.holidays = map[string]bool{}
	for _, h := range c.Holidays {
		if _, err := time.Parse(time.DateOnly, h); err != nil {
			return fmt.Errorf("holidays: %q is not a date such as 2026-12-25", h)
		}
		c.holidays[h] = true
	}
	return nil
}

func readSpan(text string) (span, error) {
	from, to, _ := strings.Cut(text, "-")
	a, err := clockTime(from)
	if err != nil {
		return span{}, err
	}
	b, err := clockTime(to)
	if err == nil && b <= a {
		err = fmt.Errorf("%q ends before it starts", text)
	}
	return span{a, b}, err
}

func clockTime(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time such as 09:00", text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

func inOrder(spans []span) error {
	for n := 1; n < len(spans); n++ {
		if spans[n].from < spans[n-1].to {
			return fmt.Errorf("hours overlap or are out of order")
		}
	}
	return nil
}

// maxDays is the most days that Add searches for working hours.
const maxDays = 400

// Add returns the time at which this much working time has passed since start.
// Hours are in local time, so the days of clock changes are longer or shorter.
func (c *Calendar) Add(start time.Time, work time.Duration) time.Time {
	if c == nil || c.zone == nil {
		return start.Add(work)
	}
	at := start.In(c.zone)
	for day := range maxDays {
		y, m, d := at.Date()
		midnight := time.Date(y, m, d+day, 0, 0, 0, 0, c.zone)
		if c.holidays[midnight.Format(time.DateOnly)] {
			continue
		}
		for _, s := range c.week[midnight.Weekday()] {
			from, to := onClock(midnight, s.from), onClock(midnight, s.to)
			if from.Before(start) {
				from = start
			}
			if !from.Before(to) {
				continue
			}
			left := to.Sub(from)
			if work <= left {
				return from.Add(work).UTC()
			}
			work -= left
		}
	}
	return start.Add(maxDays * 24 * time.Hour)
}

func onClock(midnight time.Time, since time.Duration) time.Time {
	y, m, d := midnight.Date()
	return time.Date(y, m, d, int(since/time.Hour), int(since%time.Hour/time.Minute), 0, 0, midnight.Location())
}
