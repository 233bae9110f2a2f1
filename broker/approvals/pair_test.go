package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
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
		var accepted api.Acceptance
		if late := testkit.Available(t.Context(), testkit.Repeats, func() bool {
			accepted, err = b.Gateway.SubmitAs(t.Context(), a, id, envelope)
			return testkit.CodeOf(err) != session.Unavailable
		}); late != nil {
			t.Error(late)
		}
		return accepted, err
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
		var reply []byte
		testkit.Eventually(t, "the broker knows of another's item", func() bool {
			reply, err = at.Gateway.CallAs(t.Context(), a, verb, []byte(request))
			return testkit.CodeOf(err) != session.UnknownSession
		})
		if err == nil {
			err = json.Unmarshal(reply, &item)
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
			if err != nil && testkit.CodeOf(err) != session.EscalationResolved {
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
		if _, err := rules(id, anna, e, `"decision":"denied"`); testkit.CodeOf(err) != session.WrongTurn {
			t.Errorf("claimed by alice, anna decides: %v", err)
		}
		var item api.EscalationItem // a comment that came late may be there twice
		testkit.Must(t, testkit.Available(t.Context(), testkit.Repeats, func() bool {
			var err error
			item, err = does(other, anna, api.EscalationComment.Name, ref+`,"text":"wait"}`)
			if code := testkit.CodeOf(err); err != nil && code != session.Unavailable {
				t.Fatal(err)
			}
			return err == nil
		}))
		if _, err := rules(id, alice, e, `"decision":"denied","revision":0`); testkit.CodeOf(err) != session.ChainConflict {
			t.Errorf("a comment later: %v", err)
		}
		if _, err := rules(id, alice, e, fmt.Sprintf(`"decision":"denied","revision":%d`, item.Revision)); err != nil {
			t.Errorf("as it is: %v", err)
		}
	}
}
