package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/node"
)

func natsConfigCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "nats-config", Short: "print the configuration of a NATS server elsewhere", Args: args(cobra.NoArgs),
		Long: `Prints a nats-server.conf for the NATS server that ` + "`parley serve --nats`" + ` uses:
accounts that keep principals away from the transcripts, logins that the broker
answers, and the public halves of the keys in --data, which are made if they are
not there. Nothing in it is secret. The server needs it before the broker starts;
every server of a cluster needs the same.

Give serve the same --data, or copies of its *.nk files where more than one
broker runs.`,
		Example: `  parley nats-config --data /var/lib/parley > parley.conf
  nats-server -c parley.conf
  parley serve --data /var/lib/parley --nats nats://127.0.0.1:4222`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := node.Config(data)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", defaultData, "directory of the broker's keys")
	return cmd
}
