package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/broker/sessionlist"
)

// LookAtDeadlines has each open session see what its deadlines have ended, after the broker's clock was
// moved: timers go by the NATS server's.
func (s *Server) LookAtDeadlines(ctx context.Context) error {
	list, before := s.Broker.Parts.List, sessionlist.Place{}
	for {
		page, err := list.Page(ctx, sessionlist.All(), "", before, 1000)
		if err != nil || len(page) == 0 {
			return err
		}
		var all errgroup.Group
		for _, at := range page {
			id := at.Session()
			if row, known := list.Row(id); known && !row.State.Over() {
				seen := make(chan error, 1)
				s.Broker.Command.Due(id, time.Time{}, func(err error) { seen <- err })
				all.Go(func() error { return <-seen })
			}
		}
		if err := all.Wait(); err != nil {
			return err
		}
		before = page[len(page)-1]
	}
}
