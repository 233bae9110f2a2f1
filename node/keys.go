package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

// The files of a node's keys in its data directory, mode 0600. They hold seeds:
// whoever reads them can act as the broker, or let anybody in.
const (
	BrokerSeed   = "broker.nk"   // signs receipts
	OperatorSeed = "operator.nk" // logs in as operator
	calloutSeed  = "callout.nk"  // logs in to answer logins
	issuerSeed   = "issuer.nk"   // signs what logins are answered with
)

// seed reads a key of the data directory, and makes it the first time.
func seed(dir, file string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSeed(path, create)
	}
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
	if err != nil {
		return nil, fmt.Errorf("%s holds no seed of an nkey", path) // never what it holds
	}
	return pair, nil
}

func makeSeed(path string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	pair, err := create()
	if err != nil {
		return nil, err
	}
	text, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return pair, os.WriteFile(path, append(text, '\n'), 0o600)
}

// ReadSeed reads the seed of a key from a file, such as a principal's own.
func ReadSeed(path string) (nkeys.KeyPair, error) {
	return seed(filepath.Dir(path), filepath.Base(path), func() (nkeys.KeyPair, error) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
}

// WriteSeed makes a user key and keeps its seed in a new file, mode 0600.
func WriteSeed(path string) (nkeys.KeyPair, error) {
	if _, err := os.Stat(path); err == nil {
		return nil, fmt.Errorf("%s is there already; a key is never written over", path)
	}
	return makeSeed(path, nkeys.CreateUser)
}
