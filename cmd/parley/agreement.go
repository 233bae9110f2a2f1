package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

func agreementCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "agreement", Short: "export, redact and verify agreements",
		Long: `An agreement is one file that says who agreed on what, and proves it. A COMMIT
makes one in asp/1 and convergent/1, an ACCEPT in bilateral/1 and binding/1. In
asp/1, a session without a COMMIT makes one of each accepted proposal when it is
closed as completed.`,
	}, agreementLs(), agreementExport(), agreementShow(), agreementRedact(), agreementVerify())
}

// inFile are the agreements of a transcript that 'parley session export' wrote, and
// their rows in a list, or none of them and false.
func inFile(name string) (all []agreement.Document, rows []api.AgreementRow, is bool, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, false, nil //nolint:nilerr // it names a session
	}
	entries, err := transcript.ReadAll(bytes.NewReader(data))
	if err != nil {
		return nil, nil, true, err
	}
	if all, err = agreement.Of(entries, modes.All()); err != nil {
		return nil, nil, true, err
	}
	state, _, err := replay(data, nil)
	for i, a := range state.Agreements() {
		rows = append(rows, api.ViewAgreement(&state, a, all[i], entries[a.Made()].Stamp.Receipt.AcceptedAt))
	}
	return all, rows, true, err
}

func agreementLs() *cobra.Command {
	return connects(&cobra.Command{
		Use: "ls [SESSION | FILE]", Short: "list agreements", Args: args(cobra.MaximumNArgs(1)),
		Long:              "Lists the agreements of all your sessions, the newest session first, or of one.",
		Example:           "  parley agreement ls\n  parley agreement ls " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, rows, is, err := inFile(strings.Join(args, ""))
			list := api.Agreements{Agreements: rows}
			if !is {
				err = with(cmd, func(ctx context.Context, c connection) (err error) {
					var q api.ListAgreements
					if len(args) > 0 {
						if q.Session, err = c.sessionID(ctx, args[0]); err != nil {
							return err
						}
					}
					list, _, err = pages(ctx, c, api.AgreementList, q, listing{})
					return err
				})
			}
			if err != nil {
				return err
			}
			return show(cmd, list.Agreements, func(s render.Style) string { return render.Agreements(list.Agreements, s) })
		},
	})
}

func agreementExport() *cobra.Command {
	var file, proposal string
	var as principalOrFormat
	cmd := &cobra.Command{
		Use: "export SESSION | AGREEMENT | FILE", Short: "write an agreement as a file", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the newest agreement of a session, the one on --proposal, or the AGREEMENT of
this id (agr_…), with its position in the public log. Of a FILE of 'parley session
export' it is made without the broker, and has no position. 'parley agreement verify'
checks it offline. The file has the terms' salts: who has a salt can tell whether a
guess of its term is right. With --as and a format it writes what another protocol
takes from the agreement.`,
		Example:           "  parley agreement export " + exampleSession + " -o deal.json\n  parley agreement export " + exampleSession + " --as adcp",
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, _, is, err := inFile(args[0])
			if !is {
				err = with(cmd, func(ctx context.Context, c connection) error {
					q, err := c.agreementOf(ctx, args[0])
					if err != nil {
						return err
					}
					if proposal != "" && q.Session != "" {
						q.Agreement = agreement.IDOf(q.Session, proposal)
					}
					d, err := loggedAgreement(ctx, cmd, c, q)
					all = append(all, d)
					return err
				})
			}
			if err != nil {
				return err
			}
			for _, d := range slices.Backward(all) {
				if proposal != "" && d.ID != agreement.IDOf(d.Negotiation.Session(), proposal) {
					continue
				}
				if as.format == "" {
					return writeAgreement(cmd, d, file)
				}
				m, err := mappingOf(d, as.format)
				if err != nil {
					return err
				}
				return writeMapping(cmd, m, file)
			}
			return errors.New("the session has no such agreement")
		},
	}
	cmd.Flags().StringVar(&proposal, "proposal", "", "the `ID` of the accepted proposal (default: the newest)")
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write (default: standard output)")
	connects(cmd)
	as.replaces(cmd, "write")
	return cmd
}

// loggedAgreement reads an agreement once it is in the public log, or as it is after a while.
func loggedAgreement(ctx context.Context, cmd *cobra.Command, c connection, q api.GetAgreement) (d agreement.Document, err error) {
	for end := time.Now().Add(untilLogged); ; {
		d, err = c.Agreement(ctx, q)
		switch {
		case err != nil || d.Log != nil:
			return d, err
		case time.Now().After(end):
			note(cmd, "parley: the agreement has no position in the public log yet")
			return d, nil
		}
		if err := background.Pause(ctx, untilLogged/100); err != nil {
			return d, err
		}
	}
}

// untilLogged is how long it takes an agreement to be in the public log, at most.
const untilLogged = 10 * time.Second

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
	var as principalOrFormat
	cmd := &cobra.Command{
		Use: "show FILE | SESSION | AGREEMENT", Short: "show an agreement as a cover sheet", Args: args(cobra.ExactArgs(1)),
		Long: `Shows who agreed on what, from when to when, and what proves it: of a FILE, or, from
the broker, of the newest agreement of a session or the AGREEMENT of this id (agr_…).
With --as and a format it shows what another protocol takes from the agreement, and
what that protocol's public documents leave open.`,
		Example:           "  parley agreement show deal.json\n  parley agreement show deal.json --as ap2\n  parley agreement show " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(args[0], "./") {
				err = with(cmd, func(ctx context.Context, c connection) error {
					q, err := c.agreementOf(ctx, args[0])
					if err != nil {
						return err
					}
					d, err := c.Agreement(ctx, q)
					if err == nil {
						data, err = d.Bytes()
					}
					return err
				})
			}
			if err != nil {
				return err
			}
			r := agreement.Verify(data, agreement.Trust{Unsigned: true})
			if as.format == "" {
				return show(cmd, r.Document, func(s render.Style) string { return render.Agreement(r, s) })
			}
			if len(r.Faults) > 0 {
				return notValid(args[0], r)
			}
			m, err := mappingOf(r.Document, as.format)
			if err != nil {
				return err
			}
			return show(cmd, m, func(s render.Style) string { return render.Mapping(m, s) })
		},
	}
	connects(cmd)
	as.replaces(cmd, "show")
	return cmd
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
				return notValid(args[0], r)
			}
			for _, name := range keep {
				if _, has := r.Document.Terms[name]; !has {
					return usage(fmt.Errorf("the agreement has no term %q", name))
				}
			}
			redacted := r.Document.Redact(keep...)
			if r.Document.Log != nil && redacted.Log == nil {
				note(cmd, "The public log has terms that are taken out: anybody can read them there. The position in the log is left out.")
			}
			return writeAgreement(cmd, redacted, file)
		},
	}
	cmd.Flags().StringSliceVar(&keep, "keep", nil, "`TERMS` to keep, separated by commas (default: none)")
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write (default: standard output)")
	return cmd
}
