package inbox

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/wire"
)

// One round of following is shorter than the idle time of most proxies.
const round = 15 * time.Second

// A change is what a browser is told: which items are not as they were.
type change struct {
	Changed []string  `json:"changed"`
	Reset   bool      `json:"reset,omitzero"` // look at everything again
	Now     time.Time `json:"now"`
}

// follow tells a browser what changes, as server-sent events, until it goes.
// Last-Event-ID takes it up where the browser left.
func (i *Inbox) follow(w http.ResponseWriter, r *http.Request, who *person) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	go func() {
		select {
		case <-i.ending:
			stop()
		case <-ctx.Done():
		}
	}()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // or a proxy would hold it back
	out := http.NewResponseController(w)
	q := wire.WatchEscalations{Since: r.Header.Get("Last-Event-ID"), Wait: round.Milliseconds()}
	for ctx.Err() == nil {
		seen, err := ask[wire.Watched](ctx, i, who.Agent, wire.EscalationWatch, q)
		if err != nil {
			if ctx.Err() == nil {
				i.Log.Debug("inbox: following ends", zap.Error(err))
			}
			return // the browser comes again, and finds out why
		}
		c := change{Changed: []string{}, Reset: seen.Reset, Now: i.Now()}
		for n := range seen.Changed {
			c.Changed = append(c.Changed, string(seen.Changed[n].ID))
		}
		data, err := json.Marshal(c)
		if err != nil {
			return
		}
		q.Since = seen.Cursor
		if _, err := w.Write([]byte("id: " + seen.Cursor + "\ndata: " + string(data) + "\n\n")); err != nil || out.Flush() != nil {
			return
		}
		if _, still := i.visitor(r); !still {
			return
		}
	}
}
