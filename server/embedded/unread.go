package embedded

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-asp/parley/internal/background"
)

// maxUnread bounds what waits for all principals together: each connection may have maxPending, and those of one could
// fill the memory.
const maxUnread = 4 * maxPending

// The server is looked at so often, or more seldom if it has so many connections that looking takes long.
const (
	unreadEvery  = 250 * time.Millisecond
	unreadAtMost = time.Second
	lookingPart  = 100 // of the time
)

// boundUnread closes connections once more waits for principals than may: first those of the user for whom most waits.
func (s *Server) boundUnread(ctx context.Context, account string, most int) {
	pause := unreadEvery
	for background.Pause(ctx, pause) == nil {
		begun := time.Now()
		if err := s.closeUnread(account, most); err != nil {
			s.log.Errorf("what waits for slow clients is not known: %v", err)
		}
		pause = min(max(unreadEvery, lookingPart*time.Since(begun)), unreadAtMost)
	}
}

func (s *Server) closeUnread(account string, most int) error {
	open, err := s.nats.Connz(&server.ConnzOptions{Account: account, Username: true, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	total, waits, of := 0, map[string]int{}, map[string][]uint64{}
	for _, c := range open.Conns {
		user := c.AuthorizedUser
		if user == "" || user == devName { // everybody is, so each connection counts for itself
			user = strconv.FormatUint(c.Cid, 10)
		}
		total += c.Pending
		waits[user] += c.Pending
		of[user] = append(of[user], c.Cid)
	}
	if total <= most {
		return nil
	}
	for _, user := range slices.SortedFunc(maps.Keys(waits), func(a, b string) int { return cmp.Compare(waits[b], waits[a]) }) {
		s.log.Warnf("%d bytes wait for %s, which does not read them: its connections are closed", waits[user], user)
		for _, id := range of[user] {
			_ = s.nats.DisconnectClientByID(id) // the only error is that the connection is gone already
		}
		if total -= waits[user]; total <= most {
			break
		}
	}
	return nil
}
