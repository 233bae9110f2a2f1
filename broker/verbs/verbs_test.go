package verbs

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session"
)

// Every verb has one answer, and every answer a verb.
func TestEveryVerbIsAnswered(t *testing.T) {
	t.Parallel()
	table, all := api.Verbs(), make([]Answer, 0, len(api.Verbs()))
	for _, v := range table {
		all = append(all, Answer{Verb: v})
	}
	if _, err := byName(table, all); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		table   []api.Verb
		answers []Answer
		want    string
	}{
		{table, all[1:], "session.get has no answer"},
		{table, append(all[:len(all):len(all)], all[0]), "session.get has two answers"},
		{table[1:], all, "1 verbs that the table does not have"},
	} {
		if _, err := byName(c.table, c.answers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("byName: %v, want %q", err, c.want)
		}
	}
}

// A call whose turn does not come is answered when its time is over.
func TestCallThatWaitsIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work := background.New()
		defer work.Close()
		s := &Service{o: Options{Work: work}, slots: limits.NewScheduler(1, 0)}
		defer s.slots.Enter("agent://acme.com/a").Release()
		wait, _ := s.slots.Join("agent://acme.com/b")
		released, began := false, time.Now()
		s.answer(t.Context(), api.Caller{Agent: "agent://acme.com/b"}, Answer{}, nil, wait, func() { released = true }, func(_ any, _ bool, err error) {
			if !released || !errors.Is(err, &session.Refusal{Code: session.Unavailable}) || time.Since(began) != callTimeout {
				t.Errorf("released %t, answered %v after %s", released, err, time.Since(began))
			}
			began = time.Time{}
		})
		if !began.IsZero() {
			t.Error("it was not answered")
		}
	})
}
