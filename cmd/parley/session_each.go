package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/session/transcript"
)

const (
	maxVerifies   = 8   // concurrent
	progressEvery = 250 // sessions
)

// later sorts ids, and leaves out those up to one. Ids of sessions begin with a time, so that a session
// that is opened meanwhile comes last.
func later(ids []string, after string) []string {
	slices.Sort(ids)
	i, found := slices.BinarySearch(ids, after)
	if found {
		i++
	}
	return ids[i:]
}

// each verifies sessions, and returns the ids of their escalations. Of --all that was interrupted, v has
// what is done without a gap, and where to go on.
func (v *verify) each(ctx context.Context, cmd *cobra.Command, c connection, args []string) ([]string, error) {
	found := make([][]verdict, len(args))
	known := make([][]string, len(args)) // escalations
	var work errgroup.Group
	work.SetLimit(maxVerifies)
	p := progress{cmd: cmd, ids: args, done: make([]bool, len(args)), resumable: v.all}
	for i, arg := range args {
		if ctx.Err() != nil {
			break
		}
		work.Go(func() error {
			if allFiles([]string{arg}) {
				one := &verify{trust: v.trust, expect: v.expect, parts: v.parts, inLog: v.inLog, leaves: v.leaves}
				err := one.files([]string{arg})
				found[i] = one.verdicts
				return err
			}
			one, items, err := v.named(ctx, c, arg)
			switch {
			case err == nil:
				found[i], known[i] = []verdict{one}, items
			case !v.all:
				return err
			case ctx.Err() != nil:
				return nil //nolint:nilerr // interrupted: it is not done
			default:
				found[i] = []verdict{{Source: arg, Session: arg, Faults: []transcript.Fault{}, Derived: []audit.Fault{}, Error: err.Error()}}
			}
			p.finish(i)
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	if v.all && ctx.Err() != nil {
		if p.upTo == 0 {
			return nil, ctx.Err()
		}
		found, v.next = found[:p.upTo], args[p.upTo-1]
	}
	for _, verdicts := range found {
		v.verdicts = append(v.verdicts, verdicts...)
	}
	return slices.Sorted(slices.Values(slices.Concat(known...))), nil
}

// missing is how many ends of sessions the public log has that no transcript ends with. A session that ended
// since the log was read is not among them.
func (v *verify) missing() int {
	if !v.inLog || !v.whole || v.next != "" {
		return 0
	}
	n := v.ends
	for _, found := range v.verdicts {
		if found.Logged || found.Error != "" || len(found.Faults) > 0 { // these are said anyway
			n--
		}
	}
	return max(0, n)
}

// named verifies the session that an argument names.
func (v *verify) named(ctx context.Context, c connection, arg string) (verdict, []string, error) {
	id, err := c.sessionID(ctx, arg)
	if err != nil {
		return verdict{}, nil, err
	}
	return v.live(ctx, c, id)
}

// progress counts sessions that are done, and says so.
type progress struct {
	cmd       *cobra.Command
	ids       []string
	resumable bool

	mu   sync.Mutex
	done []bool
	n    int
	upTo int // how many are done without a gap
}

func (p *progress) finish(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = true
	p.n++
	for p.upTo < len(p.done) && p.done[p.upTo] {
		p.upTo++
	}
	all := p.n == len(p.ids)
	if p.n%progressEvery != 0 && (!all || p.n < progressEvery) {
		return
	}
	said := fmt.Sprintf("%d of %d sessions are checked.", p.n, len(p.ids))
	if p.resumable && p.upTo > 0 && !all {
		said += " If it is interrupted, --after " + p.ids[p.upTo-1] + " goes on from here."
	}
	note(p.cmd, said)
}
