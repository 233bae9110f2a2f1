package bench

import (
	"context"
	"fmt"
	"time"
)

// Growth compares the cost of an act when little is stored with the cost when
// much is. The two are measured in turns.
type Growth struct {
	What     string  `json:"what"`
	Sync     string  `json:"sync"`
	Sessions int     `json:"sessions"` // at a time
	Little   Figures `json:"little"`
	Much     Figures `json:"much"`
	Ratio    Ratio   `json:"ratio"`
}

func newGrowth(what, sync string, sessions int, little, much *measurement) Growth {
	g := Growth{What: what, Sync: sync, Sessions: sessions, Little: little.figures(), Much: much.figures()}
	g.Ratio = g.Much.over(g.Little)
	return g
}

// The lengths of a short session and of a turn, in acts.
const (
	shortActs = 10  // before the measured acts
	shortTurn = 8   // measured in one short session
	turnActs  = 400 // measured in one turn
)

// Lengths compares the cost of an act in sessions of 10 acts with the cost in one
// long session.
func Lengths(ctx context.Context, o Options, long int) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		g, err := o.lengths(ctx, sync, long)
		if err != nil {
			return r, fmt.Errorf("bench: %w", err)
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
	parley := w.targets[0]
	o.say("sync %s: a session of %d acts", syncName(sync), acts)
	long := parley.workers(1)
	if err := long[0].grow(ctx, acts); err != nil {
		return g, err
	}
	var fresh []*worker
	submitted := 0
	short := &measurement{
		target: parley, workers: parley.workers(1), most: turnActs,
		ready: func(ctx context.Context) error {
			fresh, submitted = parley.workers(turnActs/shortTurn), 0
			return each(ctx, fresh, func(k *worker, ctx context.Context) error { return k.grow(ctx, shortActs) })
		},
		next: func(_ *worker, ctx context.Context) (roundTrip, error) { // one worker at a time
			k := fresh[submitted/shortTurn]
			submitted++
			return k.next(ctx)
		},
	}
	much := &measurement{target: parley, workers: long, most: turnActs}
	o.say("sync %s: acts in it, and in sessions of %d", syncName(sync), shortActs)
	if err := alternate(ctx, []*measurement{short, much}, time.Duration(o.Seconds*float64(time.Second))); err != nil {
		return g, err
	}
	return newGrowth(fmt.Sprintf("session of %d acts, then of %d", shortActs, acts), syncName(sync), 1, short, much), nil
}

// grow opens a session and submits acts until it has so many.
func (k *worker) grow(ctx context.Context, acts int) error {
	if err := k.open(ctx); err != nil {
		return err
	}
	for k.acts < acts-2 {
		if _, err := k.next(ctx); err != nil {
			return err
		}
	}
	return nil
}
