package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	signednote "golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/inclusion"
)

// A publicLog reads a broker's public log over HTTP, as C2SP's tlog-tiles says, and believes
// nothing that its checkpoint does not prove.
type publicLog struct {
	ctx  context.Context //nolint:containedctx // tlog's interface for tiles has none
	url  string
	key  signednote.Verifier
	http http.Client

	witnesses []signednote.Verifier // that must have cosigned
}

// Bounds of what a log answers.
const (
	maxCheckpoint = 64 << 10
	maxBundle     = bundleLeaves * (inclusion.MaxLeaf + 2)
	bundleLeaves  = 256
	logTimeout    = 30 * time.Second
)

const defaultLogURL = "http://127.0.0.1:8080/log"

// logFlags are the flags of what reads the log.
func logFlags(cmd *cobra.Command) {
	cmd.Flags().String("log-url", defaultLogURL, "`URL` of the public log")
	cmd.Flags().String("log-key", "", "the log's `KEY`, as 'parley log key' prints it (default: ask the broker)")
	cmd.Flags().StringArray("witness-key", nil, "the `KEY` of a witness that must have cosigned the checkpoint; can be repeated")
}

// openLog finds the log that the flags name.
func openLog(ctx context.Context, cmd *cobra.Command) (*publicLog, error) {
	key := text(cmd, "log-key")
	if key == "" {
		if err := with(cmd, func(ctx context.Context, c connection) error {
			info, err := c.Broker(ctx)
			key = info.Log.Key
			return err
		}); err != nil {
			return nil, err
		}
	}
	verifier, err := inclusion.ParseKey(key)
	if err != nil {
		return nil, usage(fmt.Errorf("--log-key: %w", err))
	}
	l := &publicLog{ctx: ctx, url: strings.TrimSuffix(text(cmd, "log-url"), "/"), key: verifier, http: http.Client{Timeout: logTimeout}}
	witnesses, err := cmd.Flags().GetStringArray("witness-key")
	if err != nil {
		return nil, err
	}
	for _, key := range witnesses {
		w, err := inclusion.ParseWitness(key)
		if err != nil {
			return nil, usage(fmt.Errorf("--witness-key: %w", err))
		}
		l.witnesses = append(l.witnesses, w)
	}
	return l, nil
}

// get reads a path below the log's URL, of at most so many bytes.
func (l *publicLog) get(path string, most int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(l.ctx, http.MethodGet, l.url+"/"+path, nil)
	if err != nil {
		return nil, usage(err)
	}
	answer, err := l.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s/%s: %s: %.200s", l.url, path, answer.Status, data)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s/%s has more than %d bytes", l.url, path, most)
	}
	return data, nil
}

// checkpoint is the newest.
func (l *publicLog) checkpoint() (c inclusion.Checkpoint, signed string, err error) {
	data, err := l.get("checkpoint", maxCheckpoint)
	if err == nil {
		c, err = inclusion.Open(string(data), l.key)
	}
	if err == nil {
		err = l.cosigned(string(data))
	}
	return c, string(data), err
}

// cosigned checks that all witnesses have cosigned a checkpoint.
func (l *publicLog) cosigned(signed string) error {
	for _, w := range l.witnesses {
		lines, err := inclusion.Cosignatures(signed, []signednote.Verifier{w})
		if err == nil && len(lines) == 0 {
			err = fmt.Errorf("the witness %s has not cosigned the log's checkpoint", w.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Height, ReadTiles and SaveTiles let tlog read the tiles, which it checks.
func (l *publicLog) Height() int { return 8 }

// ReadTiles reads tiles.
func (l *publicLog) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	for i, tile := range tiles {
		var err error
		if all[i], err = l.get(strings.Replace(tile.Path(), "tile/8/", "tile/", 1), int64(tile.W)*tlog.HashSize); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// SaveTiles keeps nothing.
func (l *publicLog) SaveTiles([]tlog.Tile, [][]byte) {}

var errBundle = errors.New("an entry bundle of the log is not a list of leaves")

// leaves calls each with the leaves from an index on, up to the size of a tree; each checks them.
func (l *publicLog) leaves(from, size int64, each func(index int64, leaf []byte) error) error {
	for first := from / bundleLeaves * bundleLeaves; first < size; first += bundleLeaves {
		width := int(min(size-first, bundleLeaves))
		tile := tlog.Tile{H: 8, L: -1, N: first / bundleLeaves, W: width}
		data, err := l.get(strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1), maxBundle)
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

// A wholeLog is a log that was read from its first leaf on, and checked.
type wholeLog struct {
	inclusion.Checkpoint
	agreements, sessions int
	hashes               map[string]bool // of the leaves
}

// whole reads all leaves, and compares the root and every tile with what they make.
func (l *publicLog) whole() (found wholeLog, err error) {
	if found.Checkpoint, _, err = l.checkpoint(); err != nil {
		return found, err
	}
	found.hashes = map[string]bool{}
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		all := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			all[i] = stored[index]
		}
		return all, nil
	})
	if err := l.leaves(0, found.Tree.N, func(index int64, data []byte) error {
		leaf, err := inclusion.ReadLeaf(data)
		if err != nil {
			return err
		}
		switch leaf.Type {
		case inclusion.Agreement:
			found.agreements++
		case inclusion.Session:
			found.sessions++
		default:
			return fmt.Errorf("it is of type %q", leaf.Type)
		}
		if found.hashes[leaf.Hash] {
			return fmt.Errorf("%s is in the log twice", leaf.Hash)
		}
		found.hashes[leaf.Hash] = true
		hashes, err := tlog.StoredHashes(index, data, reader)
		stored = append(stored, hashes...)
		return err
	}); err != nil {
		return found, err
	}
	root, err := tlog.TreeHash(found.Tree.N, reader)
	if err != nil {
		return found, err
	}
	if root != found.Tree.Hash {
		return found, fmt.Errorf("the %d leaves have the root hash %s, the checkpoint %s", found.Tree.N, root, found.Tree.Hash)
	}
	for _, tile := range tlog.NewTiles(8, 0, found.Tree.N) {
		want, err := tlog.ReadTileData(tile, reader)
		if err != nil {
			return found, err
		}
		if got, err := l.ReadTiles([]tlog.Tile{tile}); err != nil || string(got[0]) != string(want) {
			return found, fmt.Errorf("tile %s is not that of the leaves: %w", tile.Path(), err)
		}
	}
	return found, nil
}
