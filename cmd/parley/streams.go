package main

import (
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store/backup"
)

func streamsCommand() *cobra.Command {
	return group(&cobra.Command{Use: "streams", Short: "change how a store is divided into streams"}, reshardCommand())
}

func reshardCommand() *cobra.Command {
	s := &serve{}
	var archive bool
	var shards int
	cmd := &cobra.Command{
		Use: "reshard FILE", Short: "restore a backup with another number of shards", Args: args(cobra.ExactArgs(1)),
		Long: `Restores a backup as 'parley restore' does, into a store whose transcripts, inboxes
and session list have --shards streams each. Of an external server, stop the brokers
before the backup, so that nothing comes after it; of an embedded one, keep agents away
by --listen and --http on other addresses. Then start on the new store with the same
--shards; an external server needs what 'parley nats-config --shards' prints.

Transcripts and what was acknowledged stay as they are. Positions change, so who waits
with a cursor of the old store is told once more of what it knows.`,
		Example: `  parley streams reshard parley.tar --shards 4 --data /var/lib/parley-sharded
  parley streams reshard parley.tar --shards 4 --nats nats://n1.example.com`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := server.CheckShards(shards); err != nil {
				return usage(err)
			}
			return s.restoreFile(cmd, args[0], false, backup.Options{Archive: archive, Shards: shards})
		},
	}
	restoreFlags(cmd.Flags(), s, &archive)
	cmd.Flags().IntVar(&shards, "shards", 0, "`N` streams each, 1 to 16")
	return cmd
}
