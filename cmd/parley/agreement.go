package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

func agreementCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "agreement", Short: "export, redact and verify agreements",
		Long: `An agreement is what an ACCEPT of a proposal makes in asp/1 and binding/1, and a
COMMIT in convergent/1: one file that says who agreed on what, and proves it.`,
	}, agreementLs(), agreementExport(), agreementShow(), agreementRedact(), agreementVerify())
}

// agreements are those of a transcript: of a session of the caller's, or in a file that
// 'parley session export' wrote.
func agreements(cmd *cobra.Command, source string) (all []agreement.Document, err error) {
	if data, err := os.ReadFile(source); err == nil {
		return agreementsOf(data)
	}
	err = with(cmd, func(ctx context.Context, c connection) error {
		id, err := c.sessionID(ctx, source)
		if err != nil {
			return err
		}
		lines, err := c.messages(ctx, id, 0)
		if err != nil {
			return err
		}
		all, err = agreementsOf(export(lines))
		return err
	})
	return all, err
}

func agreementsOf(lines []byte) ([]agreement.Document, error) {
	entries, err := transcript.ReadAll(bytes.NewReader(lines))
	if err != nil {
		return nil, err
	}
	return agreement.Of(entries, modes.All())
}

func agreementLs() *cobra.Command {
	return connects(&cobra.Command{
		Use: "ls SESSION | FILE", Short: "list the agreements of a session", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley agreement ls " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := agreements(cmd, args[0])
			if err != nil {
				return err
			}
			return show(cmd, all, func(s render.Style) string { return render.Agreements(all, s) })
		},
	})
}

func agreementExport() *cobra.Command {
	var file, proposal string
	cmd := &cobra.Command{
		Use: "export SESSION | FILE", Short: "write an agreement as a file", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the newest agreement of a session, or the one on --proposal. It is made from
the transcript, here or in a FILE of 'parley session export', and 'parley agreement
verify' checks it offline. The file has the
terms' salts: who has a salt can tell whether a guess of its term is right.`,
		Example:           "  parley agreement export " + exampleSession + " -o deal.json",
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := agreements(cmd, args[0])
			if err != nil {
				return err
			}
			for _, d := range slices.Backward(all) {
				if proposal == "" || d.ID == agreement.IDOf(d.Negotiation, proposal) {
					return writeAgreement(cmd, d, file)
				}
			}
			return errors.New("the session has no such agreement")
		},
	}
	cmd.Flags().StringVar(&proposal, "proposal", "", "the `ID` of the accepted proposal (default: the newest)")
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write (default: standard output)")
	return connects(cmd)
}

func writeAgreement(cmd *cobra.Command, d agreement.Document, file string) error {
	data, err := d.Bytes()
	switch {
	case err != nil:
		return err
	case file == "" || file == "-":
		return say(cmd, forTerminal(cmd, string(data)))
	}
	return os.WriteFile(file, data, 0o600)
}

func agreementShow() *cobra.Command {
	return &cobra.Command{
		Use: "show FILE", Short: "show an agreement as a cover sheet", Args: args(cobra.ExactArgs(1)),
		Long:    "Shows who agreed on what, from when to when, and what proves it.",
		Example: "  parley agreement show deal.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			r := agreement.Verify(data, agreement.Trust{Unsigned: true})
			return show(cmd, r.Document, func(s render.Style) string { return render.Agreement(r, s) })
		},
	}
}

func agreementRedact() *cobra.Command {
	var keep []string
	var file string
	cmd := &cobra.Command{
		Use: "redact FILE", Short: "take terms out of an agreement", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the agreement with the terms of --keep only. The others leave with their
salts; their digests stay, so the hash and the signatures over it still hold. The
entries of offer and acceptance leave too, because they tell all terms.`,
		Example: "  parley agreement redact deal.json --keep price,period -o public.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			r := agreement.Verify(data, agreement.Trust{Unsigned: true})
			if len(r.Faults) > 0 {
				return fmt.Errorf("%s is not a valid agreement: %s", args[0], r.Faults[0])
			}
			for _, name := range keep {
				if _, has := r.Document.Terms[name]; !has {
					return usage(fmt.Errorf("the agreement has no term %q", name))
				}
			}
			return writeAgreement(cmd, r.Document.Redact(keep...), file)
		},
	}
	cmd.Flags().StringSliceVar(&keep, "keep", nil, "`TERMS` to keep, separated by commas (default: none)")
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write (default: standard output)")
	return cmd
}

func agreementVerify() *cobra.Command {
	var broker string
	var keys []string
	var unsigned bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "check an agreement offline", Args: args(cobra.ExactArgs(1)),
		Long: `Checks the digests and the hash, the parties' signatures, and the entries of offer
and acceptance with their receipts. Without --broker-key and --key it takes the
keys that the file names: compare them with those that you trust.`,
		Example: `  parley agreement verify deal.json --broker-key UAFC…
  parley agreement verify public.json --key agent://acme.com/buyer=UBX2…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			trust := agreement.Trust{Broker: performatives.Key(broker), Unsigned: unsigned, Keys: map[performatives.Agent]performatives.Key{}}
			if broker != "" && !trust.Broker.Valid() {
				return usage(errors.New("--broker-key is a public user nkey: U and 55 more letters and digits"))
			}
			for _, pair := range keys {
				uri, key, _ := strings.Cut(pair, "=")
				a, err := performatives.ParseAgent(uri)
				if k := performatives.Key(key); err != nil || !k.Valid() {
					return usage(fmt.Errorf("--key %s is not a principal's URI, =, and its public user nkey", pair))
				}
				trust.Keys[a] = performatives.Key(key)
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			return reportAgreement(cmd, agreement.Verify(data, trust))
		},
	}
	cmd.Flags().StringVar(&broker, "broker-key", "", "the broker's public `KEY` (default: the one that the receipts name)")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "a party's `URI=KEY`; repeatable (default: the keys in the file)")
	cmd.Flags().BoolVar(&unsigned, "allow-unsigned", false, "accept unsigned entries, as a broker under --dev does")
	return cmd
}

func reportAgreement(cmd *cobra.Command, r agreement.Report) error {
	result := struct {
		ID       agreement.ID      `json:"agreementId"`
		OK       bool              `json:"ok"`
		Signed   []agreement.DID   `json:"signed"`
		Redacted []string          `json:"redacted"`
		Faults   []agreement.Fault `json:"faults"`
	}{r.Document.ID, len(r.Faults) == 0, r.Signed, r.Redacted, r.Faults}
	err := show(cmd, result, func(s render.Style) string { return render.Agreement(r, s) })
	if err == nil && !result.OK {
		err = fmt.Errorf("the agreement does not hold: %d faults", len(r.Faults))
	}
	return err
}
