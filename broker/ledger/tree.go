package ledger

import (
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// tileHeight is that of C2SP's tiles: 256 hashes.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// A tree is the log's Merkle tree at one size: the hashes that tiles have, by the tiles'
// level. It takes 32 bytes for each leaf, and some.
//
// A copy made by snapshot does not change.
type tree struct {
	size   int64
	levels [][]tlog.Hash
}

func (t *tree) snapshot() tree { return tree{t.size, slices.Clone(t.levels)} }

// add adds a leaf.
func (t *tree) add(leaf []byte) error {
	hashes, err := tlog.StoredHashesForRecordHash(t.size, tlog.RecordHash(leaf), t)
	if err != nil {
		return err
	}
	t.size++
	for level := 0; level*tileHeight < len(hashes); level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, nil)
		}
		t.levels[level] = append(t.levels[level], hashes[level*tileHeight])
	}
	return nil
}

// ReadHashes reads hashes of the tree by their storage index: it is a tlog.HashReader.
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		tile := tlog.TileForIndex(tileHeight, index)
		data, err := t.tile(tile)
		if err == nil {
			found[i], err = tlog.HashFromTile(tile, data, index)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// tile is the bytes of a tile.
func (t *tree) tile(tile tlog.Tile) ([]byte, error) {
	first := tile.N * tileWidth
	if tile.L >= len(t.levels) || first+int64(tile.W) > int64(len(t.levels[tile.L])) {
		return nil, fmt.Errorf("%w: %s", errNoTile, tile.Path())
	}
	data := make([]byte, 0, tile.W*tlog.HashSize)
	for _, hash := range t.levels[tile.L][first : first+int64(tile.W)] {
		data = append(data, hash[:]...)
	}
	return data, nil
}
