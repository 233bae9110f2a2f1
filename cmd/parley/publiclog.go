package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	signednote "golang.org/x/mod/sumdb/note"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client/publiclog"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
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
	var receipts bool
	cmd := &cobra.Command{
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
				return show(cmd, info.Log, func(render.Style) string {
					if receipts {
						return info.Log.Receipts
					}
					return info.Log.Key + "\n"
				})
			})
		},
	}
	cmd.Flags().BoolVar(&receipts, "receipts", false, "the key of COSE Receipts, as PEM")
	return cmd
}

func logVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "read the whole log and check it", Args: args(cobra.NoArgs),
		Long: `Reads every leaf and every tile of the log, and checks that they have the root hash
of its signed checkpoint, and that nothing is in the log twice.`,
		Example: "  parley log verify --log-url https://acme.com/log --log-key \"$(cat log.key)\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := openLog(cmd)
			if err != nil {
				return err
			}
			found, err := l.Whole(cmd.Context())
			if err != nil {
				return err
			}
			return show(cmd, map[string]any{
				"origin": found.Origin, "leaves": found.Tree.N, "agreements": found.Agreements, "sessions": found.Sessions,
				"rootHash": found.Tree.Hash.String(), "ok": true,
			}, func(render.Style) string {
				return fmt.Sprintf("ok     %s  %s: %s, %s\n       root hash %s\n", render.Clean(found.Origin), render.Count(int(found.Tree.N), "leaf", "leaves"),
					render.Count(found.Agreements, "agreement", "agreements"), render.Count(found.Sessions, "session", "sessions"), found.Tree.Hash)
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
			l, err := openLog(cmd)
			if err != nil {
				return err
			}
			for {
				if err := followLog(cmd, l, file); err != nil || once {
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

// followLog checks that the log extends the checkpoint in a file, prints the new leaves, and
// puts the new checkpoint into the file.
func followLog(cmd *cobra.Command, l *publiclog.Log, file string) error {
	var before inclusion.Checkpoint
	kept, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if before, err = l.Open(string(kept)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	signed, err := l.Follow(cmd.Context(), before.Tree, func(leaf []byte) error { return say(cmd, render.Clean(string(leaf))+"\n") })
	if err != nil || string(kept) == signed {
		return err
	}
	return os.WriteFile(file, []byte(signed), 0o600)
}

const defaultLogURL = "http://127.0.0.1:8080/log"

// logFlags are the flags of what reads the log.
func logFlags(cmd *cobra.Command) {
	cmd.Flags().String("log-url", defaultLogURL, "`URL` of the public log")
	cmd.Flags().String("log-key", "", "the log's `KEY`, as 'parley log key' prints it (default: ask the broker)")
	witnessFlag(cmd)
}

func witnessFlag(cmd *cobra.Command) {
	cmd.Flags().StringArray("witness-key", nil, "the `KEY` of a witness that must have cosigned the checkpoint; can be repeated")
}

// witnessesIn are those that --witness-key names.
func witnessesIn(cmd *cobra.Command) (all []signednote.Verifier, err error) {
	keys, err := cmd.Flags().GetStringArray("witness-key")
	for _, key := range keys {
		w, err := inclusion.ParseWitness(key)
		if err != nil {
			return nil, usage(fmt.Errorf("--witness-key: %w", err))
		}
		all = append(all, w)
	}
	return all, err
}

// trustLog reads --log-key and --witness-key of what checks a file offline.
func trustLog(cmd *cobra.Command, trust *agreement.Trust) (err error) {
	if trust.Witnesses, err = witnessesIn(cmd); err != nil {
		return err
	}
	key := text(cmd, "log-key")
	if key == "" {
		if len(trust.Witnesses) > 0 {
			return usage(errors.New("--witness-key cosigns the public log's checkpoint: give its --log-key, too"))
		}
		return nil
	}
	if trust.Log, err = inclusion.ParseKey(key); err != nil {
		return usage(fmt.Errorf("--log-key: %w", err))
	}
	return nil
}

// openLog finds the log that the flags name.
func openLog(cmd *cobra.Command) (*publiclog.Log, error) {
	key := text(cmd, "log-key")
	if key == "" {
		if err := with(cmd, func(ctx context.Context, c connection) error {
			info, err := c.Broker(ctx)
			key = info.Log.Key
			return err
		}); err != nil {
			return nil, err
		}
	}
	verifier, err := inclusion.ParseKey(key)
	if err != nil {
		return nil, usage(fmt.Errorf("--log-key: %w", err))
	}
	witnesses, err := witnessesIn(cmd)
	if err != nil {
		return nil, err
	}
	l, err := publiclog.New(text(cmd, "log-url"), verifier, witnesses)
	if err != nil {
		return nil, usage(fmt.Errorf("--log-url: %w", err))
	}
	files, err := tlsFiles(cmd)
	if err != nil {
		return nil, err
	}
	transport, err := files.Web()
	if err != nil {
		return nil, err
	}
	l.Through(transport)
	return l, nil
}
