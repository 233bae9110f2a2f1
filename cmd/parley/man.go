package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/parley-asp/parley/api"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write a manual page for each command", Args: args(cobra.ExactArgs(1)),
		Long: `Writes a manual page for each command to the folder DIR, such as DIR/parley-session-show.1.
The environment's SOURCE_DATE_EPOCH, in seconds, sets their date.`,
		Example: "  parley man /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "parley " + api.Version, Manual: "parley"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
}
