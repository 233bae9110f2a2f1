package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A hosted agent without a key and one that signs for itself talk over HTTP. Refusals are those
// of NATS, and messages go on after the broker was gone.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const hosted, signs = performatives.Agent("agent://acme.com/hosted"), performatives.Agent("agent://widgets.co/signs")
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	operator := w.OperatorClient()
	_, err := operator.AddHosted(w.Ctx, api.Card{Agent: hosted})
	testkit.Must(t, err)
	var token string // of the hosted agent
	enter := func(a performatives.Agent, options ...client.Option) *client.Client {
		made, err := operator.AddToken(w.Ctx, api.AddToken{Agent: a})
		testkit.Must(t, err)
		if a == hosted {
			token = made.Token
		}
		c, err := client.Connect(w.Ctx, "", a, append(options, client.HTTP("http://"+w.HTTPAddr, made.Token))...)
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b := enter(hosted), enter(signs, client.Key(w.Principal(signs).Signer))

	opened, err := a.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{signs}, Purpose: "cups"})
	testkit.Must(t, err)
	invitation, err := b.Await(w.Ctx, performatives.Propose)
	testkit.Must(t, err)
	answers := invitation.Session()
	_, err = answers.Accept(w.Ctx, invitation.Ref())
	testkit.Must(t, err)
	mistaken, err := client.Connect(w.Ctx, "", signs, client.HTTP("http://"+w.HTTPAddr, token))
	testkit.Must(t, err)
	defer mistaken.Close()
	if _, err := mistaken.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{hosted}, Purpose: "cups"}); !errors.Is(err, client.Refused(session.Unauthorized)) {
		t.Errorf("by the token of another it invites: %v", err)
	}
	_, err = opened.Accept(w.Ctx, "nothing")
	if refusal, is := errors.AsType[*session.Refusal](err); !is || refusal.Code != session.WrongState {
		t.Errorf("an ACCEPT of nothing is answered %v", err)
	}
	accepted, err := opened.Await(w.Ctx, performatives.Accept)
	testkit.Must(t, err)
	testkit.Must(t, accepted.Verify(w.Server.Broker.Command.Key()))
	w.Down()
	w.Up()
	_, err = opened.Observe(w.Ctx, "back again", nil)
	testkit.Must(t, err)
	m, err := answers.Await(w.Ctx)
	testkit.Must(t, err)
	if got := subjectOf(m); got != "back again" {
		t.Errorf("then came %s", got)
	}
	view, err := opened.View(w.Ctx)
	testkit.Must(t, err)
	if view.State != session.Conversing || view.Participants[0].Custody != performatives.Hosted || view.Participants[1].Custody == performatives.Hosted {
		t.Errorf("the view is %+v", view)
	}
	entries, err := answers.Transcript(w.Ctx)
	testkit.Must(t, err)
	if len(entries) != 3 {
		t.Errorf("the transcript has %d entries", len(entries))
	}
	if page, err := client.Do(w.Ctx, a, api.SessionList, api.ListSessions{Limit: 5}); err != nil || len(page.Sessions) != 1 {
		t.Errorf("the sessions are %+v, %v", page, err)
	}
	_, err = a.PutSchema(w.Ctx, "x-v1", map[string]any{"type": "object"})
	testkit.Must(t, err)

	// A token that is refused ends what reads with it.
	wrong, err := client.Connect(w.Ctx, "", hosted, client.HTTP("http://"+w.HTTPAddr, "parley_x_y"))
	testkit.Must(t, err)
	defer wrong.Close()
	if _, err := wrong.Await(w.Ctx); !errors.Is(err, client.Refused(session.Unauthorized)) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wrong token reads %v", err)
	}
	if _, err := client.Connect(w.Ctx, "", hosted, client.HTTP("nonsense", "x")); err == nil {
		t.Error("no URL is taken for one")
	}
}

// Over HTTP, too, what a side seals opens for it: what a hosted agent asks, and what comes to it.
func TestHTTPSealed(t *testing.T) {
	t.Parallel()
	const boss = performatives.Agent("human://acme.com/boss")
	w := testkit.NewHosted(t, testkit.Options{})
	w.Principal(boss)
	enter := func(a performatives.Agent) *client.Client {
		c, err := client.Connect(w.Ctx, "", a, client.HTTP("http://"+w.HTTPAddr, w.Tokens[a]))
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	ours, theirs := enter(testkit.Cron), enter(testkit.Seller)
	buyer, err := ours.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{testkit.Seller}, Purpose: "cups"})
	testkit.Must(t, err)
	invitation, err := theirs.Await(w.Ctx, performatives.Propose)
	testkit.Must(t, err)
	_, err = invitation.Session().Accept(w.Ctx, invitation.Ref())
	testkit.Must(t, err)
	asked, err := buyer.Escalate(w.Ctx, client.Escalation{Reason: client.PolicyAmbiguous, Context: "our limit"})
	testkit.Must(t, err)
	_, err = w.Client(boss).Session(buyer.ID()).Rule(w.Ctx, asked.ID, client.Ruling{Decision: performatives.Denied})
	testkit.Must(t, err)
	asked, err = buyer.Escalate(w.Ctx, client.Escalation{Reason: client.PolicyAmbiguous, Context: "for all", Open: true})
	testkit.Must(t, err)
	most := 7.0
	_, err = w.Client(boss).Session(buyer.ID()).Rule(w.Ctx, asked.ID, client.Ruling{
		Decision: performatives.Modified, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD"},
	})
	testkit.Must(t, err)
	var last performatives.RulingData
	ruling := func(s *client.Session) performatives.RulingData {
		m, err := s.Await(w.Ctx, performatives.Inform)
		testkit.Must(t, err)
		said, _ := m.Body().(*performatives.InformBody).Ruling() //nolint:forcetypeassert // it is an INFORM
		last = said
		return said
	}
	ruling(buyer)
	if got := ruling(buyer); got.Authority == nil || *got.Authority.MaxAmount != most {
		t.Errorf("its own agent reads %+v", got)
	}
	for _, open := range []bool{false, true} {
		escalated, err := invitation.Session().Await(w.Ctx, performatives.Escalate)
		testkit.Must(t, err)
		if body := escalated.Body().(*performatives.EscalateBody); (body.Context != nil) != open || body.Sealed.Has(performatives.SealContext) == open { //nolint:forcetypeassert // it is an ESCALATE
			t.Errorf("opened %t: the other side reads %+v", open, body)
		}
		ruling(invitation.Session())
	}
	if got := last; got.Authority != nil || !got.Sealed.Has(performatives.SealAuthority) {
		t.Errorf("the other side reads %+v", got)
	}
	entries, err := buyer.Transcript(w.Ctx)
	testkit.Must(t, err)
	if got := string(entries[2].Message.OpenBody()); !strings.Contains(got, "our limit") {
		t.Errorf("its own transcript has %s", got)
	}
}
