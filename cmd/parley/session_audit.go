package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

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
	auditWait  = 8 * time.Second
	auditEvery = 250 * time.Millisecond
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
--applied-within is how long to wait for them. --timeout applies to each request,
and --after goes on where an audit of all sessions was interrupted.`,
		Example:           "  parley session audit\n  parley session audit " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := operatorOnly(cmd); err != nil {
				return err
			}
			for _, arg := range args {
				if err := checkPrefix("a session", arg); err != nil {
					return err
				}
			}
			if v.all = len(args) == 0; !v.all && v.after != "" {
				return usage(errors.New("--after goes with an audit of all sessions: name none"))
			}
			if err := v.broker(cmd, args); err != nil {
				return err
			}
			return v.report(cmd)
		},
	}
	v.listFlags(cmd)
	return cmd
}

// broker verifies sessions of a broker.
func (v *verify) broker(cmd *cobra.Command, args []string) error {
	return manyTimes(cmd, func(ctx context.Context, c connection) error {
		info, err := c.Broker(ctx)
		if err != nil {
			return err
		}
		if v.trust.keys.IsZero() {
			if v.trust.keys, err = info.Keys.Trust(cmp.Or(v.trust.key, info.Key)); err != nil {
				return err
			}
		}
		if v.trust.key == "" {
			v.trust.key = info.Key
			v.expect.AllowUnsigned = v.expect.AllowUnsigned || info.Dev
		}
		if v.all {
			if args, v.whole, err = every(ctx, cmd, c); err != nil {
				return err
			}
			v.listed, v.whole = len(args), v.whole && v.after == ""
			args = later(args, v.after)
		}
		known, err := v.each(ctx, cmd, c, args)
		if err == nil && v.all && c.operator != nil && v.next == "" {
			err = v.strays(ctx, c, known)
		}
		return err
	})
}

// every returns the sessions of the store, for an operator, and of the list. One
// unavailable session makes the list unavailable; an operator goes on without it. Only
// an operator's are all that there are.
func every(ctx context.Context, cmd *cobra.Command, c connection) (ids []string, whole bool, err error) {
	known := map[string]bool{}
	add := func(id performatives.SessionID) {
		if !known[string(id)] {
			known[string(id)] = true
			ids = append(ids, string(id))
		}
	}
	if c.operator != nil {
		for q := (api.ListAudit{}); ; {
			page, err := client.Do(ctx, c.operator, api.AuditSessions, q)
			if err != nil {
				return nil, false, err
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
		if page, err = client.Do(ctx, c, api.SessionList, q); err != nil {
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
		return ids, false, nil
	}
	return ids, c.operator != nil, err
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
	if found, err = v.verdict(string(held.Session), data, v.of(held.Session), sealed); err != nil || !found.OK || found.Erased > 0 {
		return found, err // nothing can be derived from a faulty transcript, or one that was erased
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
func (v *verify) strays(ctx context.Context, c connection, known []string) error {
	broken := map[string]bool{} // transcripts whose escalations are unknown
	for _, found := range v.verdicts {
		broken[found.Source] = len(found.Faults) > 0 || found.Error != ""
	}
	for q := (api.ListEscalations{Status: "all"}); ; {
		page, err := client.Do(ctx, c, api.EscalationList, q)
		if err != nil {
			return err
		}
		for _, item := range page.Escalations {
			if _, is := slices.BinarySearch(known, string(item.ID)); is || broken[string(item.Session)] || string(item.Session) <= v.after {
				continue
			}
			if err := v.stray(ctx, c, item); err != nil {
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
