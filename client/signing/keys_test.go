package signing

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

var unavailable = client.Refused(session.Unavailable)

// notAnswered is an act that was sent.
func notAnswered(envelope string) error {
	return &client.Unanswered{Envelope: []byte(envelope), Err: context.DeadlineExceeded}
}

// An assistant says things under keys.
type assistant struct {
	*testing.T
	keys
	said int                     // how often something was said
	sent string                  // the envelope that was sent again last
	id   performatives.MessageID // of what was said last
	lost error                   // what sending again comes to
}

// say says something that comes to an error.
func (a *assistant) say(key, content string, fails error) (api.Acceptance, error) {
	submit := func(_ context.Context, envelope []byte) (api.Acceptance, error) {
		a.sent = string(envelope)
		return api.Acceptance{Message: "late"}, a.lost
	}
	act := keyed{key: key, content: content, message: performatives.MessageID(newID())}
	return a.once(a.Context(), act, submit, func(_ context.Context, act keyed) (api.Acceptance, error) {
		a.said, a.id = a.said+1, act.message
		return api.Acceptance{Message: "first"}, fails
	})
}

func (a *assistant) is(what string, right bool) {
	a.Helper()
	if !right {
		a.Errorf("%s (said %d times, sent %q)", what, a.said, a.sent)
	}
}

// What is repeated under a key says nothing twice: it gives the first result, or sends again the
// envelope that was not answered. What was refused may be said anew.
func TestKeys(t *testing.T) {
	t.Parallel()
	a := &assistant{T: t}
	duplicate := func(err error) bool { return errors.Is(err, client.Refused(session.Duplicate)) }
	first, err := a.say("a", "x", nil)
	a.is("the first is said", err == nil && a.said == 1 && !first.Duplicate)
	again, err := a.say("a", "x", nil)
	a.is("a repeat gives the first result", err == nil && a.said == 1 && again.Duplicate && again.Message == first.Message)
	_, err = a.say("a", "y", nil)
	a.is("something else is refused", duplicate(err) && a.said == 1)

	_, err = a.say("b", "x", notAnswered("envelope"))
	a.is("what is not answered is unavailable", errors.Is(err, unavailable) && a.said == 2)
	_, err = a.say("b", "y", nil)
	a.is("nor is something else said then", duplicate(err) && a.said == 2)
	late, err := a.say("b", "x", nil)
	a.is("its envelope is sent again", err == nil && a.said == 2 && a.sent == "envelope" && late.Message == "late")
	again, err = a.say("b", "x", nil)
	a.is("and then its result is known", err == nil && a.said == 2 && again.Duplicate)

	_, err = a.say("c", "x", session.Refuse(session.WrongTurn, "not now"))
	a.is("a refusal is told", err != nil && a.said == 3)
	_, err = a.say("c", "y", nil)
	a.is("and forgotten", err == nil && a.said == 4)

	for i := range maxKeys {
		if _, err := a.say(strconv.Itoa(i), "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	a.is("as many as are remembered", len(a.acts) == maxKeys && len(a.busy) == 0)
}

// A refusal that says nothing of the copy that was sent before leaves it as it was.
func TestKeysAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, lost := range []error{
		session.Refuse(session.RateLimited, "slower"), session.Refuse(session.Unauthorized, ""), session.Refuse(session.SignatureInvalid, ""),
		session.Busy(), errors.New("closed"), notAnswered("envelope"),
	} {
		a := &assistant{T: t, lost: lost}
		a.say("k", "x", notAnswered("envelope")) //nolint:errcheck // it is not answered
		for range 2 {
			a.sent = ""
			_, err := a.say("k", "x", nil)
			a.is(lost.Error(), err != nil && a.said == 1 && a.sent == "envelope")
		}
		a.lost = nil
		late, err := a.say("k", "x", nil)
		a.is("it was accepted", err == nil && a.said == 1 && late.Message == "late")
	}

	a := &assistant{T: t, lost: session.Refuse(session.WrongTurn, "")}
	a.say("k", "x", notAnswered("envelope")) //nolint:errcheck // it is not answered
	_, err := a.say("k", "x", nil)
	a.is("it was not accepted", errors.Is(err, a.lost) && a.said == 1 && a.sent == "envelope")
	_, err = a.say("k", "x", nil)
	a.is("so it is said anew", err == nil && a.said == 2)

	a = &assistant{T: t, lost: session.Refuse(session.StaleTimestamp, "")}
	a.say("k", "x", notAnswered("envelope")) //nolint:errcheck // it is not answered
	id := a.id
	_, err = a.say("k", "x", notAnswered("newer"))
	a.is("what is stale is said anew at once, with its id", errors.Is(err, unavailable) && a.said == 2 && a.id == id)
	a.lost = nil
	_, err = a.say("k", "x", nil)
	a.is("and then sent again", err == nil && a.said == 2 && a.sent == "newer")
}

// While the broker is away nobody waits for what is said under other keys, and who waits may leave.
func TestKeysDoNotWaitForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k keys
		began := time.Now()
		var calls sync.WaitGroup
		for i := range 5 {
			calls.Go(func() {
				_, err := k.once(t.Context(), keyed{key: strconv.Itoa(i)}, nil, func(ctx context.Context, _ keyed) (api.Acceptance, error) {
					<-ctx.Done()
					return api.Acceptance{}, notAnswered("envelope")
				})
				if took := time.Since(began); took != answerWithin || !errors.Is(err, unavailable) {
					t.Errorf("after %s: %v", took, err)
				}
			})
		}
		synctest.Wait()

		impatient, leave := context.WithCancel(t.Context())
		calls.Go(func() {
			if _, err := k.once(impatient, keyed{key: "0"}, nil, nil); !errors.Is(err, unavailable) {
				t.Errorf("who leaves gets %v", err)
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("who leaves at once has waited %s", waited)
			}
		})
		calls.Go(func() {
			_, err := k.once(t.Context(), keyed{key: "0"}, func(ctx context.Context, _ []byte) (accepted api.Acceptance, err error) {
				if until, _ := ctx.Deadline(); time.Until(until) != answerWithin {
					t.Errorf("%s are left after the wait", time.Until(until))
				}
				return accepted, nil
			}, nil)
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave()
		calls.Wait()

		if _, err := k.once(impatient, keyed{key: "new"}, nil, nil); !errors.Is(err, unavailable) {
			t.Errorf("who has left says %v", err)
		}
		if _, noted := k.find("new"); noted {
			t.Error("what was not sent is noted")
		}
	})
}
