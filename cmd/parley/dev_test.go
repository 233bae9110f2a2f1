package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An author's agent buys from the counterparty of 'parley dev', which prints what both say, in two sessions.
func TestDevCommand(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(stop)
	out, prints := io.Pipe()
	cmd := rootCommand()
	cmd.SetArgs([]string{"dev", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"})
	cmd.SetOut(prints)
	cmd.SetErr(prints)
	ran := make(chan error, 1)
	go func() { ran <- cmd.ExecuteContext(ctx); prints.Close() }()
	lines := bufio.NewScanner(out)
	until := func(pattern string) []string {
		t.Helper()
		for wanted := regexp.MustCompile(pattern); lines.Scan(); {
			if found := wanted.FindStringSubmatch(lines.Text()); found != nil {
				return found
			}
		}
		t.Fatalf("nothing is printed like %q", pattern)
		return nil
	}
	url := until(`NATS +(nats://\S+)`)[1]
	until(`agent://widgets.co/seller negotiates with you`)
	buyer, err := client.Connect(ctx, url, "agent://acme.com/buyer", client.Unsigned())
	testkit.Must(t, err)
	t.Cleanup(func() { buyer.Close() })
	for _, price := range []int{95, 60} {
		written := strconv.Itoa(price)
		s, err := buyer.Invite(ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{"agent://widgets.co/seller"}, Purpose: "cups"})
		testkit.Must(t, err)
		until(`seller .*INTRODUCED`)
		_, err = s.Propose(ctx, client.Proposal{ID: "p", Type: "purchase", Subject: "cups", Terms: map[string]any{"price": price, "currency": "EUR"}})
		testkit.Must(t, err)
		until(`price +` + written)
		until(`price +` + written + ` → \d+`)
		view, err := buyer.View(ctx, s.ID())
		testkit.Must(t, err)
		if view.State != session.Conversing {
			t.Errorf("the session is %s", view.State)
		}
	}
	stop()
	go io.Copy(io.Discard, out) //nolint:errcheck // it ends
	testkit.Must(t, <-ran)
}
