package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// routes reads whom the rules ask: levels apart by /, each of who, how many of
// them, and within what time from the ESCALATE; "everybody" is who may decide,
// "at" a path to where the amount stands, "nonMonetary" allow or two, and
// "reasonToDeny" wants a reason of whoever denies.
func (c *conversation) routes(words []string) error {
	var amounts []string
	var nonMonetary string
	var reasonToDeny bool
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		path, is := strings.CutPrefix(word, "at=")
		if is {
			amounts = strings.Split(path, ",")
		}
		how, says := strings.CutPrefix(word, "nonMonetary=")
		if says {
			nonMonetary = how
		}
		reasonToDeny = reasonToDeny || word == "reasonToDeny"
		return is || says || word == "reasonToDeny"
	})
	type level struct {
		performatives.Level
		within time.Duration
	}
	var levels []level
	for _, part := range strings.Split(strings.Join(words, " "), "/") {
		fields := strings.Fields(part)
		if len(fields) != 3 {
			return errors.New("who, how many, within what time?")
		}
		var l level
		if fields[0] != "everybody" {
			for _, name := range strings.Split(fields[0], ",") {
				l.Approvers = append(l.Approvers, principals[name])
			}
		}
		if _, err := fmt.Sscan(fields[1], &l.Quorum); err != nil {
			return err
		}
		var err error
		if l.within, err = time.ParseDuration(fields[2]); err != nil {
			return err
		}
		levels = append(levels, l)
	}
	c.route = func(now time.Time) *performatives.Route {
		r := &performatives.Route{Amounts: amounts, NonMonetary: nonMonetary, ReasonToDeny: reasonToDeny}
		for _, l := range levels {
			l.Due = now.Add(l.within)
			r.Levels = append(r.Levels, l.Level)
		}
		return r
	}
	return nil
}
