package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store/backup"
)

// storeFlags are the flags to log in to the streams as the broker does.
func storeFlags(flags *pflag.FlagSet, s *serve) {
	flags.StringVar(&s.Data, "data", defaultData, "the broker's data `DIR`, which holds its keys")
	flags.StringVar(&s.creds, "creds", "", "NATS credentials `FILE` of the broker (default: broker.login.nk in --data)")
	flags.StringVar(&s.context, "context", "", "`NAME` of a nats CLI context with the broker's URL and login")
	flags.StringVar(&s.nkey, "nkey", "", "`FILE` with the seed of the broker's nkey")
	flags.BoolVar(&s.SharedKeys, "shared-keys", false, "log in with the key that signs receipts, as before login keys; for one release")
	natsCA(flags, s)
	flags.StringVar(&s.TLS.CA, "tls-ca", "", "PEM `FILE` with the CA of the server's certificate without --nats-ca (default: the system's CAs)")
	flags.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM `FILE` with a client certificate, for mutual TLS")
	flags.StringVar(&s.TLS.Key, "tls-key", "", "PEM `FILE` with the key of --tls-cert")
}

func backupCommand() *cobra.Command {
	s := &serve{}
	var withoutKeys bool
	cmd := &cobra.Command{
		Use: "backup FILE | DIR | -", Short: "back up a running broker's store and keys to a file", Args: args(cobra.ExactArgs(1)),
		Long: `Backs up transcripts, the registry, inboxes with their read positions, timers, the
escalation inbox and the keys in --data to one file, mode 0600, while brokers keep
running. In a directory, the file's name contains the time. No file is replaced. To
standard output (-) it goes once it is complete, from a temporary file in --data.

Whoever has the file can act as the broker, because it contains broker.nk. If you
omit the keys with --without-keys, back them up separately: a store is restored to
them, and no broker starts on it with another key. The file is a tar of JetStream
snapshots.`,
		Example: `  parley backup /var/backups/parley.tar --data /var/lib/parley
  parley backup /var/backups/ --nats nats://nats.example.com
  parley backup - --data /var/lib/parley | age -r KEY > parley.tar.age
  parley restore /var/backups/parley.tar --check`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && terminal(cmd) != nil {
				return usage(errors.New("standard output is a terminal: send the backup to a file or a program"))
			}
			name := destination(args[0], time.Now())
			if err := creatable(name); err != nil {
				return err
			}
			if s.NATS == "" && s.context == "" {
				s.NATS, _ = lookup("PARLEY_URL")
			}
			if err := s.external(); err != nil {
				return usage(err)
			}
			s.NATS = cmp.Or(s.NATS, nats.DefaultURL)
			var keys []backup.File
			if !withoutKeys {
				var err error
				if keys, err = keyFiles(s.Data); err != nil {
					return err
				}
			}
			nc, stop, err := server.Store(s.Options)
			if err != nil {
				return s.explainStart(err)
			}
			defer stop()
			if !withoutKeys {
				record, err := backup.KeyRecord(cmd.Context(), nc)
				if err == nil {
					err = server.CheckKeys(s.Data, record)
				}
				if err != nil {
					return s.explainBackup(err)
				}
				if keys, err = keyFiles(s.Data); err != nil { // those that were checked
					return err
				}
			}
			var manifest backup.Manifest
			if name == "-" {
				manifest, err = s.pipeBackup(cmd.Context(), nc, keys, cmd.OutOrStdout())
				cmd.SetOut(cmd.ErrOrStderr())
			} else {
				manifest, err = writeBackup(cmd.Context(), nc, keys, name)
			}
			if err != nil {
				return s.explainBackup(err)
			}
			return show(cmd, written{name, manifest}, func(render.Style) string { return written{name, manifest}.text() })
		},
	}
	storeFlags(cmd.Flags(), s)
	cmd.Flags().StringVar(&s.NATS, "nats", "", "`URL` of the NATS server, embedded or external (default: PARLEY_URL, or "+nats.DefaultURL+")")
	cmd.Flags().BoolVar(&withoutKeys, "without-keys", false, "omit the keys")
	return cmd
}

// keyFiles are the key files of a data directory, which has the broker's key.
func keyFiles(dir string) ([]backup.File, error) {
	found, err := server.Keys(dir)
	if err != nil {
		return nil, err
	}
	if found[server.BrokerSeed] == nil {
		return nil, advise(fmt.Errorf("%s is not there", filepath.Join(dir, server.BrokerSeed)),
			"Set --data to the directory with the broker's key files, or omit the keys with --without-keys.")
	}
	var files []backup.File
	for _, name := range slices.Sorted(maps.Keys(found)) {
		files = append(files, backup.File{Name: name, Data: found[name]})
	}
	return files, nil
}

// explainBackup adds to the error of a backup what the user can do about it. No broker starts on a backup with other keys.
func (s *serve) explainBackup(err error) error {
	switch {
	case errors.Is(err, backup.ErrUnavailable):
		return advise(err, "If servers of a cluster are down, start them: a stream needs a majority. Else the server's log says why.")
	case errors.Is(err, server.ErrKeyLost), errors.Is(err, server.ErrKeyReplaced):
		return advise(fmt.Errorf("the keys in %s are not the store's: %w", s.Data, err),
			"Set --data to the directory of a broker that runs on it, or omit the keys with --without-keys.")
	}
	return err
}

// destination returns the path of the backup file.
func destination(arg string, now time.Time) string {
	if info, err := os.Stat(arg); strings.HasSuffix(arg, string(filepath.Separator)) || err == nil && info.IsDir() {
		name := filepath.Join(arg, "parley-"+now.UTC().Format("20060102T150405Z"))
		for n, more := 2, ""; ; n, more = n+1, fmt.Sprintf("_%d", n) { // in the same second
			if _, err := os.Lstat(name + more + ".tar"); err != nil {
				return name + more + ".tar"
			}
		}
	}
	return arg
}

// creatable refuses the path of a backup file that would take the place of anything, or has no directory.
func creatable(name string) error {
	if name == "-" {
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return usage(fmt.Errorf("%s already exists; name another file, or a directory", name))
	}
	dir := filepath.Dir(name)
	if info, err := os.Stat(dir); err != nil {
		return usage(fmt.Errorf("the directory of the backup: %w", err))
	} else if !info.IsDir() {
		return usage(fmt.Errorf("%s is no directory", dir))
	}
	return nil
}

// writeBackup writes and fsyncs a temporary file, and then gives it its name.
func writeBackup(ctx context.Context, nc *nats.Conn, keys []backup.File, name string) (m backup.Manifest, err error) {
	part, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return m, err
	}
	defer os.Remove(part.Name()) //nolint:errcheck // it may have been renamed
	defer part.Close()           //nolint:errcheck // closed before
	if m, err = backup.Write(ctx, nc, keys, part); err != nil {
		return m, err
	}
	for _, finish := range []func() error{part.Sync, part.Close, func() error { return moveTo(part.Name(), name) }} {
		if err := finish(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// moveTo gives a file another name, which replaces nothing.
func moveTo(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	if err := creatable(to); err != nil { // it was made meanwhile
		return err
	}
	return os.Rename(from, to) // on a file system without links
}

// pipeBackup writes a temporary file, in which snapshots can begin again, and copies it once it is complete.
func (s *serve) pipeBackup(ctx context.Context, nc *nats.Conn, keys []backup.File, to io.Writer) (m backup.Manifest, err error) {
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return m, err
	}
	part, err := os.CreateTemp(s.Data, ".backup-*") // mode 0600
	if err != nil {
		return m, err
	}
	defer os.Remove(part.Name()) //nolint:errcheck // where it could not be before it was closed
	defer part.Close()           //nolint:errcheck // nobody reads it again
	os.Remove(part.Name())       //nolint:errcheck // a broken pipe ends the process, and must not leave keys behind
	if m, err = backup.Write(ctx, nc, keys, part); err != nil {
		return m, err
	}
	if _, err = part.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(to, part)
	}
	return m, err
}

// written is the result of backup, and of what restore checks.
type written struct {
	File string `json:"file"`
	backup.Manifest
}

func (w written) text() string {
	keys := "without keys"
	if len(w.Keys) > 0 {
		keys = "with the keys " + strings.Join(w.Keys, ", ")
	}
	return fmt.Sprintf("%s\n  made %s, %d streams, %s\n", w.File, w.At.Format(time.RFC3339), len(w.Streams), keys)
}
