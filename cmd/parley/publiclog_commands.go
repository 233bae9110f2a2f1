package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/inclusion"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/render"
)

func logCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "log", Short: "verify and follow the public log",
		Long: `The public log has one leaf for each agreement and for each session that has ended.
Its signed checkpoints commit the broker to them: a leaf cannot be changed, moved or
taken out later. The broker serves it over HTTP at /log/ (C2SP tlog-tiles).`,
	}, logKey(), logVerify(), logMonitor()))
}

func logKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "print the key that verifies the log", Args: args(cobra.NoArgs),
		Long:    "Prints the verifier key of the broker's log: its origin, a hash, and the key.",
		Example: "  parley log key > log.key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				info, err := c.Broker(ctx)
				if err == nil && info.Log.Key == "" {
					err = errors.New("the broker publishes no log")
				}
				if err != nil {
					return err
				}
				return show(cmd, info.Log, func(render.Style) string { return info.Log.Key + "\n" })
			})
		},
	}
}

func logVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "read the whole log and check it", Args: args(cobra.NoArgs),
		Long: `Reads every leaf and every tile of the log, and checks that they have the root hash
of its signed checkpoint, and that nothing is in the log twice.`,
		Example: "  parley log verify --log-url https://acme.com/log --log-key \"$(cat log.key)\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := openLog(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			found, err := l.whole()
			if err != nil {
				return err
			}
			return show(cmd, map[string]any{
				"origin": found.Origin, "leaves": found.Tree.N, "agreements": found.agreements, "sessions": found.sessions,
				"rootHash": found.Tree.Hash.String(), "ok": true,
			}, func(render.Style) string {
				return fmt.Sprintf("ok     %s  %d leaves: %d agreements, %d sessions\n       root hash %s\n",
					render.Clean(found.Origin), found.Tree.N, found.agreements, found.sessions, found.Tree.Hash)
			})
		},
	}
	logFlags(cmd)
	return cmd
}

func logMonitor() *cobra.Command {
	var file string
	var interval time.Duration
	var once bool
	cmd := &cobra.Command{
		Use: "monitor", Short: "follow the log and check that it only grows", Args: args(cobra.NoArgs),
		Long: `Prints each new leaf, and checks that each checkpoint extends the one before. The
newest checkpoint is kept in --state: compare it with what others have, and give it to
'parley serve --log-resume' after a restore. A log that was changed ends the command
with an error.`,
		Example: "  parley log monitor --log-url https://acme.com/log --state acme.checkpoint",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval <= 0 {
				return usage(errors.New("--interval is a duration such as 10s"))
			}
			l, err := openLog(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			for {
				if err := l.follow(cmd, file); err != nil || once {
					return err
				}
				if err := background.Pause(cmd.Context(), interval); err != nil {
					return err
				}
			}
		},
	}
	logFlags(cmd)
	cmd.Flags().StringVar(&file, "state", "log-checkpoint", "`FILE` of the newest checkpoint that was checked")
	cmd.Flags().DurationVar(&interval, "interval", 10*time.Second, "time between two looks at the log")
	cmd.Flags().BoolVar(&once, "once", false, "look once")
	return cmd
}

// follow checks that the log extends the checkpoint in a file, prints the new leaves, and
// puts the new checkpoint into the file.
func (l *publicLog) follow(cmd *cobra.Command, file string) error {
	var before inclusion.Checkpoint
	kept, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if before, err = inclusion.Open(string(kept), l.key); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	now, signed, err := l.checkpoint()
	if err != nil {
		return err
	}
	if err := l.extends(before.Tree, now.Tree); err != nil {
		return err
	}
	reader := tlog.TileHashReader(now.Tree, l)
	if err := l.leaves(before.Tree.N, now.Tree.N, func(index int64, leaf []byte) error {
		proven, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, index)})
		if err != nil {
			return err
		}
		if proven[0] != tlog.RecordHash(leaf) {
			return errors.New("it is not the one of the tree")
		}
		return say(cmd, render.Clean(string(leaf))+"\n")
	}); err != nil {
		return err
	}
	if string(kept) == signed {
		return nil
	}
	return os.WriteFile(file, []byte(signed), 0o600)
}

// extends checks that a tree has all leaves of one before, at their places.
func (l *publicLog) extends(before, now tlog.Tree) error {
	switch {
	case now.N < before.N:
		return fmt.Errorf("the log has shrunk: it had %d leaves and has %d", before.N, now.N)
	case before.N == 0:
		return nil
	}
	proof, err := tlog.ProveTree(now.N, before.N, tlog.TileHashReader(now, l))
	if err != nil {
		return err
	}
	if err := tlog.CheckTree(proof, now.N, now.Hash, before.N, before.Hash); err != nil {
		return fmt.Errorf("the log was changed: its first %d leaves are others: %w", before.N, err)
	}
	return nil
}
