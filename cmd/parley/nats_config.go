package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/server"
)

func natsConfigCommand() *cobra.Command {
	var data, format string
	var shards int
	cmd := &cobra.Command{
		Use: "nats-config", Short: "print the configuration of an external NATS server", Args: args(cobra.NoArgs),
		Long: `Prints the configuration that an external NATS server needs for 'parley serve
--nats': accounts that isolate principals from the transcripts, logins that the
broker authorizes, and the public keys of --data, which are generated if they are
missing. Where brokers share the server, it also routes each act to the partition
owner of its session. It contains no secrets. Every server of a cluster needs it
before the broker starts.

--format conf prints a nats-server.conf for a server in config mode, where
principals log in with nkeys. --format nsc prints nsc commands for a server in
operator mode, where .creds files work too; it also writes the broker's own
credentials to ` + server.CredsFile + ` in --data, for serve --creds.

Run serve with the same --data, or with copies of its files on other machines.`,
		Example: `  parley nats-config --data /var/lib/parley > parley.conf
  nats-server -c parley.conf
  parley serve --data /var/lib/parley --nats nats://127.0.0.1:4222

  parley nats-config --data /var/lib/parley --format nsc > setup.sh
  sh setup.sh
  nats-server -c parley.conf
  parley serve --data /var/lib/parley --nats nats://127.0.0.1:4222 \
    --creds /var/lib/parley/` + server.CredsFile,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := map[string]func(string, int) (string, error){"conf": server.Config, "nsc": server.Nsc}[format](data, shards)
			if errors.Is(err, server.ErrShardCount) {
				return usage(err)
			}
			if err != nil {
				return err
			}
			return show(cmd, map[string]string{"format": format, "text": text}, func(render.Style) string { return text })
		},
	}
	cmd.Flags().StringVar(&data, "data", defaultData, "the broker's data `DIR`, which holds its keys")
	cmd.Flags().StringVar(&format, "format", "conf", "`FORMAT`: conf (config mode) or nsc (operator mode)")
	cmd.Flags().IntVar(&shards, "shards", 1, "`N`, as for serve")
	return cmd
}
