package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

func agentRotate() *cobra.Command {
	r, newKey := &registration{}, ""
	cmd := &cobra.Command{
		Use: "rotate URI", Short: "give a principal another key, at once", Args: args(cobra.ExactArgs(1)),
		Long: `Gives a principal, agent or human, another key. With --key (or --creds) the
principal does it by itself and signs with the key that it has and with the new
one; without, the operator does. What is connected with the old key is disconnected. Transcripts
keep the keys that they pinned, and still verify.`,
		Example: `  parley agent rotate agent://acme.com/procurement/alpha --key alpha.nk --key-out alpha-2.nk
  parley agent rotate agent://acme.com/procurement/alpha --key alpha.nk --new-key alpha-2.nk
  parley agent rotate agent://acme.com/procurement/alpha --public-key UDXU…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if newKey != "" && r.publicKey != "" {
				return usage(errors.New("--new-key and --public-key are both a new key that is there: give one of them"))
			}
			if err := r.has(newKey); err != nil {
				return err
			}
			return r.rotate(cmd, args[0])
		},
	}
	cmd.Flags().StringVar(&r.keyOut, "key-out", "", "where to write the seed of the new key; never over another file")
	r.credsFlag(cmd)
	cmd.Flags().StringVar(&r.publicKey, "public-key", "", "the new public key (U…), if it has been made already; the operator's to give")
	cmd.Flags().StringVar(&newKey, "new-key", "", "file with the seed of the new key, if it has been made already")
	return cmd
}

func (r *registration) rotate(cmd *cobra.Command, uri string) error {
	agent, err := performatives.ParseAgent(uri)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", uri, err))
	}
	switch as := text(cmd, "as"); {
	case as != "" && as != uri:
		return usage(errors.New("a principal changes its own key only: leave --as out"))
	case (r.keyOut == "" && r.credsOut == "") == (r.publicKey == ""):
		return usage(errors.New("--key-out and --creds-out are for a new key that is made, --public-key for one that is there: give one of them"))
	case r.publicKey != "" && r.pair == nil && (text(cmd, "key") != "" || text(cmd, "creds") != ""):
		return usage(errors.New("a principal signs with the new key too, to show that it has it: --new-key is the file with its seed"))
	case text(cmd, "key") != "" || text(cmd, "creds") != "":
		if err := cmd.Flags().Set("as", uri); err != nil {
			return err
		}
	}
	r.card.Agent = agent
	return with(cmd, func(ctx context.Context, c connection) error {
		made, err := r.key(ctx, c)
		if err != nil {
			return err
		}
		card, err := r.turn(ctx, c)
		if _, refused := errors.AsType[*session.Refusal](err); err != nil && made && !refused {
			return fmt.Errorf("%w\nWhether the key is changed is not known: if the one in %s logs in, it is", err, r.files())
		}
		if err != nil {
			return errors.Join(err, r.unmake(made, err))
		}
		if made {
			note(cmd, "the seed of the new key is in "+r.files()+"; keep it secret")
		}
		return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
	})
}

// has takes the new key from a file.
func (r *registration) has(path string) (err error) {
	if path == "" {
		return nil
	}
	if r.pair, err = server.ReadSeed(path); err == nil {
		r.publicKey, err = r.pair.PublicKey()
	}
	return err
}

func (r *registration) turn(ctx context.Context, c connection) (api.Card, error) {
	if c.principal != nil {
		to, err := performatives.NewSigner(r.pair)
		if err != nil {
			return api.Card{}, err
		}
		return c.principal.RotateKey(ctx, to)
	}
	return c.operator.RotateKey(ctx, r.card.Agent, r.card.Key)
}
