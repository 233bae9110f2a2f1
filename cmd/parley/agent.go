package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
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
	loginKeys         []string
	credsOut          string
	trust             float64
	replace, hosted   bool
	file              string // with the card

	pair nkeys.KeyPair // that signs; nil if only the owner has it
	made []string      // the files with new keys
}

func (r *registration) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.keyOut, "key-out", "", "new `FILE` for the seed of the key that signs; that of the login key comes beside it, alpha.login.nk for alpha.nk (default: the last part of the URI, with .nk)")
	cmd.Flags().StringVar(&r.publicKey, "public-key", "", "register this public `KEY` (U…) to sign with instead of generating one")
	r.loginFlags(cmd)
	cmd.Flags().StringVar(&r.card.Name, "name", "", "display `NAME`")
	cmd.Flags().StringVar(&r.card.Description, "description", "", "`TEXT` that says what it is for")
	cmd.Flags().BoolVar(&r.replace, "replace", false, "replace the card and keys of a registered principal; a human keeps its browsers, see human unenrol")
}

func agentAdd() *cobra.Command {
	r := &registration{}
	cmd := &cobra.Command{
		Use: "add URI", Short: "register an agent and generate its keys", Args: args(cobra.ExactArgs(1)),
		Long: `Registers an agent. The command generates two keys, and writes their seeds to new
files that only you can read: alpha.nk signs what the agent says, and alpha.login.nk
logs in to NATS. A NATS server chooses what a login signs, so no key does both. It is
better if the agent generates its own keys: pass the public ones with --public-key and
--login-key. With --hosted the broker makes and holds a signing key
instead: such an agent acts over HTTP with a token ('parley token add'). With --a2a the
agent runs on an A2A server elsewhere, at its URI's domain: the broker sends it what
others say, and signs what it answers with a key that the broker holds.`,
		Example: `  parley agent add agent://acme.com/alpha --key-out alpha.nk --capability logs
  parley agent add agent://acme.com/cron --hosted
  parley agent add agent://widgets.co/beta --public-key UDXU… --login-key UAQK…
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
	cmd.Flags().BoolVar(&r.hosted, "hosted", false, "the broker holds a signing key; --key-out or --public-key add keys of the agent's own")
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
		if err := r.key(ctx, c); err != nil {
			return err
		}
		register := c.operator.AddAgent
		if r.hosted {
			register = c.operator.AddHosted
		}
		card, err := register(ctx, r.card)
		if err != nil {
			return errors.Join(err, r.unmake(err))
		}
		r.keep(cmd)
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
	var document yaml.Node
	if err := readYAML(data, &document); err != nil { // JSON is YAML
		return fmt.Errorf("%s: %w", r.file, err)
	}
	if data, err = inOrder(&document); err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	flags := r.card
	r.card = api.Card{}
	if err := json.Unmarshal(data, &r.card); err != nil {
		return fmt.Errorf("%s is not a card: %w", r.file, err)
	}
	said := r.card.Registry
	said.RegisteredAt, said.UpdatedAt = "", "" // of a card that agent show printed
	if !reflect.ValueOf(said).IsZero() || r.card.DomainVerified {
		return fmt.Errorf("%s: registry and domainVerified are the registry's; say what you vouch for by flags, such as --trust", r.file)
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
		return fmt.Errorf("%s is already registered; --replace replaces its card and keys", r.card.Agent)
	case errors.Is(err, client.Refused(session.UnknownAgent)):
		return nil
	default:
		return err
	}
}

// key generates the principal's keys, unless it has some, and writes them to disk before they are
// registered.
func (r *registration) key(ctx context.Context, c connection) error {
	for _, k := range r.loginKeys {
		if !performatives.Key(k).Valid() {
			return usage(errors.New("--login-key is a public user nkey: U and 55 more letters and digits, not the seed"))
		}
		r.card.LoginKeys = append(r.card.LoginKeys, performatives.Key(k))
	}
	if r.publicKey != "" {
		if r.card.Key = performatives.Key(r.publicKey); !r.card.Key.Valid() {
			return usage(errors.New("--public-key is a public user nkey: U and 55 more letters and digits, not the seed"))
		}
		return nil
	}
	if r.hosted && r.keyOut == "" && r.credsOut == "" {
		return nil
	}
	if r.keyOut == "" {
		uri := string(r.card.Agent)
		r.keyOut = uri[strings.LastIndexByte(uri, '/')+1:] + ".nk"
	}
	if err := r.makeKeys(ctx, c); err != nil {
		return errors.Join(err, r.removeFiles())
	}
	return nil
}

// makeKeys writes a key that signs, and one that logs in.
func (r *registration) makeKeys(ctx context.Context, c connection) (err error) {
	if r.pair, r.card.Key, err = r.makeKey(r.keyOut); err != nil || len(r.card.LoginKeys) > 0 {
		return err
	}
	pair, public, err := r.makeKey(natslogin.FileBeside(r.keyOut))
	if err != nil {
		return err
	}
	r.card.LoginKeys = []performatives.Key{public}
	if r.credsOut == "" {
		return nil
	}
	if err := writeCreds(ctx, c, r.credsOut, r.card.Agent, pair); err != nil {
		return err
	}
	r.made = append(r.made, r.credsOut)
	return nil
}

func (r *registration) makeKey(path string) (nkeys.KeyPair, performatives.Key, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", err
	}
	if err := server.WriteSeed(path, pair); err != nil {
		return nil, "", err
	}
	r.made = append(r.made, path)
	return pair, performatives.Key(public), nil
}

// unmake removes the key files of a principal whose registration was refused.
func (r *registration) unmake(why error) error {
	if _, refused := errors.AsType[*session.Refusal](why); !refused {
		return nil
	}
	return r.removeFiles()
}

func (r *registration) removeFiles() error {
	var faults []error
	for _, file := range r.made {
		faults = append(faults, os.Remove(file))
	}
	r.made = nil
	return errors.Join(faults...)
}

// keep tells where the seeds are.
func (r *registration) keep(cmd *cobra.Command) {
	if len(r.made) == 0 {
		return
	}
	note(cmd, "It signs with the key in "+r.keyOut+", and logs in with that in "+strings.Join(r.made[1:], " and ")+". Keep them secret.")
}

// inOrder is a YAML document as JSON, with the members of objects in their order.
func inOrder(n *yaml.Node) ([]byte, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return inOrder(n.Content[0])
	case yaml.MappingNode, yaml.SequenceNode:
	default: // also an alias, and an empty document
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, err
		}
		return json.Marshal(value, json.Deterministic(true))
	}
	open, end := byte('['), byte(']')
	if n.Kind == yaml.MappingNode {
		open, end = '{', '}'
	}
	out := []byte{open}
	for i, part := range n.Content {
		value, err := inOrder(part)
		if err != nil {
			return nil, err
		}
		switch name := n.Kind == yaml.MappingNode && i%2 == 0; {
		case name && part.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: a member's name is a text", part.Line)
		case name:
			if value, err = json.Marshal(part.Value); err != nil {
				return nil, err
			}
			fallthrough
		case n.Kind == yaml.SequenceNode:
			if i > 0 {
				out = append(out, ',')
			}
		default:
			out = append(out, ':')
		}
		out = append(out, value...)
	}
	return append(out, end), nil
}
