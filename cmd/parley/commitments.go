package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

const asSeller = " \\\n    --as agent://widgets.co/seller --key seller.nk"

func commitmentsCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "commitments", Short: "carry out what was agreed",
		Long: `What a COMMIT obliges its parties to is due until it is delivered and the other side
has accepted that. An obligation is named by its commitment and its id, such as k1/0.
A deadline that passes is a breach; a delivery that nobody answers counts as accepted.`,
	}, commitmentsLs(), commitmentsShow(), commitmentsFulfil(), commitmentsAccept(), commitmentsReject(), commitmentsWaive(), commitmentsAmend()))
}

const whoCarriesOut = "obligations are those of a principal: set --as agent://… and --key"

func commitmentsLs() *cobra.Command {
	var q api.ListObligations
	cmd := &cobra.Command{
		Use: "ls", Short: "list what is due in all sessions, the first due first", Args: args(cobra.NoArgs),
		Example: "  parley commitments ls --awaiting me" + asSeller,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				list, _, err := pages(ctx, c, api.ObligationList, q, listing{})
				if err != nil {
					return err
				}
				return show(cmd, list.Obligations, func(s render.Style) string { return render.Obligations(list.Obligations, s) })
			})
		},
	}
	cmd.Flags().StringVar(&q.Awaiting, "awaiting", "", "only what your organisation has to do, `me`, or only what others have to, others")
	cmd.Flags().StringVar(&q.Status, "status", "", "only of this `STATUS`: due, partial, asserted, breached or disputed")
	cmd.Flags().StringVar(&q.After, "after", "", "only what is due at this `TIME` or later, such as 2026-03-14T09:26:53Z")
	cmd.Flags().StringVar(&q.Before, "before", "", "only what is due before this `TIME`")
	fullFlag(cmd)
	return principals(cmd, whoCarriesOut)
}

func commitmentsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "show the obligations of a session, and what was delivered", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley commitments show " + exampleSession + asSeller,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDeal(cmd, args[0], func(_ context.Context, _ connection, deal api.Snapshot) error {
				var all []api.ObligationRow
				for _, o := range deal.Obligations {
					all = append(all, api.ObligationRowOf(deal.Session, deal.Purpose, o))
				}
				return show(cmd, deal.Obligations, func(s render.Style) string {
					return render.Obligations(all, s) + render.Deliveries(deal.Obligations, s)
				})
			})
		},
	}
	fullFlag(cmd)
	return principals(cmd, whoCarriesOut)
}

// withDeal does something with the snapshot of a session.
func withDeal(cmd *cobra.Command, ref string, do func(context.Context, connection, api.Snapshot) error) error {
	return with(cmd, func(ctx context.Context, c connection) error {
		id, err := c.sessionID(ctx, ref)
		if err != nil {
			return err
		}
		deal, err := client.Do(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: id})
		if err != nil {
			return err
		}
		return do(ctx, c, deal)
	})
}

// saysOf makes a command that sends one act, as the next entry after what the snapshot shows.
func saysOf(cmd *cobra.Command, body func(deal api.Snapshot, args []string) (performatives.Body, error)) *cobra.Command {
	cmd.ValidArgsFunction = completeFirst(completeSessions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withDeal(cmd, args[0], func(ctx context.Context, c connection, deal api.Snapshot) error {
			act, err := body(deal, args[1:])
			if err != nil {
				return err
			}
			head := performatives.Link{Sequence: deal.Head.N + 1, PreviousHash: deal.Head.Hash}
			receipt, err := c.principal.Session(deal.Session).Say(ctx, act, client.LinkTo(head))
			if err != nil {
				return err
			}
			return show(cmd, receipt.Acceptance, func(render.Style) string {
				return fmt.Sprintf("%s: entry %d; the session is %s\n", act.Act(), receipt.Sequence, receipt.State)
			})
		})
	}
	return principals(cmd, whoCarriesOut)
}

// named finds the obligation that is named by its commitment and its id.
func named(deal api.Snapshot, name string) (api.ObligationView, error) {
	var all []string
	for _, o := range deal.Obligations {
		if o.Commitment+"/"+o.ID == name {
			return o, nil
		}
		all = append(all, o.Commitment+"/"+o.ID)
	}
	if len(all) == 0 {
		return api.ObligationView{}, errors.New("nothing is carried out in this session")
	}
	return api.ObligationView{}, usage(fmt.Errorf("there is no obligation %s: want %s", name, anyOf(all)))
}

// entryFlag adds --entry, the delivery that the user has read: a newer one may have taken its place.
func entryFlag(cmd *cobra.Command) *uint64 {
	return cmd.Flags().Uint64("entry", 0, "`NUMBER` of the delivery's entry, as 'parley commitments show' has it: refused if a newer one\nhas taken its place (default: what waits for an answer)")
}

// delivered finds what was delivered of an obligation and waits for an answer, by the entry that --entry gives.
func delivered(cmd *cobra.Command, deal api.Snapshot, name string, entry uint64) (string, error) {
	o, err := named(deal, name)
	switch {
	case err != nil:
		return "", err
	case o.Delivery == nil:
		return "", fmt.Errorf("nothing that was delivered of %s waits for an answer: it is %s", name, o.Status)
	case cmd.Flags().Changed("entry") && o.Delivery.Sequence != entry:
		return "", fmt.Errorf("what was delivered of %s, and waits for an answer, is entry %d: read it first, by 'parley commitments show'", name, o.Delivery.Sequence)
	}
	return o.Delivery.Reference, nil
}

// informs is an INFORM with data.
func informs(kind string, data any) (performatives.Body, error) {
	raw, err := json.Marshal(data, json.Deterministic(true))
	return &performatives.InformBody{Type: kind, Data: raw}, err
}

// quantityFlag adds --quantity; the pointer is nil until it is set.
func quantityFlag(cmd *cobra.Command, about string) func() *float64 {
	quantity := cmd.Flags().Float64("quantity", 0, about)
	return func() *float64 {
		if !cmd.Flags().Changed("quantity") {
			return nil
		}
		return quantity
	}
}

// evidenceFlags adds the flags of evidence.
func evidenceFlags(cmd *cobra.Command) func() ([]performatives.Evidence, error) {
	files := cmd.Flags().StringArray("evidence", nil, "`FILE` that shows it; its digest is sent, not the file; can be repeated")
	kind := cmd.Flags().String("kind", "document", "what the evidence is, in a `WORD` such as invoice or photo")
	return func() (all []performatives.Evidence, err error) {
		for _, name := range *files {
			digest, err := digestOf(name)
			if err != nil {
				return nil, err
			}
			all = append(all, performatives.Evidence{Kind: *kind, Digest: digest, Note: filepath.Base(name)})
		}
		return all, nil
	}
}

func digestOf(name string) (performatives.Hash, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return performatives.Hash("sha256:" + hex.EncodeToString(sum.Sum(nil))), nil
}

func commitmentsFulfil() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fulfil ID OBLIGATION", Short: "say that an obligation is delivered", Args: args(cobra.ExactArgs(2)),
		Example: "  parley commitments fulfil " + exampleSession + " k1/0 --quantity 50 \\\n    --evidence note.pdf" + asSeller,
	}
	quantity, evidence := quantityFlag(cmd, "how much is delivered, a `NUMBER` (default all that is still due)"), evidenceFlags(cmd)
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		o, err := named(deal, args[0])
		if err != nil {
			return nil, err
		}
		files, err := evidence()
		if err != nil {
			return nil, err
		}
		return informs(performatives.Result, performatives.ResultData{
			CommitmentID: o.Commitment, Obligation: performatives.ObligationID(o.ID), Quantity: quantity(), Evidence: files,
		})
	})
}

func commitmentsAccept() *cobra.Command {
	cmd := &cobra.Command{
		Use: "accept ID OBLIGATION", Short: "accept what was delivered", Args: args(cobra.ExactArgs(2)),
		Example: "  parley commitments accept " + exampleSession + " k1/0 --entry 9 --quantity 45" + asCron,
	}
	quantity, entry := quantityFlag(cmd, "how much of it is accepted, a `NUMBER` (default all)"), entryFlag(cmd)
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		reference, err := delivered(cmd, deal, args[0], *entry)
		return &performatives.AcceptBody{ReferenceID: reference, Quantity: quantity()}, err
	})
}

func commitmentsReject() *cobra.Command {
	var code, reason string
	cmd := &cobra.Command{
		Use: "reject ID OBLIGATION", Short: "turn down what was delivered: it is due again", Args: args(cobra.ExactArgs(2)),
		Example: "  parley commitments reject " + exampleSession + ` k1/0 --code incomplete \
    --reason "five boxes are missing"` + asCron,
	}
	cmd.Flags().StringVar(&code, "code", "unspecified", "why, for programs: `CODE` late, incomplete, mismatch, evidence_missing or unspecified")
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a `TEXT` for people")
	entry := entryFlag(cmd)
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		if reason == "" {
			return nil, usage(errors.New("say why: --reason TEXT"))
		}
		reference, err := delivered(cmd, deal, args[0], *entry)
		return &performatives.RejectBody{ReferenceID: reference, Code: code, Reason: reason, Retryable: true}, err
	})
}

func commitmentsWaive() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "waive ID OBLIGATION", Short: "do without what the other side owes", Args: args(cobra.ExactArgs(2)),
		Example: "  parley commitments waive " + exampleSession + ` k1/0 --reason "it came another way"` + asCron,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a `TEXT` for people")
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		o, err := named(deal, args[0])
		switch {
		case err != nil:
			return nil, err
		case reason == "":
			return nil, usage(errors.New("say why: --reason TEXT"))
		}
		return informs(performatives.Waiver, performatives.WaiverData{CommitmentID: o.Commitment, Obligation: performatives.ObligationID(o.ID), Reason: reason})
	})
}

func commitmentsAmend() *cobra.Command {
	var file string
	var terms map[string]any
	cmd := &cobra.Command{
		Use: "amend ID COMMITMENT", Short: "offer other obligations in place of those still due", Args: args(cobra.ExactArgs(2)),
		Long: `Offers other obligations. Each replaces the one of its id that is still due; one with
another id is added. They are in force once every party of the commitment has accepted.`,
		Example: "  parley commitments amend " + exampleSession + " k1 --terms later.yaml" + asSeller,
	}
	cmd.Flags().StringVar(&file, "terms", "", "`FILE` with obligations, an object of JSON or YAML")
	before(cmd, func() (err error) {
		if file == "" {
			return usage(errors.New("name the obligations: --terms FILE"))
		}
		terms, err = readTerms(file)
		return err
	})
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		raw, err := json.Marshal(terms, json.Deterministic(true))
		return &performatives.ProposeBody{
			ProposalID: fmt.Sprintf("amendment-%d", deal.Head.N+1), Type: performatives.Amendment, Subject: "other obligations", ReferenceID: args[0], Terms: jsontext.Value(raw),
		}, err
	})
}
