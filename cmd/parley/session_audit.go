package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

const (
	// auditWait is how long other brokers may take to suspect a broker and to apply
	// its pending side effects.
	auditWait   = 8 * time.Second
	auditEvery  = 250 * time.Millisecond
	maxVerifies = 8 // concurrent

	progressEvery = 1000 // sessions
)

func sessionAudit() *cobra.Command {
	v := &verify{verdicts: []verdict{}}
	cmd := &cobra.Command{
		Use: "audit [ID…]", Short: "check the broker's derived data against the transcripts",
		Long: `Checks what the broker derives from transcripts: each principal's inbox copies (in
order and complete, except expired ones), timers, the session list and the
escalation inbox. Without an ID it audits every session in the store. It verifies
each transcript first, because nothing can be derived from a faulty one.

Only an operator can audit. A broker may still be applying side effects:
--applied-within is how long to wait for them.`,
		Example:           "  parley session audit\n  parley session audit " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if text(cmd, "as") != "" {
				return usage(errors.New("only an operator can audit: omit --as"))
			}
			for _, arg := range args {
				if err := checkPrefix("a session", arg); err != nil {
					return err
				}
			}
			v.all = len(args) == 0
			if err := v.broker(cmd, args); err != nil {
				return err
			}
			return v.report(cmd)
		},
	}
	v.waitFlag(cmd)
	return cmd
}

// broker verifies sessions of a broker.
func (v *verify) broker(cmd *cobra.Command, args []string) error {
	wait, err := cmd.Flags().GetDuration("timeout")
	if err != nil {
		return err
	}
	within := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), wait)
		defer cancel()
		return explain(cmd, do(ctx))
	}
	var c connection
	if err := within(func(ctx context.Context) (err error) { c, err = connect(ctx, cmd); return err }); err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // everything was answered
	if err := within(func(ctx context.Context) error {
		info, err := c.Broker(ctx)
		if err == nil && v.brokerKey == "" {
			v.brokerKey = string(info.Key)
			v.expect.AllowUnsigned = v.expect.AllowUnsigned || info.Dev
		}
		return err
	}); err != nil {
		return err
	}
	if v.all {
		if args, err = every(cmd, c, within); err != nil {
			return explain(cmd, err)
		}
	}
	found := make([][]verdict, len(args))
	known := make([][]string, len(args)) // escalations
	var work errgroup.Group
	var done atomic.Int64
	work.SetLimit(maxVerifies)
	for i, arg := range args {
		work.Go(func() error {
			defer func() {
				if n := done.Add(1); n%progressEvery == 0 {
					note(cmd, fmt.Sprintf("%d of %d sessions are checked.", n, len(args)))
				}
			}()
			if allFiles([]string{arg}) {
				one := &verify{brokerKey: v.brokerKey, expect: v.expect, parts: v.parts, inLog: v.inLog, leaves: v.leaves}
				err := one.files([]string{arg})
				found[i] = one.verdicts
				return err
			}
			err := within(func(ctx context.Context) error {
				id, err := c.sessionID(ctx, arg)
				if err != nil {
					return err
				}
				one, items, err := v.live(ctx, c, id)
				found[i], known[i] = []verdict{one}, items
				return err
			})
			if err == nil || !v.all || cmd.Context().Err() != nil {
				return err
			}
			found[i] = []verdict{{Source: arg, Session: arg, Faults: []transcript.Fault{}, Derived: []audit.Fault{}, Error: err.Error()}}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, verdicts := range found {
		v.verdicts = append(v.verdicts, verdicts...)
	}
	if v.all && c.operator != nil {
		return v.strays(within, c, slices.Sorted(slices.Values(slices.Concat(known...))))
	}
	return nil
}

// every returns the sessions of the store, for an operator, and of the list. One
// unavailable session makes the list unavailable; an operator goes on without it.
func every(cmd *cobra.Command, c connection, within func(func(context.Context) error) error) (ids []string, err error) {
	known := map[string]bool{}
	add := func(id performatives.SessionID) {
		if !known[string(id)] {
			known[string(id)] = true
			ids = append(ids, string(id))
		}
	}
	if c.operator != nil {
		for q := (api.ListAudit{}); ; {
			var page api.AuditedSessions
			if err := within(func(ctx context.Context) (err error) {
				page, err = client.Do(ctx, c.operator, api.AuditSessions, q)
				return err
			}); err != nil {
				return nil, err
			}
			for _, id := range page.Sessions {
				add(id)
			}
			if page.Next == nil {
				break
			}
			q.Cursor = *page.Next
		}
	}
	for q := (api.ListSessions{Limit: api.MaxPage}); err == nil; {
		var page api.Sessions
		if err = within(func(ctx context.Context) (err error) {
			page, err = client.Do(ctx, c, api.SessionList, q)
			return err
		}); err != nil {
			break
		}
		for _, s := range page.Sessions {
			add(s.Session)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if c.operator != nil && errors.Is(err, client.Refused(session.Unavailable)) {
		note(cmd, "The session list is unavailable, so only sessions in the store are checked.")
		err = nil
	}
	return ids, err
}

// live verifies a session up to its head and audits its derived data. It retries
// an audit with faults, because the broker may still be applying side effects.
func (v *verify) live(ctx context.Context, c connection, id performatives.SessionID) (found verdict, items []string, err error) {
	if c.operator == nil {
		view, lines, err := c.upTo(ctx, id)
		if err != nil {
			return found, nil, err
		}
		expect := v.of(id)
		if expect.Head == "" && view.Head.Sequence != nil {
			expect.Head, expect.Length = view.Head.Hash, int(*view.Head.Sequence)+1 //nolint:gosec // what is in memory can be counted
		}
		found, err = v.verdict(string(id), export(lines), expect, func() (parts, error) { return c.Sealed(ctx, id, 0) })
		return found, nil, err
	}
	for end := time.Now().Add(v.wait); ; {
		held, err := c.operator.Held(ctx, id)
		if err != nil {
			return found, nil, err
		}
		items = nil
		for _, item := range held.Items {
			items = append(items, string(item.ID))
		}
		if found, err = v.against(ctx, c, held); err != nil || len(found.Derived) == 0 || time.Now().After(end) {
			return found, items, err
		}
		select {
		case <-time.After(auditEvery):
		case <-ctx.Done():
			return found, items, nil
		}
	}
}

func (v *verify) of(id performatives.SessionID) transcript.Expect {
	expect := v.expect
	expect.Session = id
	return expect
}

// against verifies a transcript as it is stored, and audits the derived data.
func (v *verify) against(ctx context.Context, c connection, held api.Held) (found verdict, err error) {
	lines, err := c.operator.Stored(ctx, held.Session)
	if err != nil {
		return found, err
	}
	data := append(bytes.Join(lines, []byte("\n")), '\n')
	if len(lines) == 0 {
		data = nil
	}
	sealed := func() (parts, error) { return c.Sealed(ctx, held.Session, 0) }
	if found, err = v.verdict(string(held.Session), data, v.of(held.Session), sealed); err != nil || !found.OK {
		return found, err // nothing can be derived from a faulty transcript
	}
	entries, err := transcript.ReadAll(bytes.NewReader(data))
	if err != nil {
		return found, err
	}
	faults, err := audit.Session(entries, held, modes.All())
	found.Derived = append(found.Derived, faults...)
	found.OK = len(faults) == 0
	return found, err
}

// strays finds escalations that are in no transcript.
func (v *verify) strays(within func(func(context.Context) error) error, c connection, known []string) error {
	broken := map[string]bool{} // transcripts whose escalations are unknown
	for _, found := range v.verdicts {
		broken[found.Source] = len(found.Faults) > 0 || found.Error != ""
	}
	for q := (api.ListEscalations{Status: "all"}); ; {
		var page api.Escalations
		if err := within(func(ctx context.Context) (err error) {
			page, err = client.Do(ctx, c, api.EscalationList, q)
			return err
		}); err != nil {
			return err
		}
		for _, item := range page.Escalations {
			if _, is := slices.BinarySearch(known, string(item.ID)); is || broken[string(item.Session)] {
				continue
			}
			if err := within(func(ctx context.Context) error { return v.stray(ctx, c, item) }); err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

// stray looks once more whether an escalation is in its transcript: it may be new.
func (v *verify) stray(ctx context.Context, c connection, item api.EscalationItem) error {
	held, err := c.operator.Held(ctx, item.Session)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(held.Items, func(i api.EscalationItem) bool { return i.ID == item.ID }) {
		v.items = append(v.items, audit.Fault{Kind: audit.Item, Why: fmt.Sprintf("escalation %s of session %s is in no transcript", item.ID, item.Session)})
	}
	return nil
}
