package server

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
)

// The files of the broker's key. Of the others a directory may have its own: the server at which a backup is restored
// is configured with them.
var brokerKeyFiles = []string{BrokerSeed, BrokerKeysFile, BrokerSecret, nextSeed}

// ErrOtherKey means that a data directory has another broker's key than a backup.
var ErrOtherKey = errors.New("it is of another broker than the backup, or older")

// KeysBack says which key files of a backup a data directory lacks, and which others it has in their place. It may have the
// broker's key of the backup, or one that came after it by rotations; then all files of this key stay. It is
// ErrOtherKey if there is another. Nothing is written.
func KeysBack(dir string, backup map[string][]byte) (lacks, keeps []string, err error) {
	has, err := Keys(dir)
	if err != nil {
		return nil, nil, err
	}
	newer := false
	for _, name := range slices.Sorted(maps.Keys(backup)) {
		is, there := has[name]
		switch ofBroker := slices.Contains(brokerKeyFiles, name); {
		case there && bytes.Equal(bytes.TrimSpace(is), bytes.TrimSpace(backup[name])):
		case ofBroker && !newer && there:
			if newer = goesOn(has, backup); !newer {
				return nil, nil, fmt.Errorf("%s: %w; parley never overwrites a key", filepath.Join(dir, name), ErrOtherKey)
			}
			keeps = append(keeps, name)
		case there:
			keeps = append(keeps, name)
		default:
			lacks = append(lacks, name)
		}
	}
	if newer {
		lacks = slices.DeleteFunc(lacks, func(name string) bool { return slices.Contains(brokerKeyFiles, name) })
		_, err = readBrokerKey(dir)
	}
	return lacks, keeps, err
}

// goesOn reports whether the history of one directory's keys begins with another's.
func goesOn(has, before map[string][]byte) bool {
	newest, err := performatives.ReadKeyHistory(has[BrokerKeysFile])
	if err != nil {
		return false
	}
	if text := before[BrokerKeysFile]; text != nil {
		older, err := performatives.ReadKeyHistory(text)
		return err == nil && follows(newest, older)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(before[BrokerSeed]))
	if err != nil {
		return false
	}
	public, err := pair.PublicKey()
	return err == nil && public == string(newest.Oldest())
}
