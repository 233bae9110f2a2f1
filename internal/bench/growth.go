package bench

import (
	"context"
	"fmt"
	"time"
)

// Growth is what an act costs where little is stored, and in turns with that
// where much is.
type Growth struct {
	What     string  `json:"what"`
	Sync     string  `json:"sync"`
	Sessions int     `json:"sessions"` // at a time
	Little   Figures `json:"little"`
	Much     Figures `json:"much"`
	Ratio    Ratio   `json:"ratio"`
}

func grown(what, sync string, sessions int, little, much *side) Growth {
	g := Growth{What: what, Sync: sync, Sessions: sessions, Little: little.figures(), Much: much.figures()}
	g.Ratio = g.Much.over(g.Little)
	return g
}

// A session counts as short at so many acts, and is left after a few more.
const (
	shortActs = 10
	shortTurn = 8   // acts said in a short session
	turnActs  = 400 // in one turn
)

// Lengths measures an act in sessions of 10 acts next to one in a session of
// many more.
func Lengths(ctx context.Context, o Options, long int) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		g, err := o.lengths(ctx, sync, long)
		if err != nil {
			return r, fmt.Errorf("benchmark: %w", err)
		}
		r.Growth = append(r.Growth, g)
	}
	return r, nil
}

func (o *Options) lengths(ctx context.Context, sync time.Duration, acts int) (g Growth, err error) {
	w, err := openWorld(ctx, o, sync, "parley")
	if err != nil {
		return g, err
	}
	defer w.close(&err)
	parley := w.roads[0]
	o.say("sync %s: a session of %d acts", syncName(sync), acts)
	long := parley.lanes(1)
	if err := long[0].grow(ctx, acts); err != nil {
		return g, err
	}
	var fresh []*lane
	said := 0
	short := &side{
		road: parley, lanes: parley.lanes(1), most: turnActs,
		ready: func(ctx context.Context) error {
			fresh, said = parley.lanes(turnActs/shortTurn), 0
			return each(ctx, fresh, func(l *lane, ctx context.Context) error { return l.grow(ctx, shortActs) })
		},
		next: func(_ *lane, ctx context.Context) (trip, error) { // one at a time
			l := fresh[said/shortTurn]
			said++
			return l.next(ctx)
		},
	}
	much := &side{road: parley, lanes: long, most: turnActs}
	o.say("sync %s: acts in it, and in sessions of %d", syncName(sync), shortActs)
	if err := alternate(ctx, []*side{short, much}, time.Duration(o.Seconds*float64(time.Second))); err != nil {
		return g, err
	}
	return grown(fmt.Sprintf("session of %d acts, then of %d", shortActs, acts), syncName(sync), 1, short, much), nil
}

// grow opens a session and says acts until it has so many.
func (l *lane) grow(ctx context.Context, acts int) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	for l.acts < acts-2 {
		if _, err := l.next(ctx); err != nil {
			return err
		}
	}
	return nil
}
