package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/store/backup"
)

// versions are what this program is made of, and the formats that it writes. It reads every earlier one.
type versions struct {
	Version     string `json:"version"`
	Commit      string `json:"commit,omitzero"` // with +dirty if the tree had other changes
	Protocol    string `json:"protocol"`
	Contract    int    `json:"contract"` // of the API, as GET /v1/asp names it
	Transcripts int    `json:"transcripts"`
	Backups     int    `json:"backups"`
	Evidence    string `json:"evidence"`
	NATS        string `json:"nats"`
	MinimumNATS string `json:"minimumNats"`
	Go          string `json:"go"`
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the versions of parley, the protocol, NATS and Go", Args: args(cobra.NoArgs),
		Example: "  parley version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{
				Version: api.Version, Commit: commit(), Protocol: performatives.Version, Contract: api.Contract,
				Transcripts: performatives.Format, Backups: backup.Format, Evidence: evidence.Format,
				NATS: server.VERSION, MinimumNATS: store.MinServer, Go: runtime.Version(),
			}
			return show(cmd, v, func(render.Style) string {
				return fmt.Sprintf("parley %s, protocol %s, contract %d, transcripts of format %d, NATS server %s (external: %s or later), %s\n",
					v.Version, v.Protocol, v.Contract, v.Transcripts, v.NATS, v.MinimumNATS, v.Go)
			})
		},
	}
}

// commit is what the program was built from; "" if that was no checkout.
func commit() (revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true": // comes after the revision
			revision += "+dirty"
		}
	}
	return revision
}
