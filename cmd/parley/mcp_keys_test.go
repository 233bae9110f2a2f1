package main

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/session"
)

// What is repeated under a key says nothing twice: it gives the first result, or sends again the
// envelope that was not answered. What was refused may be said anew.
func TestKeys(t *testing.T) {
	t.Parallel()
	var k keys
	said, sent := 0, ""
	submit := func(_ context.Context, envelope []byte) (api.Acceptance, error) {
		sent = string(envelope)
		return api.Acceptance{Message: "late"}, nil
	}
	once := func(key, content string, fails error) (api.Acceptance, error) {
		return k.once(t.Context(), key, []byte(content), submit, func() (api.Acceptance, error) {
			said++
			return api.Acceptance{Message: "first"}, fails
		})
	}
	duplicate := func(err error) bool { return errors.Is(err, &session.Refusal{Code: session.Duplicate}) }
	is := func(what string, right bool) {
		t.Helper()
		if !right {
			t.Errorf("%s (said %d times, sent %q)", what, said, sent)
		}
	}
	first, err := once("a", "x", nil)
	is("the first is said", err == nil && said == 1 && !first.Duplicate)
	again, err := once("a", "x", nil)
	is("a repeat gives the first result", err == nil && said == 1 && again.Duplicate && again.Message == first.Message)
	_, err = once("a", "y", nil)
	is("something else is refused", duplicate(err) && said == 1)

	_, err = once("b", "x", &client.Unanswered{Envelope: []byte("envelope"), Err: context.DeadlineExceeded})
	is("what is not answered is unavailable", errors.Is(err, &session.Refusal{Code: session.Unavailable}) && said == 2)
	_, err = once("b", "y", nil)
	is("nor is something else said then", duplicate(err) && said == 2)
	late, err := once("b", "x", nil)
	is("its envelope is sent again", err == nil && said == 2 && sent == "envelope" && late.Message == "late")
	again, err = once("b", "x", nil)
	is("and then its result is known", err == nil && said == 2 && again.Duplicate)

	_, err = once("c", "x", session.Refuse(session.WrongTurn, "not now"))
	is("a refusal is told", err != nil && said == 3)
	_, err = once("c", "y", nil)
	is("and forgotten", err == nil && said == 4)

	for i := range maxKeys {
		if _, err := once(strconv.Itoa(i), "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	is("as many as are remembered", len(k.acts) == maxKeys)
}
