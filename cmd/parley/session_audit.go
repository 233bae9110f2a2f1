package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/audit"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

const (
	// settledWithin is how long what a broker owes may take: as long as it takes the
	// others to notice that it is gone, and to do its work.
	settledWithin = 8 * time.Second
	lookAgain     = 250 * time.Millisecond
	verifyAtOnce  = 8 // sessions
)

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
		if args, err = every(cmd.Context(), c); err != nil {
			return explain(cmd, err)
		}
	}
	found := make([][]verdict, len(args))
	known := make([][]string, len(args)) // escalations
	var work errgroup.Group
	work.SetLimit(verifyAtOnce)
	for i, arg := range args {
		work.Go(func() error {
			if allFiles([]string{arg}) {
				one := &verify{brokerKey: v.brokerKey, expect: v.expect}
				err := one.files([]string{arg})
				found[i] = one.verdicts
				return err
			}
			err := within(func(ctx context.Context) error {
				one, items, err := v.live(ctx, c, performatives.SessionID(arg))
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
		return within(func(ctx context.Context) error {
			return v.strays(ctx, c, slices.Sorted(slices.Values(slices.Concat(known...))))
		})
	}
	return nil
}

// every is each session: of the list and, for an operator, of the store.
func every(ctx context.Context, c connection) (ids []string, err error) {
	for s, err := range c.Sessions(ctx, api.ListSessions{Limit: api.MaxPage}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, string(s.Session))
	}
	if c.operator == nil {
		return ids, nil
	}
	stored, err := c.operator.AuditedSessions(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, id := range ids {
		listed[id] = true
	}
	for _, id := range stored {
		if !listed[string(id)] {
			ids = append(ids, string(id))
		}
	}
	return ids, nil
}

// live verifies a session up to where it stands now, and what is kept beside it.
// What is not in order may be so in a moment.
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
		found, err = v.verdict(string(id), export(lines), expect)
		return found, nil, err
	}
	for end := time.Now().Add(v.settle); ; {
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
		case <-time.After(lookAgain):
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

// against verifies a transcript as it is stored, and then what is held of it.
func (v *verify) against(ctx context.Context, c connection, held api.Held) (found verdict, err error) {
	lines, err := c.operator.Stored(ctx, held.Session)
	if err != nil {
		return found, err
	}
	data := append(bytes.Join(lines, []byte("\n")), '\n')
	if len(lines) == 0 {
		data = nil
	}
	if found, err = v.verdict(string(held.Session), data, v.of(held.Session)); err != nil || !found.OK {
		return found, err // what follows from a transcript that is not in order is not known
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

// strays are items of the escalation inbox that no transcript knows of.
func (v *verify) strays(ctx context.Context, c connection, known []string) error {
	broken := map[string]bool{} // what they say of escalations is not known
	for _, found := range v.verdicts {
		broken[found.Source] = len(found.Faults) > 0 || found.Error != ""
	}
	for item, err := range c.Escalations(ctx, api.ListEscalations{Status: "all"}) {
		if err != nil {
			return err
		}
		if _, is := slices.BinarySearch(known, string(item.ID)); is || broken[string(item.Session)] {
			continue
		}
		held, err := c.operator.Held(ctx, item.Session) // it may have come since
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(held.Items, func(i api.EscalationItem) bool { return i.ID == item.ID }) {
			v.items = append(v.items, audit.Fault{Kind: audit.Item, Why: fmt.Sprintf("escalation %s of session %s is in no transcript", item.ID, item.Session)})
		}
	}
	return nil
}
