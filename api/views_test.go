package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
)

// invited is a session to which alpha has invited beta.
func invited(t *testing.T, mode *session.Mode, at time.Time) session.State {
	t.Helper()
	draft := performatives.Draft{
		ID: "019478a3-7b2c-7def-8a12-3456789abcde", Session: "019478a3-0001-7def-8a12-000000000001", Sender: alpha, Timestamp: at,
		Body: &performatives.ProposeBody{
			ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a plan",
			Terms: jsontext.Value(`{"mode":"` + mode.Name + `","participants":["` + string(beta) + `"]}`),
		},
	}
	envelope, err := draft.Envelope(nil)
	if err != nil {
		t.Fatal(err)
	}
	message, err := performatives.Read(envelope)
	if err == nil {
		err = message.DecodeBody()
	}
	if err != nil {
		t.Fatal(err)
	}
	event := session.Event{Message: message, At: at, Policy: performatives.Policy{InvitationTimeout: 30_000, MaxDuration: 3_600_000}}
	for _, a := range []performatives.Agent{alpha, beta} {
		event.Known.Add(performatives.Member{Agent: a, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal})
	}
	state, err := session.Step(session.New(draft.Session, session.Modes{mode.Name: mode}), event)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// A mode that this package does not know adds members to the view, in its
// own order, and a reader gets them back.
func TestModePart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)
	type weather struct {
		Wind string         `json:"wind"`
		Rain map[string]int `json:"rain"`
	}
	for _, c := range []struct {
		view func(*session.State, time.Time) any
		want string // at the end of the view
	}{
		{nil, `"endsSession":true}]}`},
		{
			func(_ *session.State, now time.Time) any {
				return weather{now.Format(time.Kitchen), map[string]int{"b": 2, "a": 1}}
			},
			`"endsSession":true}],"wind":"2:30PM","rain":{"a":1,"b":2}}`,
		},
	} {
		state := invited(t, &session.Mode{Name: "weather/1", Min: 2, Max: 2, View: c.view}, at)
		view := api.ViewSession(&state, at)
		text, err := json.Marshal(view, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(text), c.want) {
			t.Errorf("the view is %s, want it to end with %s", text, c.want)
		}
		var read api.SessionView
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if string(read.ModePart) != string(view.ModePart) {
			t.Errorf("a reader gets %s of %s", read.ModePart, view.ModePart)
		}
	}
}

// Who is asked sees in the summary that it is.
func TestSummarise(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)
	state := invited(t, &session.Mode{Name: "plain/1", Min: 2, Max: 2}, at)
	for who, awaiting := range map[performatives.Agent]bool{alpha: false, beta: true} {
		if s := api.Summarise(&state, performatives.Member{Agent: who}, at); s.Awaiting != awaiting || s.Inviter != alpha || s.Mode != "plain/1" || s.Messages != 1 {
			t.Errorf("%s is shown %+v", who, s)
		}
	}
}

// While a time has passed that the broker has yet to enter, nobody has a move, and so the session waits
// for nobody.
func TestNobodyIsAwaitedOnceATimeHasPassed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)
	state := invited(t, &session.Mode{Name: "weather/1", Min: 2, Max: 2}, at)
	you := performatives.Member{Agent: beta, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal}
	nobody := func(performatives.Agent) (api.Card, bool) { return api.Card{}, false }
	for _, now := range []time.Time{at, at.Add(30 * time.Second)} {
		event := session.Event{At: now}
		event.Known.Add(you)
		v := api.ViewSnapshot(&state, you, now, state.Moves(beta, event), nobody)
		if awaited := v.Waiting != nil && v.Waiting.Yours; awaited != now.Equal(at) || awaited != (len(v.Moves) > 0) {
			t.Errorf("at %s: waiting %+v, with %d moves", now, v.Waiting, len(v.Moves))
		}
	}
}
