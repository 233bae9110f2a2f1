package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

func agentRotate() *cobra.Command {
	r, newKey := &registration{}, ""
	cmd := &cobra.Command{
		Use: "rotate URI", Short: "replace a principal's keys", Args: args(cobra.ExactArgs(1)),
		Long: `Replaces the key that an agent or a human signs with, and the login key, at once.
With --key the principal does it, and signs with the old key and the new one. Without,
the operator does it. Clients connected with the old login key are disconnected; a
NATS server that decides itself who may log in needs the new login key, too.
Transcripts keep their pinned keys and still verify.

With --new-key or --public-key the login keys stay, unless --login-key names others. A
principal of before, whose one key signed and logged in, gets two: the operator
rotates it, or the principal with --shared-keys while the broker has that flag too.`,
		Example: `  parley agent rotate agent://acme.com/alpha --key alpha.nk --key-out alpha-2.nk
  parley agent rotate agent://acme.com/alpha --key alpha.nk --new-key alpha-2.nk
  parley agent rotate agent://acme.com/alpha --public-key UDXU…`,
		ValidArgsFunction: completeFirst(completeAgents("")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if newKey != "" && r.publicKey != "" {
				return usage(errors.New("set either --new-key or --public-key"))
			}
			if err := r.readKey(newKey); err != nil {
				return err
			}
			return r.rotate(cmd, args[0])
		},
	}
	cmd.Flags().StringVar(&r.keyOut, "key-out", "", "new `FILE` for the seed of a generated key; that of the login key comes beside it")
	r.loginFlags(cmd)
	cmd.Flags().StringVar(&r.publicKey, "public-key", "", "the new public `KEY` (U…), for the operator")
	cmd.Flags().StringVar(&newKey, "new-key", "", "`FILE` with the seed of the new key")
	return cmd
}

func (r *registration) rotate(cmd *cobra.Command, uri string) error {
	agent, err := performatives.ParseAgent(uri)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", uri, err))
	}
	switch as := text(cmd, "as"); {
	case as != "" && as != uri:
		return usage(errors.New("a principal can replace only its own key: omit --as"))
	case (r.keyOut == "") == (r.publicKey == ""):
		return usage(errors.New("set --key-out to generate keys, else --new-key or --public-key"))
	case r.publicKey != "" && r.pair == nil && text(cmd, "key") != "":
		return usage(errors.New("a principal also signs with the new key, which shows that it has it: set --new-key"))
	case text(cmd, "key") != "":
		if err := cmd.Flags().Set("as", uri); err != nil {
			return err
		}
	}
	r.card.Agent = agent
	return with(cmd, func(ctx context.Context, c connection) error {
		if err := r.key(ctx, c); err != nil {
			return err
		}
		card, err := r.replaceKey(ctx, c)
		if _, refused := errors.AsType[*session.Refusal](err); err != nil && len(r.made) > 0 && !refused {
			return advise(err, "It is unknown whether the keys were replaced. If the key in %s logs in, they were.", r.made[1])
		}
		if err != nil {
			return errors.Join(err, r.unmake(err))
		}
		r.keep(cmd)
		return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
	})
}

// readKey reads the new key from a file.
func (r *registration) readKey(path string) (err error) {
	if path == "" {
		return nil
	}
	if r.pair, err = server.ReadSeed(path); err == nil {
		r.publicKey, err = r.pair.PublicKey()
	}
	return err
}

func (r *registration) replaceKey(ctx context.Context, c connection) (api.Card, error) {
	if c.principal != nil {
		to, err := performatives.NewSigner(r.pair)
		if err != nil {
			return api.Card{}, err
		}
		return c.principal.RotateKey(ctx, to, r.card.LoginKeys...)
	}
	return c.operator.RotateKey(ctx, r.card.Agent, r.card.Key, r.card.LoginKeys...)
}
