package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/server"
)

// reloadable reports whether a key of the configuration file changes at run time.
func reloadable(key string) bool {
	switch key {
	case "log-level", "escalations", "notify", "sign-in":
		return true
	}
	return strings.HasPrefix(key, "limit-")
}

// givenAgain notes which flags are set now. What it returns makes a serve with the same ones, and with
// the configuration file as it is by then.
func givenAgain(flags *pflag.FlagSet) func() (*serve, *pflag.FlagSet, error) {
	given := map[string][]string{}
	for _, f := range append(keysOf(flags), flags.Lookup(configFlag)) {
		if list, ok := f.Value.(pflag.SliceValue); ok && f.Changed {
			given[f.Name] = list.GetSlice()
		} else if f.Changed {
			given[f.Name] = []string{f.Value.String()}
		}
	}
	return func() (*serve, *pflag.FlagSet, error) {
		s, flags := newServe()
		for name, values := range given {
			f := flags.Lookup(name)
			list, ok := f.Value.(pflag.SliceValue)
			set := func() error { return f.Value.Set(values[0]) }
			if ok {
				set = func() error { return list.Replace(values) }
			}
			if err := set(); err != nil {
				return nil, nil, flagFault("--"+name, err)
			}
			f.Changed = true
		}
		if s.config != "" {
			if err := readConfig(s.config, flags); err != nil {
				return nil, nil, err
			}
		}
		return s, flags, s.complete(flags, io.Discard)
	}
}

// reloads reads the configuration again at each SIGHUP, until the broker stops, or must stop.
func (s *serve) reloads(ctx context.Context, cmd *cobra.Command, hangups <-chan os.Signal, n *server.Server, again func() (*serve, *pflag.FlagSet, error)) error {
	before := atRunTime(cmd.Flags(), cmd.Flags())
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-n.MustStop():
			return s.explainStart(err)
		case <-hangups:
			next, flags, err := again()
			if err == nil {
				err = n.Reload(ctx, next.Options)
			}
			if err != nil {
				if wrong, ok := errors.AsType[misused](err); ok {
					err = wrong.error
				}
				s.Log.Error("SIGHUP: the configuration cannot be used; the one before stays", zap.Error(err))
				continue
			}
			s.level.SetLevel(next.level.Level())
			if keys := needRestart(cmd.Flags(), flags); len(keys) > 0 {
				s.Log.Warn("SIGHUP: restart needed for: " + strings.Join(keys, ", "))
			}
			now := atRunTime(cmd.Flags(), flags)
			s.note(cmd, "parley: SIGHUP: configuration and certificates are read again; "+changedKeys(before, now), zap.String("broker", n.ID))
			before = now
		}
	}
}

// atRunTime has what a reload takes: by key its value and, if it names a file, which contents that has.
func atRunTime(started, now *pflag.FlagSet) map[string]string {
	all := map[string]string{}
	for _, f := range keysOf(now) {
		certificate := f.Name == "tls-cert" || f.Name == "tls-key"
		if certificate { // which stays where it was at the start
			f = started.Lookup(f.Name)
		}
		switch value := f.Value.String(); {
		case certificate || reloadable(f.Name) && f.Value.Type() == "file":
			var text []byte
			if info, err := os.Stat(value); err == nil && info.Mode().IsRegular() { // a pipe gives what it has only once
				text, _ = os.ReadFile(value) // a reload says why it cannot be read
			}
			all[f.Name] = fmt.Sprintf("%s %x", value, sha256.Sum256(text))
		case reloadable(f.Name):
			all[f.Name] = value
		}
	}
	return all
}

// changedKeys says which keys have other values or files than before.
func changedKeys(before, now map[string]string) string {
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before[name] != now[name] {
			keys = append(keys, name)
		}
	}
	if len(keys) == 0 {
		return "nothing that counts without a restart has changed since it was read last"
	}
	return "changed: " + strings.Join(keys, ", ")
}

// needRestart are the keys that have other values now than at the start, and do not change at run time.
func needRestart(started, now *pflag.FlagSet) (keys []string) {
	for _, f := range keysOf(now) {
		if before := started.Lookup(f.Name); before.Value.String() != f.Value.String() && !reloadable(f.Name) {
			keys = append(keys, f.Name)
		}
	}
	return keys
}
