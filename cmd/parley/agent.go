package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

func agentCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "agent", Short: "register, list and remove agents",
		Long: "The registry of principals: who may log in with which key, and each one's card. The\noperator registers and removes principals.",
	}, agentAdd(), principalLs(""), principalShow(""), agentRotate(), agentCreds(), agentHost(), agentUnhost(), agentVerifyDomain(), principalRm("")))
}

// A registration is what add and rotate register.
type registration struct {
	card              api.Card
	keyOut, publicKey string
	credsOut          string
	trust             float64
	replace, hosted   bool
	file              string // with the card

	pair nkeys.KeyPair // nil if only the owner has the key
}

func (r *registration) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.keyOut, "key-out", "", "new `FILE` for the seed of the new key (default: the last part of the URI, with .nk)")
	cmd.Flags().StringVar(&r.publicKey, "public-key", "", "register this public `KEY` (U…) instead of generating one")
	r.credsFlag(cmd)
	cmd.Flags().StringVar(&r.card.Name, "name", "", "display `NAME`")
	cmd.Flags().StringVar(&r.card.Description, "description", "", "`TEXT` that says what it is for")
	cmd.Flags().BoolVar(&r.replace, "replace", false, "replace the card and key of a registered principal")
}

func agentAdd() *cobra.Command {
	r := &registration{}
	cmd := &cobra.Command{
		Use: "add URI", Short: "register an agent and generate its key", Args: args(cobra.ExactArgs(1)),
		Long: `Registers an agent. The command generates a key and writes its seed to a new file
that only you can read. It is better if the agent generates its own key: pass the
public key with --public-key. With --hosted the broker makes and holds a signing key
instead: such an agent acts over HTTP with a token ('parley token add'). With --a2a the
agent runs on an A2A server elsewhere, at its URI's domain: the broker sends it what
others say, and signs what it answers with a key that the broker holds.`,
		Example: `  parley agent add agent://acme.com/alpha --key-out alpha.nk --capability logs
  parley agent add agent://acme.com/cron --hosted
  parley agent add agent://widgets.co/beta --public-key UDXU… --kind system
  parley agent add agent://acme.com/buyer --did did:key:z6Mk…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("trust") {
				r.card.Registry.TrustScore = &r.trust
			}
			return r.add(cmd, args[0], false)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.card.Kind, "kind", "", "`KIND`: system or personal (default: personal)")
	cmd.Flags().StringSliceVar(&r.card.Capabilities, "capability", nil, "`CAPABILITY` of the agent; can be repeated")
	cmd.Flags().StringSliceVar(&r.card.Schemas, "schema", nil, "`NAME` of a terms schema that the agent knows; can be repeated")
	cmd.Flags().StringVar((*string)(&r.card.Standby), "standby", "", "`URI` of a system agent of the same organisation that may take turns left waiting")
	cmd.Flags().StringVarP(&r.file, "file", "f", "", "`FILE` with the card as JSON or YAML, such as its skills and price; flags take precedence")
	cmd.Flags().BoolVar(&r.hosted, "hosted", false, "the broker holds a signing key; --key-out or --public-key add a key of the agent's own")
	cmd.Flags().BoolVar(&r.card.A2A, "serve-a2a", false, "let clients of A2A reach the agent, which has to be hosted")
	cmd.Flags().StringVar(&r.card.Registry.A2A, "a2a", "", "`URL` of the A2A server on which the agent runs; the broker talks to it, and signs for it")
	cmd.Flags().BoolVar(&r.card.Registry.A2AUnsigned, "a2a-unsigned", false, "the agent card at --a2a need not be signed")
	cmd.Flags().StringVar(&r.card.Registry.DID, "did", "", "`DID` that agreements name: did:key of --public-key, or did:web of a host in --did-hosts whose document has that key")
	cmd.Flags().Float64Var(&r.trust, "trust", 0, "trust `SCORE`, 0 to 100")
	return cmd
}

func (r *registration) add(cmd *cobra.Command, uri string, human bool) error {
	agent, err := performatives.ParseAgent(uri)
	if err == nil && agent.IsHuman() != human {
		err = errors.New("agent add registers agent://…, and human add human://…")
	}
	if err != nil {
		return usage(fmt.Errorf("%s: %w", uri, err))
	}
	switch {
	case text(cmd, "as") != "":
		return usage(errors.New("only the operator can register: omit --as"))
	case r.card.Registry.Auditor && r.card.Registry.MayDecide:
		return usage(errors.New("an auditor cannot decide: set either --auditor or --may-decide"))
	case r.publicKey != "" && (r.keyOut != "" || r.credsOut != ""):
		return usage(errors.New("--key-out and --creds-out are for a generated key: omit them with --public-key"))
	}
	if err := r.fromFile(cmd); err != nil {
		return usage(err)
	}
	if own := agreement.KeyOf(agreement.DID(r.card.Registry.DID)); own != "" && r.publicKey == "" && r.keyOut == "" && r.credsOut == "" {
		r.publicKey = string(own)
	}
	r.card.Agent = agent
	if url := r.card.Registry.A2A; url != "" {
		r.hosted = true
		if err := a2agateway.CheckRemote(cmd.Context(), agent, url, r.card.Registry.A2AUnsigned); err != nil {
			return err
		}
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		if err := r.free(ctx, c); err != nil {
			return err
		}
		made, err := r.key(ctx, c)
		if err != nil {
			return err
		}
		register := c.operator.AddAgent
		if r.hosted {
			register = c.operator.AddHosted
		}
		card, err := register(ctx, r.card)
		if err != nil {
			return errors.Join(err, r.unmake(made, err))
		}
		if made {
			note(cmd, "The seed of its key is in "+r.files()+". Keep it secret.")
		}
		return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
	})
}

// fromFile reads the card, and puts what the flags say over it.
func (r *registration) fromFile(cmd *cobra.Command) error {
	if r.file == "" {
		return nil
	}
	data, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	var document any
	if err := yaml.Unmarshal(data, &document); err != nil { // JSON is YAML
		return fmt.Errorf("%s: %w", r.file, err)
	}
	if data, err = json.Marshal(document); err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	flags := r.card
	r.card = api.Card{}
	if err := json.Unmarshal(data, &r.card, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%s is not a card: %w", r.file, err)
	}
	r.card.Registry = flags.Registry
	for name, put := range map[string]func(){
		"name":        func() { r.card.Name = flags.Name },
		"description": func() { r.card.Description = flags.Description },
		"kind":        func() { r.card.Kind = flags.Kind },
		"capability":  func() { r.card.Capabilities = flags.Capabilities },
		"schema":      func() { r.card.Schemas = flags.Schemas },
		"standby":     func() { r.card.Standby = flags.Standby },
		"serve-a2a":   func() { r.card.A2A = flags.A2A },
	} {
		if cmd.Flags().Changed(name) {
			put()
		}
	}
	return nil
}

// free returns an error if the principal is registered, unless --replace is set.
func (r *registration) free(ctx context.Context, c connection) error {
	if r.replace {
		return nil
	}
	_, err := c.Card(ctx, r.card.Agent)
	switch {
	case err == nil:
		return fmt.Errorf("%s is already registered; --replace replaces its card and key", r.card.Agent)
	case errors.Is(err, client.Refused(session.UnknownAgent)):
		return nil
	default:
		return err
	}
}

// key generates the principal's key, unless it has one, and writes it to disk before it is
// registered.
func (r *registration) key(ctx context.Context, c connection) (made bool, err error) {
	r.card.Key = performatives.Key(r.publicKey)
	if r.publicKey != "" {
		if !r.card.Key.Valid() {
			return false, usage(errors.New("--public-key is a public user nkey: U and 55 more letters and digits, not the seed"))
		}
		return false, nil
	}
	if r.hosted && r.keyOut == "" && r.credsOut == "" {
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

// unmake removes the key files of a principal whose registration was refused.
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

// files names the files that hold the seed.
func (r *registration) files() string {
	if r.keyOut != "" && r.credsOut != "" {
		return r.keyOut + " and " + r.credsOut
	}
	return r.keyOut + r.credsOut
}
