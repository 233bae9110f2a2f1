package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

func checkJoin() *cobra.Command {
	return acting("join ID", "join the session of a check, to read and to answer", "join "+exampleSession, cobra.ExactArgs(1),
		func(ctx context.Context, s *client.Session, check api.Check, _ []string) (client.Receipt, error) {
			return s.Accept(ctx, string(check.ID))
		})
}

func checkDecline() *cobra.Command {
	var reason string
	cmd := acting("decline ID", "decline a check before you join, or leave it after", "decline "+exampleSession+` --reason "not my field"`, cobra.ExactArgs(1),
		func(ctx context.Context, s *client.Session, check api.Check, _ []string) (client.Receipt, error) {
			if check.Status == delegation.Active.String() {
				return s.Withdraw(ctx, string(check.ID), because(reason)...)
			}
			return s.Reject(ctx, string(check.ID), client.Rejection{Reason: reason})
		})
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for all participants that says why")
	return cmd
}

func because(reason string) []client.ActOption {
	if reason == "" {
		return nil
	}
	return []client.ActOption{client.Because(reason)}
}

func checkAnswer() *cobra.Command {
	var f client.Finding
	var cmd *cobra.Command
	cmd = acting("answer ID", "send the result of a check",
		"answer "+exampleSession+` --assessment compliant \
    --details "Article 28 is satisfied" --condition "a yearly audit"`, cobra.ExactArgs(1),
		func(ctx context.Context, s *client.Session, check api.Check, _ []string) (client.Receipt, error) {
			if f.Assessment == "" {
				return client.Receipt{}, usage(errors.New("set --assessment, such as compliant or non-compliant"))
			}
			if text(cmd, "offer") == "" && check.Status == delegation.Offered.String() { // what was delegated may be another offer by now
				return client.Receipt{}, usage(errors.New("join and read it first, by 'parley check join' and 'parley check show', or name the offer: --offer ID"))
			}
			if f.Offer = cmp.Or(text(cmd, "offer"), check.Reference); f.Offer == "" && check.Proposal != nil {
				return client.Receipt{}, usage(notDelegated(check.Proposal.Proposal))
			}
			return s.Report(ctx, f)
		})
	cmd.Flags().String("offer", "", "`ID` of the offer that was checked (default: the one that was delegated)")
	cmd.Flags().StringVar(&f.Assessment, "assessment", "", "the result in a `WORD`: compliant, non-compliant, inconclusive or another")
	cmd.Flags().StringVar(&f.Details, "details", "", "`TEXT` that explains the assessment")
	cmd.Flags().StringArrayVar(&f.Conditions, "condition", nil, "`TEXT` of a condition for the assessment; can be repeated")
	return cmd
}

func checkAsk() *cobra.Command {
	var field string
	var options []string
	cmd := acting("ask ID QUESTION", "ask a question, or with --field about a term of the offer", "ask "+exampleSession+` "who are the subprocessors?"`, cobra.ExactArgs(2),
		func(ctx context.Context, s *client.Session, check api.Check, args []string) (client.Receipt, error) {
			if field == "" {
				return s.Query(ctx, client.Query{Type: "check", Subject: args[0]})
			}
			offer, err := offerOf(check)
			if err != nil {
				return client.Receipt{}, err
			}
			var choices []any
			for _, o := range options {
				choices = append(choices, o)
			}
			return s.Clarify(ctx, offer, []client.Question{client.Ask(field, args[0], choices...)})
		})
	cmd.Flags().StringVar(&field, "field", "", "`PATH` of a term, such as terms.region: until it is answered, the offer can be neither accepted nor rejected")
	cmd.Flags().StringArrayVar(&options, "option", nil, "`TEXT` of a possible answer; can be repeated")
	return cmd
}

// offerOf is the offer at stake.
func offerOf(check api.Check) (string, error) {
	if check.Proposal == nil {
		return "", errors.New("no offer is at stake, or you have not joined: see 'parley check show'")
	}
	return check.Proposal.Proposal, nil
}

func offerFlag(cmd *cobra.Command) {
	cmd.Flags().String("offer", "", "`ID` of the offer, as 'parley check show' has it (default: the one that was delegated, if it is still at stake)")
}

func notDelegated(offer string) error {
	return fmt.Errorf("the offer at stake is %s, which was not delegated, and may be newer than what you have read: --offer %[1]s", offer)
}

// answering is acting on the offer that was delegated, or on one that is named: the one at stake may be newer than what
// the user has read.
func answering(use, short, example string, send func(ctx context.Context, s *client.Session, offer string) (client.Receipt, error)) *cobra.Command {
	var cmd *cobra.Command
	cmd = acting(use, short, example, cobra.ExactArgs(1), func(ctx context.Context, s *client.Session, check api.Check, _ []string) (client.Receipt, error) {
		offer := text(cmd, "offer")
		if offer == "" {
			var err error
			if offer, err = offerOf(check); err != nil {
				return client.Receipt{}, err
			}
			if offer != check.Reference {
				return client.Receipt{}, usage(notDelegated(offer))
			}
		}
		return send(ctx, s, offer)
	})
	offerFlag(cmd)
	return cmd
}

func checkAccept() *cobra.Command {
	return answering("accept ID", "accept the offer at stake for your delegator", "accept "+exampleSession,
		func(ctx context.Context, s *client.Session, offer string) (client.Receipt, error) {
			return s.Accept(ctx, offer)
		})
}

func checkReject() *cobra.Command {
	r := client.Rejection{Code: client.PolicyViolation}
	cmd := answering("reject ID", "reject the offer at stake for your delegator", "reject "+exampleSession+` --reason "the data leaves the Union"`,
		func(ctx context.Context, s *client.Session, offer string) (client.Receipt, error) {
			return s.Reject(ctx, offer, r)
		})
	cmd.Flags().StringVar(&r.Reason, "reason", "", "`TEXT` for all participants that says why")
	cmd.Flags().StringVar(&r.Code, "code", r.Code, "`CODE` of the rejection")
	cmd.Flags().BoolVar(&r.Retryable, "retryable", false, "another offer is welcome")
	return cmd
}

func checkCounter() *cobra.Command {
	var file, reason string
	var terms map[string]any
	cmd := answering("counter ID", "make another offer in place of the one at stake", "counter "+exampleSession+" --terms terms.json",
		func(ctx context.Context, s *client.Session, offer string) (client.Receipt, error) {
			return s.Counter(ctx, offer, client.Proposal{Terms: terms}, because(reason)...)
		})
	before(cmd, func() (err error) {
		if file == "" {
			return usage(errors.New("name the terms of the new offer: --terms FILE"))
		}
		terms, err = readTerms(file)
		return err
	})
	cmd.Flags().StringVar(&file, "terms", "", "`FILE` with all terms of the new offer, an object of JSON or YAML")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for all participants that says why")
	return cmd
}

func checkEscalate() *cobra.Command {
	e := client.Escalation{Reason: client.PolicyAmbiguous, Urgency: client.Medium}
	cmd := acting("escalate ID TEXT", "ask a human of your delegator's organisation to decide", "escalate "+exampleSession+` "the policy is unclear"`, cobra.ExactArgs(2),
		func(ctx context.Context, s *client.Session, check api.Check, args []string) (client.Receipt, error) {
			e.Context = args[0]
			if check.Proposal != nil {
				e.About = check.Proposal.Proposal
			}
			return s.Escalate(ctx, e)
		})
	cmd.Flags().StringVar(&e.Reason, "reason", e.Reason, "`REASON`: authority-limit, confidence-low, policy-ambiguous or adversarial-detected")
	cmd.Flags().StringVar(&e.Urgency, "urgency", e.Urgency, "`URGENCY`: low, medium, high or critical")
	return cmd
}

func checkDelegate() *cobra.Command {
	d := client.Delegation{}
	cmd := acting("delegate ID URI", "hand the check to a colleague, with no more authority than yours", "delegate "+exampleSession+" human://acme.com/dora", cobra.ExactArgs(2),
		func(ctx context.Context, s *client.Session, check api.Check, args []string) (client.Receipt, error) {
			if d.Scope == "" {
				d.Scope = check.Scope
			}
			if d.Authority == "" {
				d.Authority = check.Authority
			}
			return s.Delegate(ctx, performatives.Agent(args[0]), d)
		})
	cmd.Flags().StringVar(&d.Scope, "scope", "", "`TEXT` that says what to check (default: your own scope)")
	cmd.Flags().StringVar(&d.Authority, "authority", "", "`AUTHORITY`: advisory, limited or full (default: your own)")
	return cmd
}
