package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store/backup"
)

func restoreCommand() *cobra.Command {
	s := &serve{}
	var check, archive bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "restore a broker's store from a backup", Args: args(cobra.ExactArgs(1)),
		Long: `Restores streams with their positions and read positions, and the keys. The target
is a --data directory without a store, for an embedded server, or an external server
(--nats) without these streams, configured as before. No store and no key is ever
overwritten. No broker may run on the target.

--data gets the key files that it lacks. It may have the broker's key of the backup, or
a newer one of the same history (broker.keys.json), which stays; with any other,
nothing is restored. Logins that it has stay as they are.

FILE - is standard input, which is copied to a temporary file first.

A restore that was stopped leaves a directory or a server on which no broker starts.
The next restore removes what it has left, and begins anew.

The next broker recovers side effects that the backup lacks, as after a crash. Then
'parley session verify --all' checks the result.

--check verifies the checksums of the file and restores nothing. Backups of earlier
versions have none of keys and of the streams' settings.`,
		Example: `  parley restore parley.tar --data /var/lib/parley-restored
  parley restore parley.tar --nats nats://nats.example.com --replicas 3
  parley restore parley.tar --check
  parley backup - --data old | parley restore - --data new`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.restoreFile(cmd, args[0], check, backup.Options{Archive: archive})
		},
	}
	restoreFlags(cmd.Flags(), s, &archive)
	cmd.Flags().BoolVar(&check, "check", false, "only verify the file's checksums")
	return cmd
}

func restoreFlags(flags *pflag.FlagSet, s *serve, archive *bool) {
	storeFlags(flags, s)
	flags.StringVar(&s.NATS, "nats", "", "`URL` of an external NATS server (default: restore to an embedded server's store in --data)")
	flags.IntVar(&s.Replicas, "replicas", 0, "`N` replicas of each stream (default: as in the backup; 1 for an embedded server)")
	flags.BoolVar(archive, "archive", false, "create a store with an archive, for serve --archive-after")
}

// restoreFile restores a backup, or only checks it.
func (s *serve) restoreFile(cmd *cobra.Command, name string, check bool, o backup.Options) error {
	file, done, err := openBackup(cmd, name)
	if err != nil {
		return err
	}
	defer done()
	manifest, keys, err := backup.Check(file)
	result := restored{written: written{name, manifest}}
	if err == nil && !check {
		s.Dev = manifest.Dev && s.NATS == ""
		err = s.restore(cmd.Context(), file, keys, o, &result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if check {
		return show(cmd, result.written, func(render.Style) string { return result.written.text() })
	}
	return show(cmd, result, func(render.Style) string { return result.text() })
}

// openBackup opens a backup; done closes it.
func openBackup(cmd *cobra.Command, name string) (file *os.File, done func(), err error) {
	if name == "-" {
		return spooled(cmd)
	}
	if file, err = os.Open(name); err != nil {
		return nil, nil, err
	}
	return file, func() { file.Close() }, nil //nolint:errcheck // it was only read
}

// spooled is a copy of standard input, which a restore reads twice, in a temporary file of the system.
func spooled(cmd *cobra.Command) (file *os.File, remove func(), err error) {
	if file, err = os.CreateTemp("", "parley-*.tar"); err != nil {
		return nil, nil, err
	}
	os.Remove(file.Name()) //nolint:errcheck // a signal ends the process, and must not leave keys behind
	remove = func() {
		file.Close()           //nolint:errcheck // nobody reads it again
		os.Remove(file.Name()) //nolint:errcheck // where it could not be before it was closed
	}
	if _, err = io.Copy(file, cmd.InOrStdin()); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return file, remove, nil
}

// restored is the result of restore.
type restored struct {
	written
	Wrote []string `json:"keysWritten"` // in --data
	Kept  []string `json:"keysKept"`    // that are others in --data than in the backup
}

func (r restored) text() string {
	keys := "no keys written"
	if len(r.Wrote) > 0 {
		keys = "keys written: " + strings.Join(r.Wrote, ", ")
	}
	text := fmt.Sprintf("%s\n  made %s, %d streams, %s\n", r.File, r.At.Format(time.RFC3339), len(r.Streams), keys)
	if len(r.Kept) > 0 {
		text += "  kept, other than in the backup: " + strings.Join(r.Kept, ", ") + "\n"
	}
	return text
}

// restore writes the keys and creates the streams.
func (s *serve) restore(ctx context.Context, file io.ReadSeeker, keys []backup.File, o backup.Options, result *restored) (err error) {
	if err := s.external(); err != nil {
		return usage(err)
	}
	files := map[string][]byte{}
	for _, key := range keys {
		files[filepath.Base(key.Name)] = key.Data
	}
	has, err := server.Keys(s.Data)
	switch {
	case err != nil:
		return err
	case s.NATS == "" && s.Replicas > 1:
		return usage(errors.New("--replicas needs --nats: an embedded server is one alone"))
	case len(keys) == 0 && has[server.BrokerSeed] == nil:
		return advise(errors.New("the backup has no keys"), "Copy the key files that were kept elsewhere to %s first: %s, and %s and %s if the key was rotated.",
			s.Data, server.BrokerSeed, server.BrokerKeysFile, server.BrokerSecret)
	}
	if result.Wrote, result.Kept, err = server.KeysBack(s.Data, files); errors.Is(err, server.ErrOtherKey) {
		return advise(err, "Restore to another --data.")
	} else if err != nil {
		return err
	}
	if s.NATS == "" {
		s.Replicas, s.Listen = 1, "127.0.0.1:-1" // a random port that no client knows
		var finish func(error) error
		if finish, err = server.BeginRestore(s.Data); err != nil {
			return err
		}
		defer func() { err = finish(err) }()
	}
	for _, name := range result.Wrote {
		if err := server.WriteSecret(filepath.Join(s.Data, name), files[name]); err != nil {
			return err
		}
	}
	nc, stop, err := server.Store(s.Options)
	if err != nil {
		return s.explainStart(err)
	}
	defer stop()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	o.Replicas = s.Replicas
	_, err = backup.Restore(ctx, nc, file, o)
	return err
}
