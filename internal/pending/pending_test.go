package pending_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/pending"
)

// Each message ends exactly once: with an answer, by its timeout, or when no more
// answers are awaited.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := map[string][]error{}
		answers := pending.New("r.", 4, 4*time.Second, func(what string, why error) { ended[what] = append(ended[what], why) })
		put := func(what string) string {
			reply, err := answers.Put(what)
			if err != nil {
				t.Fatal(err)
			}
			return reply
		}
		put("silent")
		pass(t, 3*time.Second)
		answered := put("answered")
		put("late")
		if what, found := answers.Take(answered); !found || what != "answered" {
			t.Errorf("the answer is to %q, %v", what, found)
		}
		for _, reply := range []string{answered, "r.zz", "r.", "x.1"} {
			if what, found := answers.Take(reply); found {
				t.Errorf("%s is an answer to %q", reply, what)
			}
		}
		pass(t, 2*time.Second)
		if len(ended["silent"]) != 1 || !errors.Is(ended["silent"][0], pending.ErrTimeout) || len(ended["late"]) != 0 {
			t.Errorf("after 5 seconds %v have ended", ended)
		}
		answers.End(pending.ErrClosed)
		if len(ended["late"]) != 1 || !errors.Is(ended["late"][0], pending.ErrClosed) || len(ended["answered"]) != 0 {
			t.Errorf("after the end %v have ended", ended)
		}
		if _, err := answers.Put("after the end"); !errors.Is(err, pending.ErrClosed) {
			t.Errorf("Put after End: %v", err)
		}
		pass(t, 5*time.Second) // its timer ends
	})
}

// No more than the limit wait at a time.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := pending.New("r.", 1, time.Minute, func(string, error) {})
		first, err := answers.Put("first")
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan string)
		go func() {
			reply, err := answers.Put("second")
			if err != nil {
				t.Error(err)
			}
			second <- reply
		}()
		synctest.Wait()
		if answers.Len() != 1 {
			t.Errorf("%d wait, the limit is 1", answers.Len())
		}
		answers.Take(first)
		answers.Take(<-second)
		if answers.Len() != 0 || answers.Total() != 2 {
			t.Errorf("%d wait of %d", answers.Len(), answers.Total())
		}
		pass(t, time.Minute)
	})
}

// pass lets the bubble's time pass, and what happens then come to its end.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := background.Pause(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}
