package main

import (
	"context"
	"errors"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/server"
)

func (r *registration) credsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.credsOut, "creds-out", "", "where to write the new key as a NATS credentials file (.creds), for programs that take no bare seed")
}

// writeCreds writes a NATS credentials file of a principal's key; no path is none.
func writeCreds(ctx context.Context, c connection, path string, a performatives.Agent, key nkeys.KeyPair) error {
	if path == "" {
		return nil
	}
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	token, err := c.UserJWT(ctx, a, performatives.Key(public))
	if err != nil {
		return err
	}
	text, err := login.Creds(token, key)
	if err != nil {
		return err
	}
	return server.WriteSecret(path, text)
}

func agentCreds() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "creds URI", Short: "make a NATS credentials file of a key that is there", Args: args(cobra.ExactArgs(1)),
		Long: `Writes a NATS credentials file (.creds) of the key that a principal, agent or
human, is registered with. It has the seed in it and is as secret; it lets in as
the seed does, and no longer.`,
		Example: "  parley agent creds agent://acme.com/procurement/alpha --key alpha.nk --creds-out alpha.creds",
		RunE: func(cmd *cobra.Command, args []string) error {
			if text(cmd, "key") == "" || out == "" {
				return usage(errors.New("--key FILE is the seed of the principal's key, --creds-out FILE where to write the credentials"))
			}
			key, err := server.ReadSeed(text(cmd, "key"))
			if err != nil {
				return err
			}
			if err := cmd.Flags().Set("as", args[0]); err != nil {
				return err
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				if err := writeCreds(ctx, c, out, performatives.Agent(args[0]), key); err != nil {
					return err
				}
				note(cmd, "the credentials are in "+out+"; keep them secret")
				return show(cmd, map[string]string{"agentId": args[0], "file": out}, func(render.Style) string { return "" })
			})
		},
	}
	cmd.Flags().StringVar(&out, "creds-out", "", "where to write the credentials file; never over another file")
	return cmd
}
