package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

func agentCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "agent", Short: "register, list and remove principals",
		Long: "The registry of principals: who may log in and with which key, and what each says\nof itself. The operator registers and removes.",
	}, agentAdd(), agentLs(), agentShow(), agentRotate(), agentCreds(), agentRm()))
}

// A registration is what add registers.
type registration struct {
	card              api.Card
	keyOut, publicKey string
	credsOut          string
	trust             float64
	replace           bool

	pair nkeys.KeyPair // of the key; nil of one that only its owner has
}

func (r *registration) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.keyOut, "key-out", "", "where to write the seed of the new key (default: the last part of the URI, with .nk)")
	cmd.Flags().StringVar(&r.publicKey, "public-key", "", "register this public key (U…) and make none")
	r.credsFlag(cmd)
	cmd.Flags().StringVar(&r.card.Name, "name", "", "a name for people")
	cmd.Flags().StringVar(&r.card.Description, "description", "", "what it is for")
	cmd.Flags().BoolVar(&r.replace, "replace", false, "if it is registered, give it this card and key instead")
}

func agentAdd() *cobra.Command {
	r := &registration{}
	cmd := &cobra.Command{
		Use: "add URI", Short: "register an agent and make its key", Args: args(cobra.ExactArgs(1)),
		Long: `Registers an agent. Its key is made here and its seed written to a file that only
you can read, and never over another file; or --public-key is the key that the
agent has made by itself, which is better.`,
		Example: `  parley agent add agent://acme.com/procurement/alpha --key-out alpha.nk --capability storage
  parley agent add agent://widgets.co/sales/beta --public-key UDXU… --kind system --trust 80`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("trust") {
				r.card.Registry.TrustScore = &r.trust
			}
			return r.add(cmd, args[0], false)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.card.Kind, "kind", "", "system or personal (default personal)")
	cmd.Flags().StringSliceVar(&r.card.Capabilities, "capability", nil, "what it can do; may be given more than once")
	cmd.Flags().StringSliceVar(&r.card.Schemas, "schema", nil, "a terms schema that it knows; may be given more than once")
	cmd.Flags().Float64Var(&r.trust, "trust", 0, "trust score, 0 to 100")
	return cmd
}

func (r *registration) add(cmd *cobra.Command, uri string, human bool) error {
	agent, err := performatives.ParseAgent(uri)
	if err == nil && agent.IsHuman() != human {
		err = errors.New("agent add registers agent://…, human add human://…")
	}
	if err != nil {
		return usage(fmt.Errorf("%s: %w", uri, err))
	}
	switch {
	case text(cmd, "as") != "":
		return usage(errors.New("the operator registers: leave --as out"))
	case r.card.Registry.Auditor && r.card.Registry.MayDecide:
		return usage(errors.New("who audits does not decide: give --auditor or --may-decide"))
	case r.publicKey != "" && (r.keyOut != "" || r.credsOut != ""):
		return usage(errors.New("--key-out and --creds-out are for a key that is made, --public-key for one that is there: give one of them"))
	}
	r.card.Agent = agent
	return with(cmd, func(ctx context.Context, c connection) error {
		if err := r.free(ctx, c); err != nil {
			return err
		}
		made, err := r.key(ctx, c)
		if err != nil {
			return err
		}
		card, err := c.operator.AddAgent(ctx, r.card)
		if err != nil {
			return errors.Join(err, r.unmake(made, err))
		}
		if made {
			note(cmd, "the seed of its key is in "+r.files()+"; keep it secret")
		}
		return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
	})
}

// free refuses to take over what is registered, unless that is meant.
func (r *registration) free(ctx context.Context, c connection) error {
	if r.replace {
		return nil
	}
	_, err := c.Card(ctx, r.card.Agent)
	switch {
	case err == nil:
		return fmt.Errorf("%s is registered already; --replace gives it another card and key", r.card.Agent)
	case errors.Is(err, client.Refused(session.UnknownAgent)):
		return nil
	default:
		return err
	}
}

// key makes the principal's key, unless it has one, and keeps it before it is registered.
func (r *registration) key(ctx context.Context, c connection) (made bool, err error) {
	r.card.Key = performatives.Key(r.publicKey)
	if r.publicKey != "" {
		if !r.card.Key.Valid() {
			return false, usage(errors.New("--public-key is a public user nkey, U and 55 more letters and digits; never the seed"))
		}
		return false, nil
	}
	if r.keyOut == "" && r.credsOut == "" {
		uri := string(r.card.Agent)
		r.keyOut = uri[strings.LastIndexByte(uri, '/')+1:] + ".nk"
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return false, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return false, err
	}
	r.card.Key, r.pair = performatives.Key(public), pair
	if err := writeCreds(ctx, c, r.credsOut, r.card.Agent, pair); err != nil {
		return false, err
	}
	if r.keyOut != "" {
		if err := server.WriteSeed(r.keyOut, pair); err != nil {
			if r.credsOut != "" {
				err = errors.Join(err, os.Remove(r.credsOut))
			}
			return false, err
		}
	}
	return true, nil
}

// unmake takes away the key of a principal that was refused: nobody needs it.
func (r *registration) unmake(made bool, why error) error {
	if _, refused := errors.AsType[*session.Refusal](why); !made || !refused {
		return nil
	}
	var faults []error
	for _, file := range []string{r.keyOut, r.credsOut} {
		if file != "" {
			faults = append(faults, os.Remove(file))
		}
	}
	return errors.Join(faults...)
}

// files are where the seed is.
func (r *registration) files() string {
	if r.keyOut != "" && r.credsOut != "" {
		return r.keyOut + " and " + r.credsOut
	}
	return r.keyOut + r.credsOut
}

func agentLs() *cobra.Command {
	var filter api.ListAgents
	cmd := &cobra.Command{
		Use: "ls", Short: "list principals", Args: args(cobra.NoArgs),
		Example: "  parley agent ls --organisation acme.com --capability storage",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				list, err := all(c.Agents(ctx, filter))
				if err != nil {
					return err
				}
				return show(cmd, api.Agents{Agents: list}, func(s render.Style) string { return render.Agents(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.Organization, "organisation", "", "only those of this domain, such as acme.com")
	cmd.Flags().StringVar(&filter.Capability, "capability", "", "only those that can do this")
	cmd.Flags().StringVar(&filter.Kind, "kind", "", "only system, personal or human")
	return cmd
}

func agentShow() *cobra.Command {
	return &cobra.Command{
		Use: "show URI", Short: "show a principal's card", Args: args(cobra.ExactArgs(1)),
		Example: "  parley agent show agent://acme.com/procurement/alpha",
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				card, err := c.Card(ctx, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
}

func agentRm() *cobra.Command {
	return &cobra.Command{
		Use: "rm URI", Short: "remove a principal: it can log in no more", Args: args(cobra.ExactArgs(1)),
		Long:    "Removes a principal. Transcripts keep the key that they pinned, and still verify.",
		Example: "  parley agent rm agent://acme.com/procurement/alpha",
		RunE: func(cmd *cobra.Command, args []string) error {
			if text(cmd, "as") != "" {
				return usage(errors.New("the operator removes: leave --as out"))
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				card, err := c.operator.RemoveAgent(ctx, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(render.Style) string { return "removed " + args[0] + "\n" })
			})
		},
	}
}
