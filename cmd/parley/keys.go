package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

func keysCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "keys", Short: "replace the broker's key, and show those that it has had",
		Long: `The broker's key signs the receipt of every entry. When it is replaced, the old and
the new key sign which follows which. Who trusts one of them verifies with this
history what any of them has signed, each in its time.`,
	}, keysRotate(), connects(keysShow()))
}

// ofBroker wants the one word "broker": a rotation must not be a slip.
func ofBroker(_ *cobra.Command, args []string) error {
	if !slices.Equal(args, []string{"broker"}) {
		return usage(errors.New("name the key: broker"))
	}
	return nil
}

func keysRotate() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "rotate broker", Short: "replace the key that signs receipts", Args: ofBroker,
		Long: `Makes a new key that signs receipts, in broker.nk of --data, and adds it to
broker.keys.json. The old seed is removed. Sessions go on, and verify: give
broker.keys.json to those who know the old key. Hosted agents, tokens and the public
log go on as before, by broker.secret.

Stop all brokers of the installation first, and set the clock: from now on, what the
old key signs is a fault. Then copy broker.nk, broker.keys.json and broker.secret to
the other brokers, and back them up. Killed at any point, the directory has either
key, whole.`,
		Example: "  parley keys rotate broker --data /var/lib/parley",
		RunE: func(cmd *cobra.Command, _ []string) error {
			history, err := server.RotateBrokerKey(data, time.Now())
			switch {
			case errors.Is(err, server.ErrInUse):
				return advise(fmt.Errorf("%s: %w", data, err), "Stop every broker of the installation first.")
			case errors.Is(err, server.ErrClock):
				return advise(err, "Set the clock. If it is right now, wait until it says so: what the old key has signed after a rotation is a fault. Touch the file if it is none of the broker's.")
			case errors.Is(err, fs.ErrNotExist):
				return advise(err, "Set --data to the data directory of a broker.")
			case err != nil:
				return err
			}
			return show(cmd, history, func(render.Style) string {
				return fmt.Sprintf("%s\n  is the broker's key now. Copy %s, %s and %s to the other brokers, and back them up.\n",
					history.Newest(), filepath.Join(data, server.BrokerSeed), server.BrokerKeysFile, server.BrokerSecret)
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", defaultData, "the broker's data `DIR`, which holds its keys")
	return cmd
}

func keysShow() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use: "show broker", Short: "print the keys that have signed receipts", Args: ofBroker,
		Long: `Prints every key that has signed the broker's receipts, the first one first. With
--json it is what the --broker-keys of verify commands takes. With --offline no
broker has to run: the key files in --data say it.`,
		Example: "  parley keys show broker --json > broker.keys.json\n  parley keys show broker --offline --data /var/lib/parley",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if offline {
				history, err := server.BrokerKeys(text(cmd, "data"))
				if err != nil {
					return err
				}
				return showKeys(cmd, history, "")
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				info, err := c.Broker(ctx)
				if err == nil {
					_, err = info.TrustedKeys("")
				}
				if err != nil {
					return err
				}
				history := info.Keys
				if len(history) == 0 {
					history = performatives.KeyHistory{{Key: info.Key}}
				}
				return showKeys(cmd, history, info.Since)
			})
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "read the key files in --data, and ask no broker")
	return cmd
}

// showKeys prints a history of keys. since is when its only key is from, if that is known.
func showKeys(cmd *cobra.Command, history performatives.KeyHistory, since string) error {
	return show(cmd, history, func(render.Style) string {
		var b strings.Builder
		for i, r := range history {
			at := r.Since
			if i == 0 {
				at = "the first"
				if len(history) == 1 && since != "" {
					at = since
				}
			}
			fmt.Fprintf(&b, "%s  %s\n", r.Key, at)
		}
		return b.String()
	})
}

// brokerTrust are the flags that say which keys of a broker a verifier trusts.
type brokerTrust struct {
	key  performatives.Key
	file string
	keys performatives.TrustedKeys // of the file; none without one
}

func (b *brokerTrust) flags(flags *pflag.FlagSet, otherwise string) {
	flags.StringVar((*string)(&b.key), "broker-key", "", "the broker's public `KEY` (default: "+otherwise+")")
	flags.StringVar(&b.file, "broker-keys", "", "`FILE` with the history of the broker's keys, as 'parley keys show broker --json' prints it, for what was signed with another one (its newest key is trusted without --broker-key)")
}

// read reads and checks what the flags name.
func (b *brokerTrust) read() error {
	if b.key != "" && !b.key.Valid() {
		return usage(errors.New("--broker-key is a public user nkey: U and 55 more letters and digits"))
	}
	if b.file == "" {
		return nil
	}
	text, err := os.ReadFile(b.file)
	if err != nil {
		return err
	}
	history, err := performatives.ReadKeyHistory(text)
	if err != nil {
		return fmt.Errorf("--broker-keys %s: %w", b.file, err)
	}
	if b.key == "" {
		b.key = history.Newest()
	}
	if b.keys, err = history.Trust(b.key); err != nil {
		return fmt.Errorf("--broker-keys %s: %w", b.file, err)
	}
	return nil
}
