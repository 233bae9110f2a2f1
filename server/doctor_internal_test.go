package server

import (
	"testing"

	"github.com/parley-asp/parley/store"
)

// Too few servers for any act are a failure, fewer than there should be a warning.
func TestDoctorServersAway(t *testing.T) {
	t.Parallel()
	for status, are := range map[Status]store.Servers{Warn: {There: 2, Away: []string{"n1"}}, Fail: {There: 1, Away: []string{"n1", "n2"}}} {
		e := &examiner{}
		if e.away(map[string]store.Servers{"ASP_SESSIONS": are}); len(e.findings) != len(are.Away) || e.findings[0].Status != status {
			t.Errorf("%+v is %+v", are, e.findings)
		}
	}
}
