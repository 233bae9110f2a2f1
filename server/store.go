package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"go.uber.org/zap"
)

// Store connects to the streams as the broker does, without starting a broker: to
// the server at o.NATS, which may be embedded in another process, or to a server
// in this process on the store in o.Data, which no other process may have open.
// stop ends it.
func Store(o Options) (nc *nats.Conn, stop func(), err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	s := &Server{ID: nuid.Next(), ready: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	read := openKeys
	if o.NATS != "" { // it knows the keys, and would refuse new ones
		read = readKeys
	}
	if s.keys, err = read(o.Data); err != nil {
		return nil, nil, err
	}
	if s.mode, err = s.keys.mode(o); err != nil {
		return nil, nil, err
	}
	if err := s.keys.apart(o); err != nil {
		return nil, nil, err
	}
	if s.mode == configured && s.keys.login == nil {
		return nil, nil, fmt.Errorf("the broker's login: %s: %w", filepath.Join(o.Data, BrokerLogin), fs.ErrNotExist)
	}
	if nc, err = s.connect(o, nil); err != nil {
		return nil, nil, err
	}
	return nc, s.end, nil
}

// Keys reads the key files in a data directory.
func Keys(dir string) (files map[string][]byte, err error) {
	files = map[string][]byte{}
	for _, pattern := range []string{"*.nk", BrokerKeysFile, BrokerSecret, SystemJWT} {
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

// ErrUnfinished means that a restore into a data directory did not end.
var ErrUnfinished = errors.New("a restore into the data directory did not end: run it again, and it begins anew")

// unfinished is there while a store is restored.
const unfinished = "restore.unfinished"

// finished returns ErrUnfinished of a data directory that has a part of a store.
func finished(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, unfinished)); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, ErrUnfinished)
	}
	return nil
}

// BeginRestore refuses a data directory that holds a store, but removes what is left of a restore that did not end. Until finish
// is called with nil, no broker starts on it.
func BeginRestore(dir string) (finish func(error) error, err error) {
	file, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	store, marker := filepath.Join(dir, "nats"), filepath.Join(dir, unfinished)
	err = finished(dir)
	if errors.Is(err, ErrUnfinished) {
		err = os.RemoveAll(store)
	} else if err == nil {
		if _, missing := os.Stat(store); errors.Is(missing, fs.ErrNotExist) {
			err = WriteSecret(marker, nil)
		} else {
			err = fmt.Errorf("%s already exists; parley never overwrites a store", store)
		}
	}
	if err != nil {
		unlock(file)
		return nil, err
	}
	return func(failed error) error {
		defer unlock(file)
		if failed == nil {
			failed = errors.Join(os.Remove(marker), syncDir(dir))
		}
		return failed
	}, nil
}
