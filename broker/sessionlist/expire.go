package sessionlist

import (
	"context"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// expireEvery is how often the list looks which pages of the archive's index have expired.
const expireEvery = time.Second

// expire drops the sessions of pages that have expired, until ctx is done: the server removes page and sessions by itself.
func (l *List) expire(ctx context.Context) {
	ticks := time.NewTicker(expireEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			for _, id := range l.dropExpired(now) {
				if l.o.Expired != nil {
					l.o.Expired(id)
				}
			}
		}
	}
}

func (l *List) dropExpired(now time.Time) (dropped []performatives.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := map[uint32]bool{}
	for page, at := range l.expiring {
		if over[page] = !now.Before(at); over[page] {
			delete(l.expiring, page)
		} else {
			delete(over, page)
		}
	}
	if len(over) == 0 {
		return nil
	}
	var rows []uint32
	for r := range l.table.all.values() {
		switch row := &l.table.rows[r]; {
		case !over[row.page]:
		case row.state.Over():
			rows = append(rows, r)
		default: // it has been opened anew
			row.page = 0
		}
	}
	for _, r := range rows {
		dropped = append(dropped, l.table.rows[r].Session())
		l.table.drop(r)
	}
	return dropped
}
