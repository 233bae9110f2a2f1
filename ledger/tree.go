package ledger

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// tileHeight is that of C2SP's tiles: 256 hashes.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// A tree is the log's Merkle tree at one size. In memory are the leaf hashes of the tile
// that is not full yet, and the hashes of full tiles: 32 bytes for 256 leaves. The leaf
// hashes of full tiles are computed from the stream.
//
// A copy made by snapshot does not change.
type tree struct {
	size int64
	open []tlog.Hash   // leaf hashes after the last full tile
	full [][]tlog.Hash // the roots of full tiles of level 0, of level 1, …
}

func (t *tree) snapshot() tree { return tree{t.size, t.open, slices.Clone(t.full)} }

// add adds a leaf. It needs hashes in memory only: those that a new leaf completes are
// made of the open tiles.
func (t *tree) add(leaf []byte) error {
	hashes, err := tlog.StoredHashesForRecordHash(t.size, tlog.RecordHash(leaf), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return t.hashes(indexes, nil)
	}))
	if err != nil {
		return err
	}
	t.open = append(t.open, hashes[0])
	t.size++
	if len(t.open) == tileWidth {
		t.open = nil // and not [:0]: a snapshot has the array
	}
	for level := 0; (level+1)*tileHeight < len(hashes); level++ {
		if level == len(t.full) {
			t.full = append(t.full, nil)
		}
		t.full[level] = append(t.full[level], hashes[(level+1)*tileHeight])
	}
	return nil
}

// leafHashes are those of a full tile of level 0.
type leafHashes func(tile int64) ([]tlog.Hash, error)

// hashes reads hashes of the tree by their storage index.
func (t *tree) hashes(indexes []int64, stored leafHashes) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	read := map[int64][]tlog.Hash{} // full tiles of level 0
	for i, index := range indexes {
		tile := tlog.TileForIndex(tileHeight, index)
		if _, has := read[tile.N]; tile.L == 0 && !has && tile.N < t.size/tileWidth && stored != nil {
			all, err := stored(tile.N)
			if err != nil {
				return nil, err
			}
			read[tile.N] = all
		}
		data, err := t.tile(tile, func(n int64) ([]tlog.Hash, error) { return read[n], nil })
		if err != nil {
			return nil, err
		}
		if found[i], err = tlog.HashFromTile(tile, data, index); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// tile is the bytes of a tile.
func (t *tree) tile(tile tlog.Tile, stored leafHashes) ([]byte, error) {
	var all []tlog.Hash // from the tile's first on
	var err error
	switch {
	case tile.L == 0 && tile.N == t.size/tileWidth:
		all = t.open
	case tile.L == 0 && tile.N < t.size/tileWidth:
		all, err = stored(tile.N)
	case tile.L > 0 && tile.L <= len(t.full) && tile.N <= int64(len(t.full[tile.L-1]))/tileWidth:
		all = t.full[tile.L-1][tile.N*tileWidth:]
	}
	if err != nil {
		return nil, err
	}
	if len(all) < tile.W {
		return nil, fmt.Errorf("%w: %d of %d hashes of tile %s", errNoTile, len(all), tile.W, tile.Path())
	}
	data := make([]byte, 0, tile.W*tlog.HashSize)
	for _, hash := range all[:tile.W] {
		data = append(data, hash[:]...)
	}
	return data, nil
}

// reader reads hashes of a tree whose full tiles of leaf hashes come from the stream.
func (l *Ledger) reader(ctx context.Context, t tree) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return t.hashes(indexes, func(tile int64) ([]tlog.Hash, error) { return l.leafHashes(ctx, tile) })
	})
}
