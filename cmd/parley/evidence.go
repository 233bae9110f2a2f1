package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/evidence"
)

func evidenceCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "evidence", Short: "one file that proves what became of a deal",
		Long: `A bundle of evidence has the agreements of a session, its transcript, and where each
obligation and dispute stands with the entries that say so. It is checked offline.`,
	}, connects(evidenceExport()), evidenceVerify())
}

func evidenceExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "export ID", Short: "write the bundle of a session", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley evidence export " + exampleSession + " -o evidence.json" + asCron,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				b, err := bundleOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				data, err := json.Marshal(b, json.Deterministic(true), jsontext.WithIndent("  "))
				if err != nil {
					return err
				}
				if to == "" {
					return say(cmd, forTerminal(cmd, string(data))+"\n")
				}
				return os.WriteFile(to, append(data, '\n'), 0o600)
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "write `FILE` (default standard output)")
	return cmd
}

// bundleOf gathers the bundle of a session.
func bundleOf(ctx context.Context, c connection, ref string) (b evidence.Bundle, err error) {
	id, err := c.sessionID(ctx, ref)
	if err != nil {
		return b, err
	}
	var lines [][]byte
	sealed := map[performatives.MessageID]performatives.SealedParts{}
	for since := uint64(0); ; {
		page, err := client.Do(ctx, c, api.SessionMessages, api.ListMessages{Session: id, Since: since, Limit: 1000})
		if err != nil {
			return b, err
		}
		for _, m := range page.Messages {
			lines = append(lines, m)
		}
		for message, parts := range page.Sealed {
			sealed[message] = parts
		}
		if page.Next == nil {
			break
		}
		since = *page.Next
	}
	b, err = evidence.Make(lines, sealed, nil)
	for i := range b.Agreements {
		if err == nil { // with its place in the public log
			b.Agreements[i], err = client.Do(ctx, c, api.AgreementGet, api.GetAgreement{Agreement: b.Agreements[i].ID, Session: id})
		}
	}
	return b, err
}

func evidenceVerify() *cobra.Command {
	var broker, logKey string
	var unsigned bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "check a bundle offline, and tell its story", Args: args(cobra.ExactArgs(1)),
		Example: "  parley evidence verify evidence.json --broker-key UAFC…",
		RunE: func(cmd *cobra.Command, args []string) error {
			trust := agreement.Trust{Broker: performatives.Key(broker), Unsigned: unsigned}
			if broker != "" && !trust.Broker.Valid() {
				return usage(errors.New("--broker-key is a public user nkey: U and 55 more letters and digits"))
			}
			if logKey != "" {
				var err error
				if trust.Log, err = inclusion.ParseKey(logKey); err != nil {
					return usage(fmt.Errorf("--log-key: %w", err))
				}
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			r := evidence.Verify(data, trust)
			err = show(cmd, r, func(s render.Style) string { return render.Evidence(r, s) })
			if err == nil && len(r.Faults) > 0 {
				err = fmt.Errorf("the evidence does not hold: %d faults", len(r.Faults))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&broker, "broker-key", "", "the broker's public `KEY` (default: the one that the receipts name)")
	cmd.Flags().StringVar(&logKey, "log-key", "", "the public log's `KEY`, as 'parley log key' prints it (default: places in it are not checked)")
	cmd.Flags().BoolVar(&unsigned, "allow-unsigned", false, "accept unsigned entries, as a broker under --dev does")
	return cmd
}
