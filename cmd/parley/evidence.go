package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

func evidenceCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "evidence", Short: "one file that proves what became of a deal",
		Long: `A bundle of evidence has the agreements of a session, its transcript, and where each
obligation and dispute stands with the entries that say so. It has what the public log
knows of them, with COSE Receipts (RFC 9942). It is checked offline.`,
	}, connects(evidenceExport()), evidenceVerify())
}

func evidenceExport() *cobra.Command {
	var to string
	var redact []string
	var closed bool
	cmd := &cobra.Command{
		Use: "export ID", Short: "write the bundle of a session", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the bundle, with what your own organisation has sealed, so that all of it can
be verified. Whoever has the file reads that too. --without-sealed leaves it out.`,
		Example:           "  parley evidence export " + exampleSession + " -o evidence.json" + asCron,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				b, err := bundleOf(ctx, cmd, c, args[0], redact)
				if err != nil {
					return err
				}
				if closed {
					b.Sealed = nil
				}
				noteSealed(cmd, b)
				noteWithheld(cmd, b, redact)
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
	cmd.Flags().StringSliceVar(&redact, "redact", nil, "`TERMS` to take out, with each entry that would tell them; can be repeated")
	cmd.Flags().BoolVar(&closed, "without-sealed", false, "leave out what your organisation has sealed")
	cmd.Flags().StringVarP(&to, "output", "o", "", "write `FILE` (default standard output)")
	return cmd
}

// noteSealed says which secrets whoever gets the file reads.
func noteSealed(cmd *cobra.Command, b evidence.Bundle) {
	var opened []uint64
	for i, line := range b.Transcript {
		if e, err := transcript.Read(line); err == nil && len(b.Sealed[e.Message.ID]) > 0 {
			opened = append(opened, uint64(i))
		}
	}
	if len(opened) > 0 {
		note(cmd, "parley: whoever has the file reads what is sealed in "+numbered(opened)+"; --without-sealed leaves that out")
	}
}

// noteWithheld says what redaction has taken out and what it has left: the same value may stand in another term.
func noteWithheld(cmd *cobra.Command, b evidence.Bundle, redact []string) {
	if len(redact) == 0 {
		return
	}
	text := "parley: no entry is withheld"
	if gone := b.Withheld(); len(gone) > 0 {
		text = "parley: withheld: " + numbered(gone)
	}
	left := map[string]bool{}
	for _, d := range b.Agreements {
		for name := range d.Terms {
			left[name] = true
		}
	}
	text += "; all else is as it was"
	if len(left) > 0 {
		text += ", also the terms " + strings.Join(slices.Sorted(maps.Keys(left)), ", ")
	}
	note(cmd, text+": what stands there too is still told")
}

// numbered names entries, one or more.
func numbered(entries []uint64) string {
	if len(entries) == 1 {
		return fmt.Sprint("entry ", entries[0])
	}
	return "entries " + strings.Trim(strings.ReplaceAll(fmt.Sprint(entries), " ", ", "), "[]")
}

// bundleOf asks for the bundle of a session, and if it does not fit one reply, for its transcript by itself.
func bundleOf(ctx context.Context, cmd *cobra.Command, c connection, ref string, redact []string) (b evidence.Bundle, err error) {
	id, err := c.sessionID(ctx, ref)
	if err != nil {
		return b, err
	}
	for end := time.Now().Add(untilLogged); ; {
		b, err = client.Do(ctx, c, api.SessionEvidence, api.GetEvidence{Session: id, Redact: redact})
		if errors.Is(err, client.Refused(session.TooLarge)) && len(redact) == 0 {
			b, err = inParts(ctx, c, id)
		}
		if err != nil || b.IsLogged() {
			return b, err
		}
		if time.Now().After(end) {
			note(cmd, "parley: the public log has not all of it yet")
			return b, nil
		}
		if err := background.Pause(ctx, untilLogged/100); err != nil {
			return b, err
		}
	}
}

// inParts gathers a bundle whose transcript is read by pages.
func inParts(ctx context.Context, c connection, id performatives.SessionID) (b evidence.Bundle, err error) {
	if b, err = client.Do(ctx, c, api.SessionEvidence, api.GetEvidence{Session: id, Bare: true}); err != nil {
		return b, err
	}
	for since := uint64(0); ; {
		page, err := client.Do(ctx, c, api.SessionMessages, api.ListMessages{Session: id, Since: since, Limit: api.MaxPage})
		if err != nil {
			return b, err
		}
		if b.Take(page.Messages, page.Sealed) || page.Next == nil {
			return b, nil
		}
		since = *page.Next
	}
}

func evidenceVerify() *cobra.Command {
	var broker brokerTrust
	var receiptKey string
	var unsigned bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "check a bundle offline, and tell its story", Args: args(cobra.ExactArgs(1)),
		Example: "  parley evidence verify evidence.json --broker-key UAFC…",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := broker.read(); err != nil {
				return err
			}
			trust := evidence.Trust{Trust: agreement.Trust{Broker: broker.key, BrokerKeys: broker.keys, Unsigned: unsigned}}
			if err := trustLog(cmd, &trust.Trust); err != nil {
				return err
			}
			if receiptKey != "" {
				text, err := os.ReadFile(receiptKey)
				if err != nil {
					return err
				}
				if trust.Receipts, err = inclusion.ParseReceiptKey(string(text)); err != nil {
					return usage(fmt.Errorf("--receipt-key %s: want a public Ed25519 key as PEM, as 'parley log key --receipts' prints it", receiptKey))
				}
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := isFor(args[0], data, "evidence"); err != nil {
				return err
			}
			return reportEvidence(cmd, evidence.Verify(data, trust))
		},
	}
	broker.flags(cmd.Flags(), "the one that the bundle names")
	cmd.Flags().String("log-key", "", "the public log's `KEY`, as 'parley log key' prints it (default: places in it are not checked)")
	witnessFlag(cmd)
	cmd.Flags().StringVar(&receiptKey, "receipt-key", "", "PEM `FILE` with the key of COSE Receipts, as 'parley log key --receipts' prints it (default: the one in the bundle)")
	cmd.Flags().BoolVar(&unsigned, "allow-unsigned", false, "accept unsigned entries, as a broker under --dev does")
	return cmd
}

func reportEvidence(cmd *cobra.Command, r evidence.Report) error {
	result := struct {
		Session  performatives.SessionID `json:"sessionId"`
		OK       bool                    `json:"ok"`
		Entries  int                     `json:"entries"`
		Withheld int                     `json:"withheld"`
		Unlinked int                     `json:"unlinked"` // of the withheld ones
		AsOf     string                  `json:"asOf"`     // nothing later is in it
		Logged   int                     `json:"logged"`
		Claimed  []string                `json:"claimed"` // only the file says it
		Faults   []evidence.Fault        `json:"faults"`

		Hosted       []performatives.Agent `json:"hosted,omitzero"`            // whose key the installation holds
		LogUnchecked bool                  `json:"logUnchecked,omitzero"`      // without --log-key
		Receipts     bool                  `json:"receiptsUnchecked,omitzero"` // without --receipt-key
		Unchecked    []performatives.Key   `json:"uncheckedKeys,omitzero"`     // without --broker-key
	}{r.Bundle.Session, len(r.Faults) == 0, len(r.Bundle.Transcript), r.Withheld, r.Unlinked, r.AsOf, r.Logged, r.Claimed, r.Faults, r.Hosted, r.LogUnchecked, r.ReceiptsUnchecked, r.Unchecked}
	err := show(cmd, result, func(s render.Style) string { return render.Evidence(r, s) })
	if err == nil && !result.OK {
		err = errors.New("the evidence does not hold: " + render.Count(len(r.Faults), "fault", "faults"))
	}
	return err
}
