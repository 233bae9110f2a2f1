package inbox

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
)

// round is the interval of keep-alives, shorter than the idle timeout of most proxies.
const round = 15 * time.Second

// A change tells a browser which items have changed.
type change struct {
	Changed []string  `json:"changed"`
	Reset   bool      `json:"reset,omitzero"` // reload everything
	Now     time.Time `json:"now"`
}

// cursor returns where live updates start for a page that is about to be rendered.
func (i *Inbox) cursor(ctx context.Context, who *person) string {
	now, err := ask(ctx, i, who.Agent, api.EscalationWatch, api.WatchEscalations{})
	if err != nil {
		return "" // the browser reloads everything when it connects
	}
	return now.Cursor
}

// follow sends changes as server-sent events until the browser disconnects. It starts
// at the page's cursor, or where the previous connection was lost.
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
	h.Set("X-Accel-Buffering", "no") // or a proxy buffers it
	out := http.NewResponseController(w)
	if out.SetReadDeadline(time.Time{}) != nil { // it reads nothing more, and stays open
		return
	}
	q := api.WatchEscalations{Since: cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since")), Wait: round.Milliseconds()}
	send := func(text string) bool {
		if out.SetWriteDeadline(time.Now().Add(2*round)) != nil {
			return false
		}
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	if !send(": following\n\n") {
		return
	}
	for ctx.Err() == nil {
		seen, err := ask(ctx, i, who.Agent, api.EscalationWatch, q)
		if err != nil {
			if ctx.Err() == nil {
				i.Log.Debug("inbox: live updates end", zap.Error(err))
			}
			return // the browser reconnects and learns why
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
		if !send("id: " + seen.Cursor + "\ndata: " + string(data) + "\n\n") {
			return
		}
		if _, still := i.visitor(r); !still {
			return
		}
	}
}
