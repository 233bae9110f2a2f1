package embedded

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-asp/parley/internal/background"
)

// maxUnread bounds what waits for all principals together: each connection may have maxPending, and those of one could
// fill the memory.
const maxUnread = 4 * maxPending

// The server is looked at so often, or more seldom if it has so many connections that looking takes long.
const (
	unreadEvery = 250 * time.Millisecond
	lookingPart = 100 // of the time
)

// boundUnread closes connections once more waits for principals than may: those of whom for whom most waits, first.
func (s *Server) boundUnread(ctx context.Context, account string, most int) {
	pause := unreadEvery
	for background.Pause(ctx, pause) == nil {
		begun := time.Now()
		if err := s.closeUnread(account, most); err != nil {
			s.log.Errorf("what waits for slow clients is not known: %v", err)
		}
		pause = max(unreadEvery, lookingPart*time.Since(begun))
	}
}

func (s *Server) closeUnread(account string, most int) error {
	open, err := s.nats.Connz(&server.ConnzOptions{Account: account, Username: true, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	total, waits := 0, map[string]int{}
	for _, c := range open.Conns {
		total += c.Pending
		waits[c.AuthorizedUser] += c.Pending
	}
	if total <= most {
		return nil
	}
	for _, user := range slices.SortedFunc(maps.Keys(waits), func(a, b string) int { return cmp.Compare(waits[b], waits[a]) }) {
		s.log.Warnf("%s does not read %d bytes: its connections are closed", user, waits[user])
		if err := s.Disconnect(user); err != nil {
			return err
		}
		if total -= waits[user]; total <= most {
			break
		}
	}
	return nil
}
