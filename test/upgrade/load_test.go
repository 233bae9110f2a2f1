//go:build long

package upgrade_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// A load is sessions that begin, go on and end until it is stopped. Every act is sent until it is answered, the same
// bytes each time.
type load struct {
	*world
	stop   chan struct{}
	over   sync.WaitGroup
	ended  atomic.Int64  // sessions
	news   chan struct{} // of ended
	again  atomic.Int64  // times that an act was unavailable
	silent atomic.Int64  // times that an act was not answered
	faults atomic.Int64

	mu    sync.Mutex
	talks []*talk
}

// A talk is one session, and what was accepted in it.
type talk struct {
	id       performatives.SessionID
	mode     string
	accepted []api.Acceptance   // in the order of the answers
	offer    performatives.Body // the last one
}

// begins has so many pairs negotiate, each one session after the other, and one pair in one session all the time.
func (w *world) begins(pairs int) *load {
	l := &load{world: w, stop: make(chan struct{}), news: make(chan struct{}, 1)}
	for i := range pairs {
		l.over.Go(func() { l.negotiates(i) })
	}
	l.over.Go(l.haggles)
	return l
}

// goesOn waits until so many sessions more have ended.
func (l *load) goesOn(sessions int64) {
	l.Helper()
	for enough := l.ended.Load() + sessions; l.ended.Load() < enough; {
		if l.faults.Load() > 0 {
			l.FailNow()
		}
		select {
		case <-l.news:
		case <-l.ctx.Done():
			l.Fatalf("the sessions stand still after %d", l.ended.Load())
		}
	}
}

// stops lets all sessions end that have begun.
func (l *load) stops() {
	l.Helper()
	close(l.stop)
	l.over.Wait()
	if l.Failed() {
		l.FailNow()
	}
	l.Logf("%d sessions have ended; acts were unavailable %d times, and not answered %d times", l.ended.Load(), l.again.Load(), l.silent.Load())
}

// negotiates begins one session after the other until the load is stopped.
func (l *load) negotiates(from int) {
	for n := from; !l.stopped(); n++ {
		if err := l.negotiate(scripts[n%len(scripts)]); err != nil {
			l.fails(err)
			return
		}
		l.ended.Add(1)
		l.tells()
	}
}

// haggles makes and rejects offers in one session until the load is stopped.
func (l *load) haggles() {
	t := l.opens("asp/1")
	say := func(by *testkit.Principal, act performatives.Performative, body string, want session.Phase) (ok bool) {
		_, err := l.says(l.conns[by.Agent], t, by, line{by.Agent, act, body, want}, "")
		if err != nil {
			l.fails(err)
		}
		return err == nil
	}
	ok := say(l.alpha, performatives.Propose, inviting("asp/1"), session.Invited) && say(l.beta, performatives.Accept, `{"referenceId":"inv"}`, session.Introduced)
	for n := 0; ok && !l.stopped(); n++ {
		ok = say(l.alpha, performatives.Propose, fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"price":%[1]d}}`, n), session.Conversing) &&
			say(l.beta, performatives.Reject, fmt.Sprintf(`{"referenceId":"p%d","code":"unspecified","reason":"no","retryable":true}`, n), session.Conversing)
	}
	if ok {
		say(l.alpha, performatives.Close, `{"outcome":"completed"}`, session.Closed)
	}
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) fails(err error) {
	l.Error(err)
	l.faults.Add(1)
	l.tells()
}

func (l *load) tells() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *load) opens(mode string) *talk {
	t := &talk{id: testkit.NewSession(), mode: mode}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.talks = append(l.talks, t)
	return t
}

func (l *load) negotiate(s script) error {
	t := l.opens(s.mode)
	nc, err := l.letIn(l.alpha) // by whichever broker is there now
	if err != nil {
		return err
	}
	defer nc.Close()
	conns := map[performatives.Agent]*nats.Conn{alpha: nc, beta: l.conns[beta], alice: l.conns[alice]}
	by := map[performatives.Agent]*testkit.Principal{alpha: l.alpha, beta: l.beta, alice: l.alice}
	var last api.Acceptance
	for _, line := range s.lines {
		if last, err = l.says(conns[line.by], t, by[line.by], line, last.Message); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) letIn(p *testkit.Principal) (nc *nats.Conn, err error) {
	if testkit.Until(w.ctx, func() bool {
		nc, err = p.Dial(p.Login())
		return err == nil
	}) != nil {
		err = fmt.Errorf("%s is not let in: %w", p.Agent, err)
	}
	return nc, err
}

// says submits an act until it is answered. The only refusal that is no fault is unavailable.
func (l *load) says(nc *nats.Conn, t *talk, by *testkit.Principal, line line, last performatives.MessageID) (a api.Acceptance, err error) {
	text := line.text(last)
	draft := func(*performatives.Draft) {}
	if t.mode == "binding/1" {
		if text, draft, err = t.binds(by, line.act, text); err != nil {
			return a, err
		}
	}
	body := performatives.NewBody(line.act)
	if err := json.Unmarshal([]byte(text), body); err != nil {
		return a, err
	}
	envelope := by.Envelope(t.id, body, draft)
	if line.act == performatives.Propose || line.act == performatives.Counter {
		t.offer = body
	}
	var m *nats.Msg
	if testkit.Until(l.ctx, func() bool {
		m, err = nc.Request(api.Submit(by.Agent, t.id), envelope, 20*time.Second)
		switch {
		case err != nil:
			l.silent.Add(1)
		case m.Header.Get(api.ErrorCodeHeader) == fmt.Sprint(session.Unavailable.Status()):
			l.again.Add(1)
		default:
			return true
		}
		return false
	}) != nil {
		return a, fmt.Errorf("%s session %s: %s is not answered: %+v, %w", t.mode, t.id, line.act, m, errors.Join(l.ctx.Err(), err))
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return a, err
	}
	if !a.Accepted {
		return a, fmt.Errorf("%s session %s: %s %s is answered %s", t.mode, t.id, line.act, text, m.Data)
	}
	if a.State != line.then {
		return a, fmt.Errorf("%s session %s is %s after %s, want %s", t.mode, t.id, a.State, line.act, line.then)
	}
	t.accepted = append(t.accepted, a)
	return a, nil
}

// binds signs an offer, or the acceptance of the last one, as the agreement that it makes, and links it.
func (t *talk) binds(by *testkit.Principal, act performatives.Performative, text string) (string, func(*performatives.Draft), error) {
	n := len(t.accepted)
	if n < 2 { // the invitation and its answer
		return text, func(*performatives.Draft) {}, nil
	}
	party := agreement.Party{Signer: by.Signer, Session: t.id, At: time.Now(), Self: by.Agent, Other: beta, Offer: t.offer}
	if by.Agent == beta {
		party.Other = alpha
	}
	body, err := party.Complete(act, jsontext.Value(text))
	link := &performatives.Link{Sequence: uint64(n), PreviousHash: t.accepted[n-1].Hash}
	return string(body), func(d *performatives.Draft) { d.Link = link }, err
}
