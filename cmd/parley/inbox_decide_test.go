package main

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A ruling that is recorded is a success, also if nobody tells what it has led to.
func TestRulingIsShown(t *testing.T) {
	t.Parallel()
	var item api.EscalationItem
	item.Reason, item.ID = performatives.Confirmation, "019478a3-0001-7def-8a12-000000000001"
	receipt := client.Receipt{Acceptance: api.Acceptance{Accepted: true, State: session.Escalated}}
	deaf := func(context.Context, string) (api.EscalationItem, error) { return item, errors.New("nobody answers") }
	if got := ruled(t.Context(), client.Ruling{Decision: performatives.Approved}, item, receipt, deaf); got != "approved; others have yet to confirm the agreement\n" {
		t.Errorf("it says %q", got)
	}
}
