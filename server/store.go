package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"go.uber.org/zap"
)

// Store connects to the streams as the broker does, without a broker: to the server at
// o.NATS, which may be another node's embedded one, or else to a server in this process on
// the store of o.Data, which no other process may have open. stop ends it.
func Store(o Options) (nc *nats.Conn, stop func(), err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	n := &Node{id: nuid.Next(), ready: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			n.end()
		}
	}()
	if o.NATS != "" && o.NATSOptions == nil && o.NATSCreds == "" { // do not make keys that let nobody in
		if _, err := os.Stat(filepath.Join(o.Data, BrokerSeed)); err != nil {
			return nil, nil, fmt.Errorf("the broker's key: %w", err)
		}
	}
	if n.keys, err = openKeys(o.Data); err != nil {
		return nil, nil, err
	}
	if n.mode, err = n.keys.mode(o); err != nil {
		return nil, nil, err
	}
	if nc, err = n.connect(o, nil); err != nil {
		return nil, nil, err
	}
	return nc, n.end, nil
}

// Keys reads the key files of a data directory.
func Keys(dir string) (files map[string][]byte, err error) {
	files = map[string][]byte{}
	for _, pattern := range []string{"*.nk", SystemJWT} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// Empty tells why a data directory is not one that a backup can be restored to.
func Empty(dir string) error {
	files, err := Keys(dir)
	if err != nil {
		return err
	}
	for name := range files {
		return fmt.Errorf("%s is there already; a key is never written over", filepath.Join(dir, name))
	}
	store := filepath.Join(dir, "nats")
	if _, err := os.Stat(store); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already; a store is never written over", store)
	}
	return nil
}
