package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A deaf broker answers nothing about escalations.
type deaf struct {
	caller
	asked *int
}

func (d deaf) Escalation(context.Context, string) (api.EscalationItem, error) {
	*d.asked++
	return api.EscalationItem{}, errors.New("nobody answers")
}

// A ruling that is recorded is a success, also if nobody tells what it has led to. Programs,
// which get the acceptance, do not wait for that.
func TestRulingIsShown(t *testing.T) {
	t.Parallel()
	var item api.EscalationItem
	item.Reason, item.ID = performatives.Confirmation, "019478a3-0001-7def-8a12-000000000001"
	receipt := client.Receipt{Acceptance: api.Acceptance{Accepted: true, State: session.Escalated}}
	for _, c := range []struct {
		json  bool
		asks  int
		wants string
	}{
		{false, 1, "approved; others have yet to confirm the agreement\n"},
		{true, 0, `"accepted": true`},
	} {
		var out bytes.Buffer
		asked := 0
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		cmd.Flags().Bool("json", c.json, "")
		testkit.Must(t, connection{caller: deaf{asked: &asked}}.showRuling(t.Context(), cmd, performatives.Approved, item, receipt))
		if !strings.Contains(out.String(), c.wants) || asked != c.asks {
			t.Errorf("it asks %d times, and says %q", asked, out.String())
		}
	}
}
