package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/client/tender"
	"github.com/parley-asp/parley/performatives"
)

func tenderCommand() *cobra.Command {
	var o tenderOptions
	cmd := &cobra.Command{
		Use: "tender ID", Short: "go on with a tender: compare offers, accept one", Args: args(cobra.ExactArgs(1)),
		Long: `Goes on with a tender that parley find --tender has opened, as the principal of --as.
It shows the newest offers beside each other, on a terminal live, until every agent
has answered or --for is over. Then --accept decides: best accepts the best offer, the
URI of an agent accepts that agent's, none withdraws from all, and ask asks you.

Best is the offer with the --lowest or --highest value of a term, or the one that is
worth most by --policy. With --policy each offer is answered by counter-offers first.

It accepts first, and then withdraws from the others: it withdraws our offers,
rejects theirs, and closes the sessions. Everything is read from the broker, so the
same command goes on after an interruption. Do not run it twice at once for the same tender.`,
		Example: `  parley tender ID --lowest price --as agent://acme.com/buyer
  parley tender ID --accept agent://cups.example/sales --as agent://acme.com/me`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, func(ctx context.Context, c connection) (*tender.Tender, error) {
				return tender.Resume(ctx, c.principal, performatives.SessionID(args[0]))
			})
		},
	}
	o.flags(cmd.Flags())
	return connects(cmd)
}

// tenderOptions say how a tender is decided.
type tenderOptions struct {
	accept, policy string
	rule           tender.Rule
	within         time.Duration
}

// The words of --accept; anything else is an agent's URI.
const (
	acceptAsk  = "ask"
	acceptBest = "best"
	acceptNone = "none"
)

func (o *tenderOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.accept, "accept", acceptAsk, "whose offer to accept: ask, best, none, or an agent's `URI`")
	f.StringVar(&o.rule.Lowest, "lowest", "", "the best offer has the lowest number in this `TERM`, such as price or price.amount (default price, without --highest and --policy)")
	f.StringVar(&o.rule.Highest, "highest", "", "the best offer has the highest number in this `TERM`")
	f.StringVar(&o.policy, "policy", "", "YAML `FILE` with a policy, as of parley negotiator, that makes our offers")
	f.DurationVar(&o.within, "for", time.Minute, "how long to wait for offers")
}

// read checks the flags and reads the policy.
func (o *tenderOptions) read(cmd *cobra.Command) error {
	switch {
	case text(cmd, "as") == "":
		return usage(errors.New("a tender is a principal's: say whose with --as"))
	case o.rule.Lowest != "" && o.rule.Highest != "":
		return usage(errors.New("--lowest or --highest, not both"))
	case o.within < 0:
		return usage(errors.New("--for is not below 0"))
	}
	if o.accept != acceptAsk && o.accept != acceptBest && o.accept != acceptNone {
		if _, err := performatives.ParseAgent(o.accept); err != nil {
			return usage(fmt.Errorf("--accept %s: want ask, best, none or an agent: %w", o.accept, err))
		}
	}
	if o.policy != "" {
		data, err := os.ReadFile(o.policy)
		if err != nil {
			return usage(err)
		}
		if o.rule.Policy, err = negotiator.Parse(data); err != nil {
			return usage(fmt.Errorf("--policy %s: %w", o.policy, err))
		}
	}
	if o.rule.Lowest == "" && o.rule.Highest == "" && o.rule.Policy == nil {
		o.rule.Lowest = "price"
	}
	return nil
}

// run opens or resumes a tender, waits for offers, and decides.
func (o *tenderOptions) run(cmd *cobra.Command, begin func(context.Context, connection) (*tender.Tender, error)) error {
	if err := o.read(cmd); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // everything was answered
	t, err := begin(ctx, c)
	if t == nil || t.ID == "" {
		return explain(cmd, err)
	}
	if err == nil {
		t.Policy, o.rule.Ours = o.rule.Policy, t.Request.Terms
		err = o.decide(ctx, cmd, t)
	}
	switch {
	case ctx.Err() != nil:
		return advise(errors.New("interrupted"), "%s", again(t))
	case err != nil:
		return advise(explain(cmd, err), "%s", again(t))
	}
	return nil
}

// again says how to go on with a tender.
func again(t *tender.Tender) string { return "Run 'parley tender " + string(t.ID) + "' to continue." }

// await shows the offers until nothing more is awaited.
func (o *tenderOptions) await(ctx context.Context, cmd *cobra.Command, t *tender.Tender) ([]tender.Bid, error) {
	shown, noted := "", ""
	show := func(bids []tender.Bid) error {
		now := render.Bids(o.rule.Rows(bids), style(cmd))
		if now == shown || asked(cmd, "json") {
			return nil
		}
		shown = now
		if style(cmd).Colour {
			now = "\x1b[H\x1b[2J" + now
		}
		return say(cmd, now+"\n")
	}
	if o.accept == acceptNone {
		bids, err := t.Bids(ctx)
		if err != nil {
			return nil, err
		}
		return bids, show(bids)
	}
	return t.Gather(ctx, tender.Gathering{Until: time.Now().Add(o.within), Enough: o.named, Read: show, Refused: func(err error) {
		if err.Error() != noted {
			noted = err.Error()
			note(cmd, noted)
		}
	}})
}

// named reports whether the agent of --accept has made its offer.
func (o *tenderOptions) named(bids []tender.Bid) bool {
	return slices.ContainsFunc(bids, func(b tender.Bid) bool { return string(b.Agent) == o.accept && b.Open() })
}

// A decision is what a tender has come to.
type decision struct {
	Tender   performatives.SessionID `json:"tenderId"`
	Accepted performatives.Agent     `json:"accepted,omitzero"`
	Session  performatives.SessionID `json:"sessionId,omitzero"` // of the one accepted
	Bids     []tender.Bid            `json:"bids"`
}

// decide waits for offers, accepts one, and withdraws from the others.
func (o *tenderOptions) decide(ctx context.Context, cmd *cobra.Command, t *tender.Tender) error {
	bids, err := o.await(ctx, cmd, t)
	if err != nil {
		return err
	}
	chosen, decided := tender.Chosen(bids) // an earlier run may have been interrupted
	if decided && o.accept != acceptAsk && o.accept != acceptBest && o.accept != string(chosen.Agent) {
		return fmt.Errorf("%w: that of %s", tender.ErrDecided, chosen.Agent)
	}
	if !decided {
		if chosen, decided, err = o.choose(ctx, cmd, bids); err != nil {
			return err
		}
	}
	switch {
	case decided:
		err = t.Accept(ctx, chosen)
	case o.accept == acceptNone:
		err = t.Withdraw(ctx, 0)
	default:
		note(cmd, "Nothing is accepted yet. "+again(t))
	}
	bids, unread := t.Bids(ctx)
	if _, accepted := tender.Chosen(bids); unread != nil || err != nil && !accepted || errors.Is(err, tender.ErrDecided) {
		return errors.Join(err, unread)
	}
	if err != nil { // a refusal would say that nothing is accepted
		err = errors.New("not withdrawn from all others yet: " + err.Error())
	}
	return errors.Join(o.report(cmd, t, bids, err), err)
}

// report says what a tender has come to, also where we could not withdraw from everybody.
func (o *tenderOptions) report(cmd *cobra.Command, t *tender.Tender, bids []tender.Bid, left error) error {
	d := decision{Tender: t.ID, Bids: bids}
	chosen, decided := tender.Chosen(bids)
	if decided {
		d.Accepted, d.Session = chosen.Agent, chosen.Session
		withdrew := "; withdrew from the others."
		if left != nil {
			withdrew = "."
		}
		note(cmd, "Accepted the offer of "+string(chosen.Agent)+" in "+string(chosen.Session)+withdrew)
		for _, b := range bids {
			if b.Standing == tender.Accepted && b.State.Over() && b.Number != chosen.Number {
				note(cmd, "Not from "+string(b.Agent)+": it had accepted our offer, and closed "+string(b.Session)+", which is an agreement.")
			}
		}
	}
	if !asked(cmd, "json") {
		return nil
	}
	return show(cmd, d, nil)
}

// choose picks the bid to accept.
func (o *tenderOptions) choose(ctx context.Context, cmd *cobra.Command, bids []tender.Bid) (chosen tender.Bid, decided bool, err error) {
	if o.accept == acceptNone {
		return chosen, false, nil
	}
	if o.accept == acceptBest {
		if chosen, decided = o.rule.Best(bids); !decided {
			err = errors.New("no offer that can be compared came in: numbers have to be in the currency of our offer, or without one all in the same")
		}
		return chosen, decided, err
	}
	name := o.accept
	if name == acceptAsk {
		if name, err = askWhich(ctx, cmd); err != nil || name == "" {
			return chosen, false, err
		}
	}
	for _, b := range bids {
		if name == string(b.Agent) || name == strconv.Itoa(b.Number) {
			if !b.Open() {
				return b, false, fmt.Errorf("there is no open offer of %s", b.Agent)
			}
			if b.Terms == nil {
				return b, false, fmt.Errorf("the offer of %s is about something else, or cannot be shown here: 'parley say %s' has it", b.Agent, b.Session)
			}
			return b, true, nil
		}
	}
	return chosen, false, fmt.Errorf("%.80q is no agent of this tender", name)
}

// askWhich reads a number or an agent from standard input; "" is none.
func askWhich(ctx context.Context, cmd *cobra.Command) (string, error) {
	io := bufio.NewReader(cmd.InOrStdin())
	note(cmd, "Accept which? Its number, or Enter for none yet:")
	answer := make(chan string, 1)
	go func() {
		line, _ := io.ReadString('\n') // the end of the input is no answer
		answer <- strings.TrimSpace(line)
	}()
	select {
	case name := <-answer:
		return name, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
