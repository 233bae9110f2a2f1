package server

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
)

// What a data directory has besides BrokerSeed once the broker's key has been rotated.
const (
	BrokerKeysFile = "broker.keys.json" // every key that signed receipts; public
	BrokerSecret   = "broker.secret"    // what hosted keys and the log's key derive from, as before the first rotation
	nextSeed       = "broker.next.nk"   // the new seed, until it takes the place of BrokerSeed
)

// A brokerKey is the key that signs receipts, and what goes with it.
type brokerKey struct {
	pair    nkeys.KeyPair
	history performatives.KeyHistory // nil of a key that was never rotated
	since   time.Time
	secret  []byte // a pseudorandom key of HKDF
	pending bool   // a rotation was stopped before it had put the new seed in its place
}

// ErrKeyLost means that the key that signs receipts is gone: there is a store or a history of keys, and the seed is not
// that of its newest key. A new key would make every old session fail its verification.
var ErrKeyLost = errors.New("the broker's key is lost")

// ErrKeyReplaced means that the seed is that of a key before the store's newest.
var ErrKeyReplaced = errors.New("the broker's key was replaced")

// readBrokerKey reads the key that signs receipts. It changes nothing. The error is fs.ErrNotExist of a
// directory in which no broker ever ran, and ErrKeyLost of one whose files do not belong together.
func readBrokerKey(dir string) (b brokerKey, err error) {
	if b.history, err = readKeyHistory(filepath.Join(dir, BrokerKeysFile)); err != nil {
		return b, err
	}
	path := filepath.Join(dir, BrokerSeed)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(filepath.Join(dir, "nats", "jetstream")); missing == nil {
			return b, fmt.Errorf("%w: the data directory has a store but no %s", ErrKeyLost, BrokerSeed)
		}
		if b.history != nil {
			return b, fmt.Errorf("%w: the data directory has %s but no %s", ErrKeyLost, BrokerKeysFile, BrokerSeed)
		}
	}
	if err != nil {
		return b, err
	}
	b.since = info.ModTime()
	if b.pair, err = ReadSeed(path); err != nil {
		return b, err
	}
	if err := b.newest(dir); err != nil {
		return b, err
	}
	return b, b.readSecret(dir)
}

// BrokerKeys are the keys that have signed receipts, from the key files of a data directory. They may be in use. It
// changes nothing.
func BrokerKeys(dir string) (performatives.KeyHistory, error) {
	key, err := readBrokerKey(dir)
	if err != nil {
		return nil, err
	}
	return key.keys()
}

// keys is its history, also of one that was never rotated.
func (b *brokerKey) keys() (performatives.KeyHistory, error) {
	if b.history != nil {
		return b.history, nil
	}
	public, err := b.pair.PublicKey()
	return performatives.KeyHistory{{Key: performatives.Key(public)}}, err
}

// newest sees to it that the seed is that of the newest key, which may still wait in nextSeed.
func (b *brokerKey) newest(dir string) error {
	if b.history == nil {
		return nil
	}
	newest := b.history[len(b.history)-1]
	if len(b.history) > 1 {
		b.since, _ = time.Parse(performatives.TimeFormat, newest.Since)
	}
	public, err := b.pair.PublicKey()
	if err != nil || public == string(newest.Key) {
		return err
	}
	next, err := ReadSeed(filepath.Join(dir, nextSeed))
	if err == nil {
		public, err = next.PublicKey()
	}
	if err != nil || public != string(newest.Key) {
		return fmt.Errorf("%w: %s has not the seed of %s, the newest key in %s", ErrKeyLost, BrokerSeed, newest.Key, BrokerKeysFile)
	}
	b.pair, b.pending = next, true
	return nil
}

// readSecret reads the secret, which before the first rotation derives from the seed.
func (b *brokerKey) readSecret(dir string) error {
	derived, err := secretOf(b.pair)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, BrokerSecret))
	switch {
	case errors.Is(err, fs.ErrNotExist) && b.history == nil:
		b.secret = derived
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the data directory has %s but no %s, which hosted keys are sealed by", ErrKeyLost, BrokerKeysFile, BrokerSecret)
	case err != nil:
		return err
	}
	b.secret, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	switch {
	case err != nil || len(b.secret) != sha256.Size:
		return fmt.Errorf("%s does not contain a secret", filepath.Join(dir, BrokerSecret)) // never print its contents
	case b.history == nil && !bytes.Equal(b.secret, derived):
		return fmt.Errorf("%w: the data directory has %s of another key, and no %s", ErrKeyLost, BrokerSecret, BrokerKeysFile)
	}
	return nil
}

// maxKeyAge is how old the broker's key may be before a start and Examine warn of it.
const maxKeyAge = 365 * 24 * time.Hour

// old returns why a key should be replaced, "" if it should not.
func old(since, now time.Time) string {
	if now.Sub(since) <= maxKeyAge {
		return ""
	}
	return "the broker's key is older than a year: replace it by 'parley keys rotate broker'"
}

// secretOf is the first step of HKDF (RFC 5869) on the raw seed: every key of the installation derives from it, and the
// seed does not.
func secretOf(pair nkeys.KeyPair) ([]byte, error) {
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	_, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, err
	}
	return hkdf.Extract(sha256.New, raw, nil)
}

// finish puts the seed of a rotation that was stopped in its place.
func (b *brokerKey) finish(dir string) error {
	if !b.pending {
		return nil
	}
	b.pending = false
	return errors.Join(os.Rename(filepath.Join(dir, nextSeed), filepath.Join(dir, BrokerSeed)), syncDir(dir))
}

// readKeyHistory reads a history of keys and checks it; nil if there is no file.
func readKeyHistory(path string) (performatives.KeyHistory, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	history, err := performatives.ReadKeyHistory(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return history, nil
}

// A rotation puts another key in the place of the one that signs receipts. Done in this order, its steps
// may be stopped at any point: the directory then opens as before, or from the third step on as after.
type rotation struct {
	dir     string
	old     brokerKey
	next    nkeys.KeyPair
	history performatives.KeyHistory
}

func newRotation(dir string, now time.Time) (r rotation, err error) {
	r.dir = dir
	if r.old, err = readBrokerKey(dir); err != nil {
		return r, err
	}
	if err := r.old.finish(dir); err != nil {
		return r, err
	}
	signs, err := performatives.NewSigner(r.old.pair)
	if err != nil {
		return r, err
	}
	if r.next, err = nkeys.CreateUser(); err != nil {
		return r, err
	}
	successor, err := performatives.NewSigner(r.next)
	if err != nil {
		return r, err
	}
	r.history, err = r.old.history.Rotate(signs, successor, now)
	return r, err
}

func (r rotation) steps() []func() error {
	return []func() error{
		func() error {
			text := base64.StdEncoding.EncodeToString(r.old.secret) + "\n"
			return replaceFile(filepath.Join(r.dir, BrokerSecret), []byte(text))
		},
		func() error {
			seed, err := r.next.Seed()
			if err != nil {
				return err
			}
			return replaceFile(filepath.Join(r.dir, nextSeed), append(bytes.Clone(seed), '\n'))
		},
		func() error {
			text, err := json.Marshal(r.history, json.Deterministic(true))
			if err != nil {
				return err
			}
			return replaceFile(filepath.Join(r.dir, BrokerKeysFile), append(text, '\n'))
		},
		func() error {
			r.old.pending = true
			return r.old.finish(r.dir)
		},
	}
}

// RotateBrokerKey makes another key that signs receipts, which the one before names as its successor, and removes the
// old seed. Everything that derives from the first key stays as it is. No broker may have the directory open: ErrInUse. The
// clock may not be behind the directory's files: ErrClock, for what the old key has signed would be a fault.
func RotateBrokerKey(dir string, now time.Time) (performatives.KeyHistory, error) {
	if _, err := os.Stat(filepath.Join(dir, BrokerSeed)); err != nil {
		return nil, err // and no directory is made
	}
	file, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock(file)
	if err := notBehind(dir, now); err != nil {
		return nil, err
	}
	r, err := newRotation(dir, now)
	if err != nil {
		return nil, err
	}
	for _, step := range r.steps() {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.history, nil
}

// ErrClock means that the clock is wrong, or was.
var ErrClock = errors.New("the clock is behind what was written")

// notBehind compares the clock with the newest file of a directory, such as of its store.
func notBehind(dir string, now time.Time) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) { // such as lost+found
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(now.Add(performatives.KeySkew)) {
			err = fmt.Errorf("%w: %s is of %s", ErrClock, path, info.ModTime().UTC().Format(time.RFC3339))
		}
		return err
	})
}

// replaceFile writes a file, mode 0600, so that a crash leaves the old one or the new one. It has the owner of the old
// one, or of the broker's seed.
func replaceFile(path string, text []byte) (err error) {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(next.Name()) //nolint:errcheck // the error is reported
		}
	}()
	dir := filepath.Dir(path)
	_, err = next.Write(text)
	err = errors.Join(err, ownAs(next, path, filepath.Join(dir, BrokerSeed), dir), next.Sync(), next.Close())
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(next.Name(), path), syncDir(dir))
}
