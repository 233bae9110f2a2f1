package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/server"
)

func natsConfigCommand() *cobra.Command {
	var data, format string
	cmd := &cobra.Command{
		Use: "nats-config", Short: "print the configuration of a NATS server elsewhere", Args: args(cobra.NoArgs),
		Long: `Prints what makes a NATS server elsewhere one that ` + "`parley serve --nats`" + ` uses:
accounts that keep principals away from the transcripts, logins that the broker
answers, and the public halves of the keys in --data, which are made if they are
not there. Where several brokers share the work, it also has the server bring each act
to the broker that knows its session. Nothing in it is secret. The server needs it before the broker starts;
every server of a cluster needs the same.

--format conf is a nats-server.conf for a server in config mode, where principals
log in with their nkeys. --format nsc are the nsc commands for a server in operator
mode, where their .creds files log in too. It also writes the broker's own
credentials, ` + server.CredsFile + `, into --data; serve --creds takes them.

Give serve the same --data, or copies of its files where more than one broker
runs.`,
		Example: `  parley nats-config --data /var/lib/parley > parley.conf
  nats-server -c parley.conf
  parley serve --data /var/lib/parley --nats nats://127.0.0.1:4222

  parley nats-config --data /var/lib/parley --format nsc > setup.sh
  sh setup.sh
  nats-server -c parley.conf
  parley serve --data /var/lib/parley --nats nats://127.0.0.1:4222 --creds /var/lib/parley/` + server.CredsFile,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configuration := map[string]func(string) (string, error){"conf": server.Config, "nsc": server.Nsc}[format]
			if configuration == nil {
				return usage(errors.New("--format is conf or nsc"))
			}
			text, err := configuration(data)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", defaultData, "directory of the broker's keys")
	cmd.Flags().StringVar(&format, "format", "conf", "conf (config mode) or nsc (operator mode)")
	return cmd
}
