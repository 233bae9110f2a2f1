package approvals_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

// Two humans decide at the same moment, at whichever of two brokers: one wins,
// the other is told so. A claim and a comment made at one hold at the other.
func TestInboxOfTwoBrokers(t *testing.T) {
	t.Parallel()
	s := testkit.StartServer(t)
	b, _ := s.OpenBroker()
	other, _ := s.OpenBroker()
	defer func() { testkit.Must(t, errors.Join(b.Close(context.Background()), other.Close(context.Background()))) }()

	submit := func(id performatives.SessionID, a performatives.Agent, body performatives.Body) (api.Acceptance, error) {
		envelope, err := performatives.Draft{
			ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: a, Body: body,
		}.Envelope(nil)
		if err != nil {
			t.Error(err)
		}
		for { // whichever broker is free hears it; one that cannot answer now is asked again, with the same bytes
			accepted, err := b.SubmitAs(t.Context(), a, id, envelope)
			if code(err) != session.Unavailable {
				return accepted, err
			}
		}
	}
	rules := func(id performatives.SessionID, a performatives.Agent, e performatives.MessageID, more string) (api.Acceptance, error) {
		return submit(id, a, &performatives.InformBody{Type: performatives.Resolution, Data: jsontext.Value(`{"escalationId":"` + string(e) + `",` + more + `}`)})
	}
	asks := func() (performatives.SessionID, performatives.MessageID) {
		id := testkit.NewSession()
		for _, act := range []struct {
			by   performatives.Agent
			body performatives.Body
		}{
			{alpha, &performatives.ProposeBody{ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "a talk", Terms: jsontext.Value(`{"participants":["` + string(beta) + `"]}`)}},
			{beta, &performatives.AcceptBody{ReferenceID: "i1"}},
		} {
			if _, err := submit(id, act.by, act.body); err != nil {
				t.Fatal(err)
			}
		}
		asked, err := submit(id, alpha, &performatives.EscalateBody{Reason: "confidence-low", Urgency: "high", Context: jsontext.Value(`"?"`)})
		if err != nil {
			t.Fatal(err)
		}
		return id, asked.Message
	}
	does := func(at *server.Broker, a performatives.Agent, verb, request string) (item api.EscalationItem, err error) {
		for end := time.Now().Add(testkit.Patience); time.Now().Before(end); { // a broker hears of another's item a moment later
			reply, callErr := at.CallAs(t.Context(), a, verb, []byte(request))
			if err = callErr; code(err) == session.UnknownSession {
				continue
			}
			if err == nil {
				err = json.Unmarshal(reply, &item)
			}
			return item, err
		}
		return item, err
	}

	for range 10 {
		id, e := asks()
		var wg sync.WaitGroup
		answers := make([]error, 2)
		for n, a := range []performatives.Agent{alice, anna} {
			wg.Go(func() { _, answers[n] = rules(id, a, e, `"decision":"approved"`) })
		}
		wg.Wait()
		if (answers[0] == nil) == (answers[1] == nil) {
			t.Fatalf("both or neither: %v", answers)
		}
		for _, err := range answers {
			if err != nil && code(err) != session.EscalationResolved {
				t.Errorf("who was later: %v", err)
			}
		}
	}
	for range 5 {
		id, e := asks()
		ref := `{"escalationId":"` + string(e) + `"`
		if _, err := does(b, alice, api.EscalationClaim.Name, ref+`}`); err != nil {
			t.Fatal(err)
		}
		if _, err := rules(id, anna, e, `"decision":"denied"`); code(err) != session.WrongTurn {
			t.Errorf("claimed by alice, anna decides: %v", err)
		}
		if _, err := does(other, anna, api.EscalationComment.Name, ref+`,"text":"wait"}`); err != nil {
			t.Fatal(err)
		}
		if _, err := rules(id, alice, e, `"decision":"denied","revision":0`); code(err) != session.ChainConflict {
			t.Errorf("a comment later: %v", err)
		}
		if _, err := rules(id, alice, e, `"decision":"denied","revision":1`); err != nil {
			t.Errorf("as it is: %v", err)
		}
	}
}
