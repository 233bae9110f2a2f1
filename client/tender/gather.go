package tender

import (
	"context"
	"time"

	"github.com/parley-asp/parley/api/render"
)

// readEvery is how often Gather reads the sessions.
const readEvery = 500 * time.Millisecond

// Gathering says how long to gather bids, and what to do meanwhile. Its functions may be nil.
type Gathering struct {
	Until   time.Time
	Enough  func([]Bid) bool  // ends it early, once there is nothing of ours to say
	Read    func([]Bid) error // gets the bids each time they were read
	Refused func(error)       // gets what Advance returns
}

// Gather reads the bids again and again, and says what is ours to say, until a bid is
// accepted, nothing more is awaited, or the time is over.
func (t *Tender) Gather(ctx context.Context, g Gathering) ([]Bid, error) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		bids, err := t.Bids(ctx)
		if err == nil && g.Read != nil {
			err = g.Read(bids)
		}
		if err != nil {
			return nil, err
		}
		if _, decided := Chosen(bids); decided {
			return bids, nil
		}
		said, err := t.Advance(ctx, bids)
		if err != nil && ctx.Err() == nil && g.Refused != nil {
			g.Refused(err)
		}
		switch {
		case said > 0:
			continue
		case Complete(bids), g.Enough != nil && g.Enough(bids), !time.Now().Before(g.Until):
			return bids, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Rows are the bids as render.Bids shows them beside each other.
func (r Rule) Rows(bids []Bid) []render.Bid {
	best, _ := r.Best(bids)
	rows := make([]render.Bid, 0, len(bids))
	for _, b := range bids {
		row := render.Bid{Number: b.Number, Agent: b.Agent, Standing: string(b.Standing), Offers: b.Offers, Best: b.Number == best.Number}
		if b.Reason != "" {
			row.Standing += ": " + b.Reason
		}
		if b.Offer != nil {
			row.Terms = b.Offer.Terms
		}
		rows = append(rows, row)
	}
	return rows
}
