// Package publiclog reads a broker's public log over HTTP, as C2SP's tlog-tiles says, and believes
// nothing that its checkpoint does not prove.
//
// It is for those who do not trust the broker: package ledger writes the log, and package
// inclusion has what the two share.
package publiclog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	signednote "golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// A Log is where a public log is, and whom a reader trusts.
type Log struct {
	url       string
	key       signednote.Verifier
	witnesses []signednote.Verifier // that must have cosigned
	http      http.Client
}

// New is the log at a URL. Its checkpoints must have the signatures of its key and of all the
// witnesses.
func New(at string, key signednote.Verifier, witnesses []signednote.Verifier) (*Log, error) {
	if _, err := url.Parse(at); err != nil {
		return nil, err
	}
	return &Log{strings.TrimSuffix(at, "/"), key, witnesses, http.Client{Timeout: timeout}}, nil
}

// Through has requests go another way than the usual one, such as with a private CA.
func (l *Log) Through(transport http.RoundTripper) { l.http.Transport = transport }

// Bounds of what a log answers.
const (
	maxCheckpoint = 64 << 10
	maxBundle     = bundleLeaves * (inclusion.MaxLeaf + 2)
	bundleLeaves  = 256
	timeout       = 30 * time.Second
	shortest      = 100 * time.Millisecond // pause before a path is read again
)

// get reads a path below the log's URL, of at most so many bytes. A log that says when to come back,
// as while its broker starts or after too many requests, is asked again then.
func (l *Log) get(ctx context.Context, path string, most int64) ([]byte, error) {
	for began := time.Now(); ; {
		data, after, err := l.once(ctx, path, most)
		if after == 0 || time.Since(began)+after > timeout {
			return data, err
		}
		if err := background.Pause(ctx, after); err != nil {
			return nil, err
		}
	}
}

// once reads a path, or says after how long to do it again.
func (l *Log) once(ctx context.Context, path string, most int64) (data []byte, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/"+path, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := l.http.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, 0, err
	case answer.StatusCode != http.StatusOK:
		busy := answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests
		if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); err == nil && busy {
			after = max(time.Duration(seconds)*time.Second, shortest)
		}
		return nil, after, fmt.Errorf("%s/%s: %s: %.200s", l.url, path, answer.Status, data)
	case int64(len(data)) > most:
		return nil, 0, fmt.Errorf("%s/%s has more than %d bytes", l.url, path, most)
	}
	return data, 0, nil
}

// Open checks the log's signature of a checkpoint.
func (l *Log) Open(signed string) (inclusion.Checkpoint, error) {
	return inclusion.Open(signed, l.key)
}

// checkpoint is the newest.
func (l *Log) checkpoint(ctx context.Context) (c inclusion.Checkpoint, signed string, err error) {
	data, err := l.get(ctx, "checkpoint", maxCheckpoint)
	if err == nil {
		c, err = l.Open(string(data))
	}
	if err == nil {
		err = inclusion.Cosigned(string(data), l.witnesses)
	}
	return c, string(data), err
}

// tiles are the log's, for tlog, which checks them.
type tiles struct {
	*Log
	ctx  context.Context //nolint:containedctx // tlog's interface for tiles has none
	kept map[tlog.Tile][]byte
}

func (l *Log) tiles(ctx context.Context) tiles { return tiles{l, ctx, map[tlog.Tile][]byte{}} }

// maxKept is how many tiles are kept: neighbouring leaves are in the same ones.
const maxKept = 64

// tileHeight is how many levels of the tree a tile has.
const tileHeight = 8

func (tiles) Height() int { return tileHeight }

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(wanted))
	for i, tile := range wanted {
		if kept, is := t.kept[tile]; is {
			all[i] = kept
			continue
		}
		var err error
		if all[i], err = t.get(t.ctx, strings.Replace(tile.Path(), "tile/8/", "tile/", 1), int64(tile.W)*tlog.HashSize); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// SaveTiles keeps tiles that were checked.
func (t tiles) SaveTiles(checked []tlog.Tile, data [][]byte) {
	for i, tile := range checked {
		if _, is := t.kept[tile]; !is && len(t.kept) >= maxKept {
			clear(t.kept)
		}
		t.kept[tile] = data[i]
	}
}

var errBundle = errors.New("an entry bundle of the log is not a list of leaves")

// leaves calls each with the leaves from an index on, up to the size of a tree; each checks them.
func (l *Log) leaves(ctx context.Context, from, size int64, each func(index int64, leaf []byte) error) error {
	for first := from / bundleLeaves * bundleLeaves; first < size; first += bundleLeaves {
		width := int(min(size-first, bundleLeaves))
		tile := tlog.Tile{H: tileHeight, L: -1, N: first / bundleLeaves, W: width}
		data, err := l.get(ctx, strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1), maxBundle)
		if err != nil {
			return err
		}
		for index := first; index < first+int64(width); index++ {
			if len(data) < 2 || len(data)-2 < int(binary.BigEndian.Uint16(data)) {
				return errBundle
			}
			n := int(binary.BigEndian.Uint16(data))
			if index >= from {
				if err := each(index, data[2:2+n]); err != nil {
					return fmt.Errorf("leaf %d: %w", index, err)
				}
			}
			data = data[2+n:]
		}
		if len(data) > 0 {
			return errBundle
		}
	}
	return nil
}
