package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
)

func negotiatorCommand() *cobra.Command {
	var file, modelURL, model string
	var poll, modelTimeout time.Duration
	var once bool
	a := &negotiator.Agent{Worker: "negotiator"}
	cmd := &cobra.Command{
		Use: "negotiator", Short: "run an agent that negotiates by a policy", Args: args(cobra.NoArgs),
		Long: `Takes the turns that wait for the principal of --as, and as a standby those that its
principals leave waiting. The policy, a YAML file, says what each term is worth,
where to begin, how to concede and where to stop; examples/negotiator has one that
buys and one that sells. Without one, it judges matches such as Index Network's by
their assessments. What the policy does not know, or what is beyond it at the
end, is escalated to a human.

With --model an endpoint that speaks OpenAI's chat completions proposes the terms,
within the policy; PARLEY_MODEL_KEY is its key. A turn for which it proposes
nothing usable is left for later.`,
		Example: `  parley negotiator --policy examples/negotiator/sell.yaml \
    --as agent://widgets.co/seller --key seller.nk`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch u, err := url.Parse(modelURL); {
			case poll < time.Millisecond || modelTimeout < time.Millisecond || (model == "") != (modelURL == ""):
				return usage(errors.New("set a --poll and a --model-timeout of at least 1ms, and --model and --model-url together or not at all"))
			case model != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
				return usage(errors.New("--model-url is no URL of http or https"))
			}
			policy, err := readPolicy(file)
			if err != nil {
				return usage(fmt.Errorf("--policy %s: %w", file, err))
			}
			a.Policy = policy
			if model != "" {
				key, _ := lookup("PARLEY_MODEL_KEY")
				a.Model = negotiator.NewModel(modelURL, model, key, modelTimeout)
			}
			a.Self, a.Lease = performatives.Agent(text(cmd, "as")), max(leftFor, 4*modelTimeout).Milliseconds()
			return follows(cmd, func(ctx context.Context, c connection) error {
				a.Broker = c.principal
				return negotiate(ctx, cmd, a, poll, once)
			})
		},
	}
	cmd.Flags().StringVar(&file, "policy", defaultPolicy, "YAML `FILE` with the policy, or default")
	cmd.Flags().DurationVar(&poll, "poll", 5*time.Second, "how often to look for turns")
	cmd.Flags().BoolVar(&once, "once", false, "stop when no turn waits")
	cmd.Flags().StringVar(&model, "model", "", "`NAME` of a model that proposes terms")
	cmd.Flags().StringVar(&modelURL, "model-url", "", "`URL` of its endpoint, such as https://api.example.com/v1")
	cmd.Flags().DurationVar(&modelTimeout, "model-timeout", 30*time.Second, "how long the model may take")
	return connects(principals(cmd, whoTakesTurns))
}

// defaultPolicy names the policy that comes with the program.
const defaultPolicy = "default"

// readPolicy reads a policy's file.
func readPolicy(file string) (*negotiator.Policy, error) {
	if file == defaultPolicy {
		return negotiator.Default()
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return negotiator.Parse(data)
}

// leftFor is how long a turn that was left stays claimed.
const leftFor = time.Minute

// negotiate takes turns until the context ends.
func negotiate(ctx context.Context, cmd *cobra.Command, a *negotiator.Agent, poll time.Duration, once bool) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		did, err := a.Step(ctx)
		switch {
		case errors.Is(err, negotiator.ErrLeft):
			note(cmd, err.Error())
			continue
		case err != nil:
			return err
		case did != "":
			if err := say(cmd, did+"\n"); err != nil {
				return err
			}
			continue
		case once:
			return nil
		}
		if err := pause(ctx, ticker); err != nil {
			return err
		}
	}
}
