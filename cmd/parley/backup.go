package main

import (
	"cmp"
	"context"
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

	"github.com/parley-asp/parley/backup"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/server"
)

// storeFlags are how to get at the streams as the broker does.
func storeFlags(flags *pflag.FlagSet, s *serve) {
	flags.StringVar(&s.Data, "data", defaultData, "directory of the broker's keys")
	flags.StringVar(&s.creds, "creds", "", "NATS credentials file that the broker logs in with (default: broker.nk of --data)")
	flags.StringVar(&s.context, "context", "", "context of the nats command line that the broker logs in with")
	flags.StringVar(&s.nkey, "nkey", "", "file with the seed of the nkey that the broker logs in with")
	flags.StringVar(&s.TLS.CA, "tls-ca", "", "PEM file with the CA of the server's certificate (default: those of the system)")
	flags.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM file with a certificate to show, where the server asks for one")
	flags.StringVar(&s.TLS.Key, "tls-key", "", "PEM file with the key of --tls-cert")
}

func backupCommand() *cobra.Command {
	s := &serve{}
	var withoutKeys bool
	cmd := &cobra.Command{
		Use: "backup FILE | DIR", Short: "write all that the broker keeps into a file, while it runs", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the transcripts, the registry, the inboxes with what each principal has read,
the timers, the escalation inbox and the keys of --data into one file, mode 0600,
while brokers go on. In a directory the file gets a name with the time.

Whoever has the file can act as the broker: it holds broker.nk. --without-keys
leaves the keys out; keep them elsewhere, or receipts of what comes after a restore
are signed by another key. The file is a tar of JetStream's own snapshots.`,
		Example: `  parley backup /var/backups/parley.tar --data /var/lib/parley
  parley backup /var/backups/ --nats nats://nats.example.com --data /var/lib/parley
  parley restore /var/backups/parley.tar --check`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.external(); err != nil {
				return err
			}
			s.NATS = cmp.Or(s.NATS, nats.DefaultURL)
			nc, stop, err := server.Store(s.Options)
			if err != nil {
				return s.whyNot(err)
			}
			defer stop()
			var keys []backup.File
			if !withoutKeys {
				if keys, err = keyFiles(s.Data); err != nil {
					return err
				}
			}
			name := destination(args[0], time.Now())
			manifest, err := writeBackup(cmd.Context(), nc, keys, name)
			if err != nil {
				return err
			}
			return show(cmd, written{name, manifest}, func(render.Style) string { return written{name, manifest}.text() })
		},
	}
	storeFlags(cmd.Flags(), s)
	cmd.Flags().StringVar(&s.NATS, "nats", "", "URL of the NATS server, the broker's own or one elsewhere (default "+nats.DefaultURL+")")
	cmd.Flags().BoolVar(&withoutKeys, "without-keys", false, "leave the keys out")
	return cmd
}

func keyFiles(dir string) ([]backup.File, error) {
	found, err := server.Keys(dir)
	if err != nil {
		return nil, err
	}
	var files []backup.File
	for _, name := range slices.Sorted(maps.Keys(found)) {
		files = append(files, backup.File{Name: name, Data: found[name]})
	}
	return files, nil
}

// destination is the file that a backup goes to.
func destination(arg string, now time.Time) string {
	if info, err := os.Stat(arg); strings.HasSuffix(arg, string(filepath.Separator)) || err == nil && info.IsDir() {
		return filepath.Join(arg, "parley-"+now.UTC().Format("20060102T150405Z")+".tar")
	}
	return arg
}

// writeBackup puts the file in its place when it is whole and on disk.
func writeBackup(ctx context.Context, nc *nats.Conn, keys []backup.File, name string) (m backup.Manifest, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return m, err
	}
	part, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return m, err
	}
	defer os.Remove(part.Name()) //nolint:errcheck // it has another name by then
	defer part.Close()           //nolint:errcheck // the second time
	if m, err = backup.Write(ctx, nc, keys, part); err != nil {
		return m, err
	}
	for _, finish := range []func() error{part.Sync, part.Close, func() error { return os.Rename(part.Name(), name) }} {
		if err := finish(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// written is what backup and restore print.
type written struct {
	File string `json:"file"`
	backup.Manifest
}

func (w written) text() string {
	keys := "without keys"
	if len(w.Keys) > 0 {
		keys = "with the keys " + strings.Join(w.Keys, ", ")
	}
	return fmt.Sprintf("%s\n  of %s, %d streams, %s\n", w.File, w.At.Format(time.RFC3339), len(w.Streams), keys)
}

func restoreCommand() *cobra.Command {
	s := &serve{}
	var check, archive bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "make a broker's store of a backup", Args: args(cobra.ExactArgs(1)),
		Long: `Makes the streams of a backup again, at their positions and with what each principal
has read, and the keys: in a new --data directory for a broker with an embedded
server, or on a NATS server elsewhere (--nats) that has none of them; there the keys
go to --data if it has none, and the server needs the same configuration as before.
Nothing is ever written over. No broker may run on it meanwhile.

The next broker that starts derives what the backup had not seen any more, as after
a crash. parley session verify --all then says whether all is in order.

--check reads the file to its end, holds it against its sums and restores nothing.`,
		Example: `  parley restore /var/backups/parley.tar --data /var/lib/parley-again
  parley restore /var/backups/parley.tar --nats nats://nats.example.com --data /var/lib/parley --replicas 3
  parley restore /var/backups/parley.tar --check`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close() //nolint:errcheck // it was only read
			manifest, keys, err := backup.Check(file)
			if err == nil && !check {
				s.Dev = manifest.Dev && s.NATS == ""
				err = s.restore(cmd.Context(), file, keys, backup.Options{Archive: archive})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return show(cmd, written{args[0], manifest}, func(render.Style) string { return written{args[0], manifest}.text() })
		},
	}
	storeFlags(cmd.Flags(), s)
	cmd.Flags().StringVar(&s.NATS, "nats", "", "URL of a NATS server elsewhere, instead of the embedded one's store in --data")
	cmd.Flags().IntVar(&s.Replicas, "replicas", 0, "copies of each stream (default: as many as there were; 1 for an embedded server)")
	cmd.Flags().BoolVar(&archive, "archive", false, "make a store with an archive, for serve --archive-after")
	cmd.Flags().BoolVar(&check, "check", false, "only check that the file is whole")
	return cmd
}

// restore makes keys and streams.
func (s *serve) restore(ctx context.Context, file io.ReadSeeker, keys []backup.File, o backup.Options) error {
	if err := s.external(); err != nil {
		return err
	}
	elsewhere := s.NATS != ""
	if has, err := server.Keys(s.Data); err != nil {
		return err
	} else if !elsewhere || len(has) == 0 {
		if err := server.Empty(s.Data); err != nil {
			return err
		}
		for _, key := range keys {
			if err := server.WriteSecret(filepath.Join(s.Data, filepath.Base(key.Name)), key.Data); err != nil {
				return err
			}
		}
	}
	if !elsewhere {
		s.Listen = "127.0.0.1:-1" // nobody is meant to find it
		s.Replicas = cmp.Or(s.Replicas, 1)
	}
	nc, stop, err := server.Store(s.Options)
	if err != nil {
		return s.whyNot(err)
	}
	defer stop()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	o.Replicas = s.Replicas
	_, err = backup.Restore(ctx, nc, file, o)
	return err
}
