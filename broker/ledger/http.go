package ledger

import (
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/tlog"
)

// Caching headers: a checkpoint changes, a tile never does.
const (
	noCache = "no-cache"
	forEver = "public, max-age=31536000, immutable"
)

// ServeHTTP serves the log below /log/, as C2SP's tlog-tiles says.
func (l *Ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.http.ServeHTTP(w, r) }

func (l *Ledger) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /log/checkpoint", l.serveCheckpoint)
	mux.Handle("GET /log/tile/entries/{index...}", gzhttp.GzipHandler(http.HandlerFunc(l.serveEntries)))
	mux.HandleFunc("GET /log/tile/{tile...}", l.serveTile)
	return mux
}

// ready reports whether the log is served; if not, it has answered why.
func (l *Ledger) ready(w http.ResponseWriter) (*published, bool) {
	last := l.published.Load()
	why := l.Refused()
	if why == nil && last == nil {
		why = errStarting
	}
	if why == nil {
		return last, true
	}
	w.Header().Set("Cache-Control", "no-store")
	if errors.Is(why, errStarting) {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, why.Error(), http.StatusServiceUnavailable)
	return nil, false
}

func (l *Ledger) serveCheckpoint(w http.ResponseWriter, _ *http.Request) {
	if last, ok := l.ready(w); ok {
		write(w, "text/plain; charset=utf-8", noCache, []byte(last.signed))
	}
}

func (l *Ledger) serveTile(w http.ResponseWriter, r *http.Request) {
	tile, err := tlog.ParseTilePath("tile/8/" + r.PathValue("tile"))
	if err != nil || tile.L < 0 {
		notFound(w)
		return
	}
	t, ok := l.covers(w, tile)
	if !ok {
		return
	}
	data, err := t.tile(tile)
	l.answer(w, data, err)
}

func (l *Ledger) serveEntries(w http.ResponseWriter, r *http.Request) {
	tile, err := tlog.ParseTilePath("tile/8/data/" + r.PathValue("index"))
	if err != nil {
		notFound(w)
		return
	}
	tile.L = 0
	if _, ok := l.covers(w, tile); !ok {
		return
	}
	leaves, err := l.leaves(r.Context(), tile.N*tileWidth, tile.W)
	var bundle []byte
	for _, leaf := range leaves {
		bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(leaf))), leaf...) //nolint:gosec // at most MaxLeaf
	}
	l.answer(w, bundle, err)
}

// covers finds the tree that has a tile. It may be larger than the checkpoint: another
// broker may have published one that needs the tile.
func (l *Ledger) covers(w http.ResponseWriter, tile tlog.Tile) (t tree, ok bool) {
	if _, ok := l.ready(w); !ok {
		return t, false
	}
	t = l.now()
	size := l.bounded(t.size)
	have := size >> (tileHeight * tile.L) // hashes of this level
	if tile.L*tileHeight > 62 || tile.N > have/tileWidth || tile.N*tileWidth+int64(tile.W) > have {
		notFound(w)
		return t, false
	}
	return t, true
}

func (l *Ledger) answer(w http.ResponseWriter, data []byte, err error) {
	switch {
	case errors.Is(err, errNoTile):
		notFound(w)
	case err != nil:
		l.o.Log.Warn("the log cannot be read", zap.Error(err))
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "the log cannot be read now", http.StatusServiceUnavailable)
	default:
		write(w, "application/octet-stream", forEver, data)
	}
}

func notFound(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "the log has no such tile", http.StatusNotFound)
}

func write(w http.ResponseWriter, kind, caching string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", caching)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*") // everybody may read the log
	w.Write(data)                             //nolint:errcheck // the client went away
}
