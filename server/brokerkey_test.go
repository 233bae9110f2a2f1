package server

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func public(t *testing.T, pair nkeys.KeyPair) performatives.Key {
	t.Helper()
	k, err := pair.PublicKey()
	must(t, err)
	return performatives.Key(k)
}

// A rotation that is killed after any of its steps leaves a directory that opens as before or as after, with
// the same secret, and in which the key can be rotated again.
func TestRotationKilled(t *testing.T) {
	t.Parallel()
	for stopped := range 5 {
		dir := t.TempDir()
		before, err := openKeys(dir)
		must(t, err)
		r, err := newRotation(dir, time.Now())
		must(t, err)
		for _, step := range r.steps()[:stopped] {
			must(t, step())
		}
		want := public(t, before.broker)
		if stopped >= 3 {
			want = public(t, r.next)
		}
		for range 2 { // the first may finish the rotation
			k, err := openKeys(dir)
			must(t, err)
			if public(t, k.broker) != want || string(k.secret) != string(before.secret) {
				t.Errorf("killed after %d steps: the key is %s, want %s", stopped, public(t, k.broker), want)
			}
		}
		history, err := RotateBrokerKey(dir, time.Now().Add(time.Hour))
		must(t, err)
		again, err := openKeys(dir)
		must(t, err)
		if !history.Has(want) || history.Newest() != public(t, again.broker) || string(again.secret) != string(before.secret) {
			t.Errorf("killed after %d steps: rotated again to %v", stopped, history)
		}
		if text, err := os.ReadFile(filepath.Join(dir, BrokerSeed)); err != nil || string(text) == seedOf(t, before.broker) {
			t.Errorf("the old seed is still there: %v", err)
		}
	}
}

func seedOf(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	seed, err := pair.Seed()
	must(t, err)
	return string(seed) + "\n"
}

// Files that do not belong together are refused, and none is made anew.
func TestRotatedKeyLost(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(dir, old string) error{
		"no seed":    func(dir, _ string) error { return os.Remove(filepath.Join(dir, BrokerSeed)) },
		"old seed":   func(dir, old string) error { return os.WriteFile(filepath.Join(dir, BrokerSeed), []byte(old), 0o600) },
		"no secret":  func(dir, _ string) error { return os.Remove(filepath.Join(dir, BrokerSecret)) },
		"no history": func(dir, _ string) error { return os.Remove(filepath.Join(dir, BrokerKeysFile)) },
	} {
		dir := t.TempDir()
		before, err := openKeys(dir)
		must(t, err)
		_, err = RotateBrokerKey(dir, time.Now())
		must(t, err)
		must(t, harm(dir, seedOf(t, before.broker)))
		if _, err := openKeys(dir); !errors.Is(err, ErrKeyLost) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := RotateBrokerKey(dir, time.Now()); err == nil {
			t.Errorf("%s: the key is rotated", name)
		}
	}
	dir := t.TempDir()
	_, err := openKeys(dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, BrokerKeysFile), []byte(`[{"key":"U"}]`), 0o600))
	var forged *performatives.HistoryError
	if _, err := openKeys(dir); !errors.As(err, &forged) {
		t.Errorf("a history that is none: %v", err)
	}
	if _, err := RotateBrokerKey(t.TempDir(), time.Now()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory without a broker: %v", err)
	}
}

// A clock that was ahead has dated what the old key signed: a rotation would make that a fault.
func TestRotationByAWrongClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, err := openKeys(dir)
	must(t, err)
	block, now := filepath.Join(dir, "1.blk"), time.Now()
	must(t, os.WriteFile(block, nil, 0o600))
	must(t, os.Chtimes(block, now, now.Add(time.Hour)))
	if _, err := RotateBrokerKey(dir, now); !errors.Is(err, ErrClock) {
		t.Errorf("an hour before the store's newest file: %v", err)
	}
	after, err := openKeys(dir)
	must(t, err)
	if public(t, after.broker) != public(t, before.broker) {
		t.Error("the key was replaced")
	}
	_, err = RotateBrokerKey(dir, now.Add(time.Hour))
	must(t, err)
}

// What was sealed before there were rotations still opens: the keys that derive from the secret are those that
// derived from the raw seed.
func TestSecretAsBefore(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	must(t, err)
	secret, err := secretOf(pair)
	must(t, err)
	seed, err := pair.Seed()
	must(t, err)
	_, raw, err := nkeys.DecodeSeed(seed)
	must(t, err)
	before, err := hkdf.Key(sha256.New, raw, nil, "parley hosted keys v1", 32)
	must(t, err)
	now, err := hkdf.Expand(sha256.New, secret, "parley hosted keys v1", 32)
	must(t, err)
	if string(before) != string(now) || string(secret) == string(raw) {
		t.Error("another key derives")
	}
}

func TestOldKey(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if old(now.AddDate(0, -11, 0), now) != "" || old(now.AddDate(-1, 0, -2), now) == "" {
		t.Error("a year is no year")
	}
}
