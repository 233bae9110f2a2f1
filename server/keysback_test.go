package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A backup's keys go where they are missing, beside the same key or a newer one of the same history, and never
// beside another.
func TestKeysBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := func(name string) string {
		data := filepath.Join(dir, name)
		_, err := server.Config(data, 1)
		testkit.Must(t, err)
		return data
	}
	copied := func(name string, files map[string][]byte, without ...string) string {
		data := filepath.Join(dir, name)
		testkit.Must(t, os.Mkdir(data, 0o700))
		for file, text := range files {
			if !slices.Contains(without, file) {
				testkit.Must(t, server.WriteSecret(filepath.Join(data, file), text))
			}
		}
		return data
	}
	files := func(data string) map[string][]byte {
		all, err := server.Keys(data)
		testkit.Must(t, err)
		return all
	}
	first := made("first")
	old := files(first)
	_, err := server.RotateBrokerKey(first, time.Now())
	testkit.Must(t, err)
	middle := files(first)
	_, err = server.RotateBrokerKey(first, time.Now())
	testkit.Must(t, err)
	logins := []string{"broker.login.nk", "callout.nk", "issuer.nk", "operator.nk", "system.nk"}
	elsewhere := made("elsewhere")
	testkit.Must(t, os.Remove(filepath.Join(elsewhere, server.BrokerSeed)))
	for _, c := range []struct {
		data         string
		backup       map[string][]byte
		lacks, keeps []string
		err          error
	}{
		{data: filepath.Join(dir, "none"), backup: old, lacks: append([]string{"broker.login.nk", "broker.nk"}, logins[1:]...)},
		{data: copied("same", old), backup: old},
		{data: copied("part", old, "operator.nk", "broker.nk"), backup: old, lacks: []string{"broker.nk", "operator.nk"}},
		{data: copied("whole", middle, "broker.secret"), backup: middle, lacks: []string{"broker.secret"}},
		{data: elsewhere, backup: old, lacks: []string{"broker.nk"}, keeps: logins},
		{data: first, backup: old, keeps: []string{"broker.nk"}},
		{data: first, backup: middle, keeps: []string{"broker.keys.json", "broker.nk"}},
		{data: copied("older", old), backup: middle, err: server.ErrOtherKey},
		{data: made("other"), backup: old, err: server.ErrOtherKey},
		{data: made("another"), backup: middle, err: server.ErrOtherKey},
		{data: copied("torn", middle, "broker.secret"), backup: old, keeps: []string{"broker.nk"}, err: server.ErrKeyLost},
	} {
		lacks, keeps, err := server.KeysBack(c.data, c.backup)
		if !errors.Is(err, c.err) || err == nil && (!slices.Equal(lacks, c.lacks) || !slices.Equal(keeps, c.keeps)) {
			t.Errorf("%s lacks %v and keeps %v: %v", filepath.Base(c.data), lacks, keeps, err)
		}
	}
}
