package publiclog

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// A Whole is a log that was read from its first leaf on, and checked.
type Whole struct {
	inclusion.Checkpoint
	Agreements, Sessions int
	Hashes               map[string]bool // of the leaves
}

// Whole reads all leaves, and compares the root and every tile with what they make.
func (l *Log) Whole(ctx context.Context) (found Whole, err error) {
	if found.Checkpoint, _, err = l.checkpoint(ctx); err != nil {
		return found, err
	}
	found.Hashes = map[string]bool{}
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		all := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			all[i] = stored[index]
		}
		return all, nil
	})
	if err := l.leaves(ctx, 0, found.Tree.N, func(index int64, data []byte) error {
		if err := found.count(data); err != nil {
			return err
		}
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
	for _, tile := range tlog.NewTiles(tileHeight, 0, found.Tree.N) {
		want, err := tlog.ReadTileData(tile, reader)
		if err != nil {
			return found, err
		}
		if got, err := l.tiles(ctx).ReadTiles([]tlog.Tile{tile}); err != nil || string(got[0]) != string(want) {
			return found, fmt.Errorf("tile %s is not that of the leaves: %w", tile.Path(), err)
		}
	}
	return found, nil
}

// count takes in a leaf, which is there once.
func (w *Whole) count(data []byte) error {
	leaf, err := inclusion.ReadLeaf(data)
	if err != nil {
		return err
	}
	switch leaf.Type {
	case inclusion.Agreement:
		w.Agreements++
	case inclusion.Session:
		w.Sessions++
	default:
		return fmt.Errorf("it is of type %q", leaf.Type)
	}
	if w.Hashes[leaf.Hash] {
		return fmt.Errorf("%s is in the log twice", leaf.Hash)
	}
	w.Hashes[leaf.Hash] = true
	return nil
}

// Follow checks that the newest checkpoint extends a tree, calls each with every leaf that the
// tree does not have, and returns the checkpoint as it was signed.
func (l *Log) Follow(ctx context.Context, before tlog.Tree, each func(leaf []byte) error) (signed string, err error) {
	now, signed, err := l.checkpoint(ctx)
	if err != nil {
		return "", err
	}
	reader := tlog.TileHashReader(now.Tree, l.tiles(ctx))
	if err := extends(before, now.Tree, reader); err != nil {
		return "", err
	}
	return signed, l.leaves(ctx, before.N, now.Tree.N, func(index int64, leaf []byte) error {
		proven, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
		if err != nil {
			return err
		}
		if proven[0] != tlog.RecordHash(leaf) {
			return errors.New("it is not the one of the tree")
		}
		return each(leaf)
	})
}

// extends checks that a tree has all leaves of one before, at their places.
func extends(before, now tlog.Tree, reader tlog.HashReader) error {
	switch {
	case now.N < before.N:
		return fmt.Errorf("the log has shrunk: it had %d leaves and has %d", before.N, now.N)
	case before.N == 0:
		return nil
	}
	proof, err := tlog.ProveTree(now.N, before.N, reader)
	if err != nil {
		return err
	}
	if err := tlog.CheckTree(proof, now.N, now.Hash, before.N, before.Hash); err != nil {
		return fmt.Errorf("the log was changed: its first %d leaves are others: %w", before.N, err)
	}
	return nil
}
