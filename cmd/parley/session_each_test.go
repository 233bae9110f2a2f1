package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Issue 25: a long list is verified in pages, says how far it is, and goes on where it was interrupted.
func TestVerifyLongList(t *testing.T) {
	t.Parallel()
	verifiesLongList(t, 3*progressEvery)
}

// an interruption cancels a context at the first progress that it is told of.
type interruption struct {
	said   bytes.Buffer
	once   sync.Once
	cancel context.CancelFunc
}

func (i *interruption) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(" sessions are checked.")) {
		i.once.Do(i.cancel)
	}
	return i.said.Write(p)
}

func verifiesLongList(t *testing.T, sessions int) {
	w := &stored{}
	w.starts(t, testkit.Options{Limits: limits.Limits{Sessions: -1, Invitations: -1}})
	inviter := w.Client(alpha)
	w.Client(beta)
	var work errgroup.Group
	work.SetLimit(maxVerifies)
	for range sessions {
		work.Go(func() error {
			_, err := inviter.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
			return err
		})
	}
	testkit.Must(t, work.Wait())

	var all []string
	checks := func(ctx context.Context, args ...string) (next string, said *interruption, err error) {
		ctx, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		said = &interruption{cancel: func() {}}
		if len(args) == 0 {
			said.cancel = cancel
		}
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(said)
		root.SetArgs(append([]string{"session", "audit", "--json", "--url", w.URL, "--data", w.Data, "--timeout", testkit.Patience.String()}, args...))
		err = root.ExecuteContext(ctx)
		var report struct {
			Transcripts []verdict
			Next        string
		}
		if unread := json.Unmarshal(out.Bytes(), &report); unread != nil {
			t.Fatalf("%v, and the report: %v", err, unread)
		}
		for _, v := range report.Transcripts {
			if all = append(all, v.Session); !v.OK {
				t.Errorf("%+v", v)
			}
		}
		return report.Next, said, err
	}
	next, said, err := checks(w.Ctx)
	if err == nil || next == "" || !strings.Contains(err.Error(), "--after "+next) || next != all[len(all)-1] || len(all) == sessions {
		t.Fatalf("interrupted after %d, it says %v, and to go on after %q", len(all), err, next)
	}
	if !regexp.MustCompile(`^250 of \d+ sessions are checked\. If it is interrupted, --after [0-9a-f-]{36} goes on from here\.`).Match(said.said.Bytes()) {
		t.Errorf("on the way it says %q", said.said.Bytes())
	}
	if next, said, err := checks(w.Ctx, "--after", next); err != nil || next != "" {
		t.Errorf("going on: %v, %q\n%s", err, next, said.said.Bytes())
	}
	if len(all) != sessions || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != sessions {
		t.Errorf("%d sessions are verified, want each of %d once, in order", len(all), sessions)
	}
	if said, ok := w.parley("session", "audit", "--after", next, next, "--url", w.URL, "--data", w.Data); ok || !strings.Contains(said, "name none") {
		t.Errorf("--after with an ID: %s", said)
	}
}

// TestMissing: of all sessions, those are missing whose end the public log has and no transcript.
func TestMissing(t *testing.T) {
	t.Parallel()
	logged, open, faulty := verdict{Logged: true}, verdict{}, verdict{Error: "unavailable"}
	for name, c := range map[string]struct {
		v    verify
		want int
	}{
		"none":        {verify{inLog: true, whole: true, ends: 2, verdicts: []verdict{logged, open, logged}}, 0},
		"one":         {verify{inLog: true, whole: true, ends: 3, verdicts: []verdict{logged, open, logged}}, 1},
		"of a fault":  {verify{inLog: true, whole: true, ends: 2, verdicts: []verdict{logged, faulty}}, 0},
		"interrupted": {verify{inLog: true, whole: true, ends: 3, next: "x", verdicts: []verdict{logged}}, 0},
		"of some":     {verify{inLog: true, ends: 3, verdicts: []verdict{logged}}, 0},
	} {
		if got := c.v.missing(); got != c.want {
			t.Errorf("%s: %d are missing, want %d", name, got, c.want)
		}
	}
}
