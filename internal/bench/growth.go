package bench

import (
	"context"
	"fmt"
)

// Growth compares the cost of an act when little is stored with the cost when
// much is. The two are measured in turns, on brokers of their own.
type Growth struct {
	What     string  `json:"what"`
	Sync     string  `json:"sync"`
	Sessions int     `json:"sessions"` // at a time
	Little   Figures `json:"little"`
	Much     Figures `json:"much"`
	Ratio    Ratio   `json:"ratio"`
}

// grow measures two brokers in turns.
func (o *Options) grow(ctx context.Context, what string, sync string, little, much *measurement) (g Growth, err error) {
	sessions := len(little.workers)
	o.say("sync %s, %d at a time: %.0f s each", sync, sessions, o.Seconds)
	if err := o.alternate(ctx, little, much); err != nil {
		return g, err
	}
	g = Growth{What: what, Sync: sync, Sessions: sessions, Little: little.figures(), Much: much.figures()}
	g.Ratio = g.Much.over(g.Little)
	return g, nil
}

// Lengths compares the cost of an act in sessions of o.Acts with the cost in long ones.
func Lengths(ctx context.Context, o Options, long int) (Report, error) {
	return o.report(ctx, []string{"short", "long"}, func(ctx context.Context, w *world, r *Report) error {
		for _, sessions := range o.Sessions {
			short := &measurement{target: w.targets[0], workers: w.targets[0].workers(sessions, o.Acts, o.Body)}
			much := &measurement{target: w.targets[1], workers: w.targets[1].workers(sessions, long, o.Body)}
			g, err := o.grow(ctx, fmt.Sprintf("sessions of %d acts, then of %d", o.Acts, long), w.sync, short, much)
			if err != nil {
				return err
			}
			r.Growth = append(r.Growth, g)
		}
		return nil
	})
}
