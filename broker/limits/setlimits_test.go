package limits

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Accounts that are open have the limits that are set: less at once, more as it comes back.
func TestSetLimits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	accounts := NewAccounts(Limits{Rate: -1, InFlight: 2}.WithDefaults(), func() time.Time { return now })
	mine := accounts.Of(performatives.Agent("agent://acme.com/a"))
	if err := mine.Admit(1_000_000, 0); err != nil {
		t.Fatal(err)
	}
	release, err := mine.Hold(InFlight, 2)
	if err != nil {
		t.Fatal(err)
	}
	accounts.SetLimits(Limits{Rate: 1, Burst: 2, InFlight: 1}.WithDefaults())
	now = now.Add(time.Second)
	if err := mine.Admit(2, 0); err != nil {
		t.Error("the burst:", err)
	}
	if mine.Admit(1, 0) == nil {
		t.Error("more than the burst is admitted")
	}
	if _, err := mine.Hold(InFlight, 1); err == nil {
		t.Error("more than the new limit is held")
	}
	release()
	if _, err := mine.Hold(InFlight, 1); err != nil {
		t.Error("after the release:", err)
	}
	accounts.SetLimits(Limits{Rate: -1}.WithDefaults())
	now = now.Add(time.Second)
	if err := mine.Admit(1_000_000, 0); err != nil {
		t.Error("without a limit:", err)
	}
}
