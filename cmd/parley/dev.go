package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// devPolicy is what the counterparty of 'parley dev' negotiates by.
const devPolicy = `subject: cups
issues: {price: {weight: 1, best: 120, worst: 80, step: 5}}
fixed: {currency: EUR}
reservation: 0.1
rounds: 4
`

// A dev is a broker for one who writes an agent, with a counterparty to negotiate with.
type dev struct {
	serve
	policy string
	seller string
}

func devCommand() *cobra.Command {
	d := &dev{}
	cmd := &cobra.Command{
		Use: "dev", Short: "run a broker and a counterparty to write an agent against", Args: args(cobra.NoArgs),
		Long: `Runs a broker without logins, an agent that sells cups for 80 to 120 EUR, and prints
what anybody says. Your agent's token is its URI: invite the seller, and offer
{"price": 60, "currency": "EUR"}. With --policy the counterparty negotiates about
something else, or buys (see 'parley negotiator').

Without --data nothing is kept.`,
		Example: `  parley dev
  parley dev --open
  parley dev --policy examples/negotiator/buy.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	d.flags(pflag.NewFlagSet("serve", pflag.ContinueOnError)) // for their defaults
	flags := cmd.Flags()
	flags.StringVar(&d.Listen, "listen", d.Listen, "`HOST:PORT` of the embedded NATS server; port 0 picks a free one")
	flags.StringVar(&d.HTTP, "http", d.HTTP, "`HOST:PORT` of HTTP")
	flags.StringVar(&d.policy, "policy", "", "YAML `FILE` with the policy of the counterparty, or default (default: it sells cups)")
	flags.StringVar(&d.seller, "seller", "agent://widgets.co/seller", "`URI` of the counterparty")
	flags.StringVar(&d.Data, "data", "", "keep the store and the keys in `DIR`")
	flags.Bool("open", false, "open the inbox, where humans decide, in a browser ($BROWSER, else the system's)")
	fullFlag(cmd)
	return cmd
}

func (d *dev) run(cmd *cobra.Command) (err error) {
	policy, err := negotiator.Parse([]byte(devPolicy))
	if d.policy != "" {
		policy, err = readPolicy(d.policy)
	}
	if err != nil {
		return usage(fmt.Errorf("--policy %s: %w", d.policy, err))
	}
	self, err := performatives.ParseAgent(d.seller)
	if err != nil {
		return usage(fmt.Errorf("--seller %s: %w", d.seller, err))
	}
	if d.Data == "" {
		if d.Data, err = os.MkdirTemp("", "parley-dev-"); err != nil {
			return err
		}
		defer os.RemoveAll(d.Data) //nolint:errcheck // it is temporary
	}
	if d.Log, _, err = newLog(cmd.ErrOrStderr(), "error", false); err != nil {
		return err
	}
	d.Dev = true
	d.Archive.IfThere = true
	collectLess()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	n, err := server.Start(ctx, d.Options)
	if err != nil {
		return d.explainStart(err)
	}
	var others sync.WaitGroup
	defer func() {
		stop()
		others.Wait()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		n.Close(ending) //nolint:errcheck // it was for trying out
	}()
	principal, err := client.Connect(ctx, n.URL, self, client.Unsigned())
	if err != nil {
		return err
	}
	defer principal.Close() //nolint:errcheck // everything was answered
	operator, err := client.ConnectOperator(ctx, n.URL, client.Unsigned())
	if err != nil {
		return err
	}
	defer operator.Close() //nolint:errcheck // everything was answered
	d.started(cmd, n)
	note(cmd, fmt.Sprintf("  %s negotiates with you. What anybody says follows.", self))
	a := &negotiator.Agent{Self: self, Policy: policy, Broker: principal, Worker: "dev", Lease: leftFor.Milliseconds()}
	others.Go(func() {
		often(ctx, func() {
			for did := "-"; did != ""; {
				did, _ = a.Step(ctx) // a turn that it leaves waits again
			}
		})
	})
	if asked(cmd, "open") {
		others.Go(func() { openInbox(ctx, cmd, "http://"+n.HTTPAddr+"/inbox/") })
	}
	tails, c := map[performatives.SessionID]*tail{}, connection{Calls: &operator.Calls, operator: operator}
	often(ctx, func() { showNews(ctx, cmd, c, tails) })
	return nil
}

// often does something again and again until the context ends.
func often(ctx context.Context, do func()) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for err := error(nil); err == nil; err = pause(ctx, ticker) {
		do()
	}
}

// openInbox opens the inbox in a browser.
func openInbox(ctx context.Context, cmd *cobra.Command, url string) {
	program := browserFor(url)
	if err := exec.CommandContext(ctx, program[0], program[1:]...).Run(); err != nil && ctx.Err() == nil {
		note(cmd, fmt.Sprintf("No browser was opened (%s: %v): open %s yourself.", program[0], err, url))
	}
}

// showNews prints what was said in any session since it was printed last. What fails is printed the next time.
func showNews(ctx context.Context, cmd *cobra.Command, c connection, tails map[performatives.SessionID]*tail) {
	for row, err := range c.Sessions(ctx, api.ListSessions{}) {
		if err != nil {
			return
		}
		t := tails[row.Session]
		if t == nil {
			t = &tail{last: -1, chat: render.NewChat(style(cmd))}
			tails[row.Session] = t
		}
		if t.next < row.Messages {
			t.more(ctx, cmd, c, row.Session) //nolint:errcheck // it is asked again
		}
	}
}
