package main

import (
	"context"
	"errors"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/server/login"
)

func (r *registration) loginFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.loginKeys, "login-key", nil, "register this public `KEY` (U…) to log in with; can be repeated")
	cmd.Flags().StringVar(&r.credsOut, "creds-out", "", "new `FILE` for the login key as NATS credentials (.creds), besides its seed")
}

// writeCreds writes a NATS credentials file for a principal's key, unless the path is empty.
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
		Use: "creds URI", Short: "make a NATS credentials file from a login key", Args: args(cobra.ExactArgs(1)),
		Long: `Writes a NATS credentials file (.creds) for a login key of an agent or a human: the
one in --login, or in the file beside --key. The file contains the seed, so keep it
secret. It works as long as the key is registered.`,
		Example:           "  parley agent creds agent://acme.com/alpha --key a.nk --creds-out a.creds",
		ValidArgsFunction: completeFirst(completeAgents("")),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := text(cmd, "login")
			if key := text(cmd, "key"); file == "" && key != "" {
				file = natslogin.FileBeside(key)
			}
			if file == "" || out == "" {
				return usage(errors.New("set --login to the file with the seed of the login key, and --creds-out to the credentials file"))
			}
			key, err := server.ReadSeed(file)
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
				note(cmd, "The credentials are in "+out+". Keep them secret.")
				return show(cmd, map[string]string{"agentId": args[0], "file": out}, func(render.Style) string { return "" })
			})
		},
	}
	cmd.Flags().StringVar(&out, "creds-out", "", "new `FILE` for the credentials")
	return cmd
}
