package main

import (
	"fmt"
	"runtime"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the versions of parley, the protocol, NATS and Go", Args: args(cobra.NoArgs),
		Example: "  parley version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Version     string `json:"version"`
				Protocol    string `json:"protocol"`
				NATS        string `json:"nats"`
				MinimumNATS string `json:"minimumNats"`
				Go          string `json:"go"`
			}{api.Version, performatives.Version, server.VERSION, store.MinServer, runtime.Version()}
			return show(cmd, v, func(render.Style) string {
				return fmt.Sprintf("parley %s, protocol %s, NATS server %s (external: %s or later), %s\n",
					v.Version, v.Protocol, v.NATS, v.MinimumNATS, v.Go)
			})
		},
	}
}
