package embedded

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-asp/parley/internal/background"
)

const (
	// maxUnread bounds what waits for all principals together: each connection may have maxPending, and those of one could
	// fill the memory.
	maxUnread = 4 * maxPending
	// maxSent bounds the messages of a principal in a second, whatever they are: NATS bounds nobody.
	maxSent = 100_000
)

// The server is looked at so often, or more seldom if it has so many connections that looking takes long.
const (
	watchEvery   = 250 * time.Millisecond
	watchAtMost  = time.Second
	watchingPart = 100 // of the time
)

// A client is a principal with all of its connections.
type client struct {
	name        string
	connections []uint64
	pending     int   // bytes that wait for it
	sent        int64 // messages since the count began
}

// A watch looks at the connections of an account.
type watch struct {
	account string
	unread  int   // bytes that wait for all at most
	most    int64 // messages of each in a second at most
	flooded func(name string)

	since  time.Time        // when the count began
	before map[uint64]int64 // messages of each connection by then
}

// watch closes connections of who does not read, once too much waits, and of who sends too much.
func (s *Server) watch(ctx context.Context, w watch) {
	pause := watchEvery
	for background.Pause(ctx, pause) == nil {
		begun := time.Now()
		open, err := s.nats.Connz(&server.ConnzOptions{Account: w.account, Username: true, Limit: math.MaxInt32})
		if err != nil {
			s.log.Errorf("what waits for slow clients is not known: %v", err)
			continue
		}
		clients := w.clients(open.Conns)
		s.closeUnread(clients, w.unread)
		s.closeFloods(clients, &w, begun)
		if begun.Sub(w.since) >= time.Second {
			w.since, w.before = begun, make(map[uint64]int64, len(open.Conns))
			for _, c := range open.Conns {
				w.before[c.Cid] = c.InMsgs
			}
		}
		pause = min(max(watchEvery, watchingPart*time.Since(begun)), watchAtMost)
	}
}

// clients are who has connections.
func (w *watch) clients(open []*server.ConnInfo) []*client {
	var all []*client
	of := map[string]*client{}
	for _, c := range open {
		name, _, _ := strings.Cut(c.AuthorizedUser, "/") // its key, of which a principal may have several
		if name == "" || name == devName {               // everybody is, so each connection counts for itself
			name = strconv.FormatUint(c.Cid, 10)
		}
		if of[name] == nil {
			of[name] = &client{name: name}
			all = append(all, of[name])
		}
		of[name].connections = append(of[name].connections, c.Cid)
		of[name].pending += c.Pending
		of[name].sent += c.InMsgs - w.before[c.Cid]
	}
	return all
}

// closeUnread closes the connections of those for whom most waits, until little enough does.
func (s *Server) closeUnread(clients []*client, most int) {
	total := 0
	for _, c := range clients {
		total += c.pending
	}
	if total <= most {
		return
	}
	for _, c := range slices.SortedFunc(slices.Values(clients), func(a, b *client) int { return cmp.Compare(b.pending, a.pending) }) {
		s.log.Warnf("%d bytes wait for %s, which does not read them: its connections are closed", c.pending, c.name)
		s.cut(c)
		if total -= c.pending; total <= most {
			return
		}
	}
}

// closeFloods closes the connections of those who have sent too much since the count began.
func (s *Server) closeFloods(clients []*client, w *watch, now time.Time) {
	if w.since.IsZero() {
		return
	}
	most := int64(float64(w.most) * max(1, now.Sub(w.since).Seconds()))
	for _, c := range clients {
		if c.sent <= most {
			continue
		}
		s.log.Warnf("%s has sent %d messages in about a second: its connections are closed", c.name, c.sent)
		if w.flooded != nil {
			w.flooded(c.name)
		}
		s.cut(c)
	}
}

func (s *Server) cut(c *client) {
	for _, id := range c.connections {
		_ = s.nats.DisconnectClientByID(id) // the only error is that the connection is gone already
	}
}
