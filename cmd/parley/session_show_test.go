package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// printed runs a command that must succeed in reasonable time and print no more than a
// person can be shown.
func (w *stored) printed(args ...string) string {
	w.Helper()
	began := time.Now()
	said, status := w.reports(append(args, "--url", w.URL, "--data", w.Data))
	if took := time.Since(began); status != done || took > testkit.Patience || len(said) > 200<<10 {
		w.Fatalf("parley %s: status %d, %d bytes, %s: %.300s", strings.Join(args, " "), status, len(said), took, said)
	}
	return said
}

func (w *stored) parses(text string, into any) {
	w.Helper()
	testkit.Must(w, json.NewDecoder(strings.NewReader(text)).Decode(into)) // a note may follow it
}

// A session with 10,000 offers is shown: its beginning, its newest messages and how many are left
// out; a part of its state is read page by page.
func TestManyOffers(t *testing.T) {
	t.Parallel()
	const offers = 5000
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	buyer, seller := w.Client(alpha), w.Client(beta)
	s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
	testkit.Must(t, err)
	_, err = seller.Session(s.ID()).Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	g, ctx := errgroup.WithContext(w.Ctx)
	g.SetLimit(100)
	for n := range offers {
		g.Go(func() error {
			_, err := s.Propose(ctx, client.Proposal{ID: fmt.Sprintf("offer-%d", n), Type: "x", Subject: "x", Terms: map[string]any{"price": n}})
			return err
		})
	}
	testkit.Must(t, g.Wait())

	view, err := buyer.View(w.Ctx, s.ID())
	testkit.Must(t, err)
	if left := view.Omitted["proposals"]; !view.Truncated || left+len(view.Proposals) != offers {
		t.Errorf("the view has %d proposals and leaves out %d", len(view.Proposals), left)
	}
	seen := map[string]bool{}
	for o, err := range buyer.Proposals(w.Ctx, s.ID()) {
		testkit.Must(t, err)
		seen[o.Proposal] = true
	}
	if len(seen) != offers {
		t.Errorf("the pages have %d proposals", len(seen))
	}

	id := string(s.ID())
	said := w.printed("session", "show", id)
	for _, want := range []string{"storage", fmt.Sprintf("… %d messages left out (--cursor 1 begins with them)", offers-99), fmt.Sprintf("%d  alpha", offers+1), "the summary is cut, without "} {
		if !strings.Contains(said, want) {
			t.Errorf("session show prints no %q: %.1000s", want, said)
		}
	}
	said = w.printed("session", "show", id, "--cursor", "1", "--limit", "2")
	for _, want := range []string{"ACCEPT", fmt.Sprintf("… %d messages left out (--cursor 3 begins with them)", offers-1)} {
		if !strings.Contains(said, want) {
			t.Errorf("the second page has no %q: %.1000s", want, said)
		}
	}
	var shown conversation
	w.parses(w.printed("session", "show", id, "--json", "--limit", "3", "--cursor", "5"), &shown)
	if shown.Earlier != 5 || len(shown.Messages) != 3 || shown.Next == nil || *shown.Next != 8 {
		t.Errorf("%d messages between %d and %v", len(shown.Messages), shown.Earlier, shown.Next)
	}
	var page api.SessionView
	w.parses(w.printed("session", "show", id, "--part", "proposals", "--limit", "7", "--cursor", fmt.Sprint(offers-10), "--json"), &page)
	if len(page.Proposals) != 7 || page.Next != fmt.Sprint(offers-3) {
		t.Errorf("%d proposals, next %q", len(page.Proposals), page.Next)
	}
	if said := w.printed("session", "show", id, "--part", "proposals", "--limit", "2"); !strings.Contains(said, "--cursor 2 continues") {
		t.Errorf("the part does not say how to go on: %s", said)
	}
}

// A session with 1,000 participants is shown in the same way.
func TestManyParticipants(t *testing.T) {
	t.Parallel()
	const invited = 999
	w := &stored{}
	w.starts(t, testkit.Options{Dev: true})
	buyer := w.Client(alpha)
	var with []performatives.Agent
	for n := range invited {
		with = append(with, performatives.Agent(fmt.Sprintf("agent://widgets.co/sales/%d", n)))
	}
	s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: with, Purpose: "storage"})
	testkit.Must(t, err)
	seen := map[performatives.Agent]bool{}
	for p, err := range buyer.Participants(w.Ctx, s.ID()) {
		testkit.Must(t, err)
		seen[p.Agent] = true
	}
	if len(seen) != invited+1 {
		t.Errorf("the pages have %d participants", len(seen))
	}
	id := string(s.ID())
	if said := w.printed("session", "show", id); !strings.Contains(said, "INVITED") {
		t.Errorf("session show prints no state: %.1000s", said)
	}
	var page api.SessionView
	w.parses(w.printed("session", "show", id, "--part", "participants", "--limit", "0", "--json"), &page)
	if len(page.Participants) != invited+1 || page.Next != "" {
		t.Errorf("%d participants, next %q", len(page.Participants), page.Next)
	}
	if said := w.printed("session", "show", id, "--part", "participants", "--limit", "1"); !strings.Contains(said, "inviter") || !strings.Contains(said, "--cursor 1 continues") {
		t.Errorf("the part does not say how to go on: %s", said)
	}
}
