package broker_test

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// hosts has brokers share a secret, so that each signs for the hosted agents.
func hosts(o *server.BrokerOptions) { o.Secret = []byte("of this installation, of 32 bytes") }

// host makes agents hosted ones.
func (s site) host(b *server.Broker, agents ...performatives.Agent) {
	s.Helper()
	for _, a := range agents {
		_, err := b.Custody.AgentAdd(s.Context(), api.Caller{Operator: true}, api.AddAgent{Card: &api.Card{Agent: a}, Hosted: true})
		testkit.Must(s, err)
	}
}

// says submits an act as a hosted agent, at whichever broker receives it.
func (s site) says(b *server.Broker, a performatives.Agent, q api.Say) (accepted api.Acceptance, err error) {
	s.Helper()
	request, err := json.Marshal(q)
	testkit.Must(s, err)
	reply, err := b.Gateway.CallAs(s.Context(), a, api.SessionSay.Name, request)
	if err != nil {
		return accepted, err
	}
	return accepted, json.Unmarshal(reply, &accepted)
}

// saysAgain is says, asked again while the broker is unavailable.
func (s site) saysAgain(b *server.Broker, a performatives.Agent, q api.Say) (accepted api.Acceptance, err error) {
	s.Helper()
	unavailable := testkit.Available(s.Context(), testkit.Repeats, func() bool {
		accepted, err = s.says(b, a, q)
		return testkit.CodeOf(err) != session.Unavailable
	})
	return accepted, cmp.Or(unavailable, err)
}

// saidOpen opens a session of two hosted agents.
func (s site) saidOpen(b *server.Broker, inviter, invited performatives.Agent) performatives.SessionID {
	s.Helper()
	invitation := fmt.Sprintf(`{"proposalId":"i1","type":"session-invitation","subject":"cups","terms":{"participants":[%q]}}`, invited)
	opened, err := s.saysAgain(b, inviter, api.Say{Key: "invites", Performative: "PROPOSE", Body: jsontext.Value(invitation)})
	testkit.Must(s, err)
	accept := api.Say{Session: opened.Session, Key: string(opened.Session), Performative: "ACCEPT", Body: jsontext.Value(`{"referenceId":"i1"}`)}
	_, err = s.saysAgain(b, invited, accept)
	testkit.Must(s, err)
	return opened.Session
}

func told(id performatives.SessionID, key string) api.Say {
	return api.Say{Session: id, Key: key, Performative: "INFORM", Body: jsontext.Value(fmt.Sprintf(`{"type":"fact","data":%q}`, key))}
}

// TestSayForwarded: what a hosted agent says is said once, whether the broker that is asked owns the
// session, forwards it to the owner, or is the one that is left.
func TestSayForwarded(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	one, _ := at.OpenBroker(hosts)
	two, _ := at.OpenBroker(hosts)
	at.meet(one, two)
	at.host(one, alpha, beta)
	testkit.Eventually(t, "the other broker knows them", func() bool {
		_, has := two.Parts.Registry.HostedKey(beta)
		return has
	})
	id := at.saidOpen(one, alpha, beta)

	// everywhere asks until both the owner and the other broker were asked.
	const most = 64
	everywhere := func(ask func(n int)) {
		t.Helper()
		sent, owner, other := forwarded(one)+forwarded(two), false, false
		for n := 0; !owner || !other; n++ {
			if n == most {
				t.Fatalf("of %d calls, one was forwarded: %t, one was not: %t", most, other, owner)
			}
			ask(n)
			now := forwarded(one) + forwarded(two)
			owner, other, sent = owner || now == sent, other || now > sent, now
		}
	}
	var last api.Acceptance
	once := func(q api.Say) {
		t.Helper()
		before := last
		everywhere(func(n int) {
			accepted, err := at.saysAgain(one, alpha, q)
			if err != nil {
				t.Fatalf("%s is answered %v", q.Key, err)
			}
			if n == 0 {
				last = accepted
			}
			if accepted.Duplicate != (n > 0) || accepted.Sequence != last.Sequence || accepted.Hash != last.Hash || accepted.Message != last.Message {
				t.Errorf("%s is answered %+v, at first %+v", q.Key, accepted, last)
			}
		})
		if before.Hash != "" && last.Sequence != before.Sequence+1 {
			t.Errorf("%s is entry %d, after %d", q.Key, last.Sequence, before.Sequence)
		}
	}
	refused := func(q api.Say, want session.Code) {
		t.Helper()
		everywhere(func(int) {
			if accepted, err := at.saysAgain(one, alpha, q); testkit.CodeOf(err) != want {
				t.Errorf("%s is answered %+v, %v, want %s", q.Key, accepted, err, want)
			}
		})
	}
	for n := range 4 {
		once(told(id, fmt.Sprint("k", n)))
	}
	first := last
	other := told(id, "k3")
	other.Body = jsontext.Value(`{"type":"fact","data":"another"}`)
	refused(other, session.Duplicate)

	decided := told(id, "at the head")
	decided.IfHead = first.Hash
	once(decided)
	late := told(id, "at a head that is gone")
	late.IfHead = first.Hash
	refused(late, session.ChainConflict)
	once(told(id, "after the refusals"))

	at.close(one)
	for _, q := range []api.Say{told(id, "k3"), decided} {
		if accepted, err := at.saysAgain(two, alpha, q); err != nil || !accepted.Duplicate {
			t.Errorf("at the broker that is left, %s is answered %+v, %v", q.Key, accepted, err)
		}
	}
	at.close(two)
}

// TestSayTakesNoOthersSlot: what waits for a busy session keeps nobody's calls, acts and sayings from
// being answered.
func TestSayTakesNoOthersSlot(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	b, _ := at.OpenBroker(hosts)
	at.host(b, alpha, beta, gamma)
	busy, other := at.saidOpen(b, alpha, beta), at.saidOpen(b, gamma, beta)
	letGo := b.Command.Hold(busy)
	const flood = 40 // more than there are slots of calls
	var saying sync.WaitGroup
	var early atomic.Int32 // calls that ended before all waited for the session
	var allWait atomic.Bool
	for n := range flood {
		saying.Go(func() {
			for { // the session may be busy for longer than a call waits
				_, err := at.says(b, alpha, told(busy, fmt.Sprint(n)))
				if !errors.Is(err, &session.Refusal{Code: session.Unavailable}) {
					if err != nil {
						t.Errorf("%d is answered %v", n, err)
					}
					return
				}
				if !allWait.Load() {
					early.Add(1)
				}
			}
		})
	}
	testkit.Eventually(t, "all wait for the session", func() bool { return early.Load() > 0 || b.Command.Queued(busy) >= flood })
	allWait.Store(true)
	if early.Load() > 0 {
		t.Error("some were told to come again while others waited for a slot")
	}
	for _, verb := range []string{api.SessionList.Name, api.BrokerInfo.Name} {
		if _, err := b.Gateway.CallAs(t.Context(), gamma, verb, nil); err != nil {
			t.Errorf("%s is answered %v", verb, err)
		}
	}
	if _, err := at.says(b, gamma, told(other, "k")); err != nil {
		t.Errorf("another session is answered %v", err)
	}
	if queued := b.Command.Queued(busy); queued < flood {
		t.Errorf("%d wait, so the session was not busy all the time", queued)
	}
	letGo()
	saying.Wait()
	accepted, err := at.says(b, alpha, told(busy, "last"))
	if err != nil || accepted.Sequence != flood+2 {
		t.Errorf("after %d says there is %+v, %v", flood, accepted, err)
	}
	at.close(b)
}

// TestReadTakesNoOthersSlot: reads that wait for a busy session keep nobody's calls from being answered.
func TestReadTakesNoOthersSlot(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	b, _ := at.OpenBroker(hosts)
	at.host(b, alpha, beta, gamma)
	busy, other := at.saidOpen(b, alpha, beta), at.saidOpen(b, gamma, beta)
	letGo := b.Command.Hold(busy)
	const flood = 40 // more than there are slots of calls
	get := func(a performatives.Agent, id performatives.SessionID) error {
		_, err := b.Gateway.CallAs(t.Context(), a, api.SessionGet.Name, fmt.Appendf(nil, `{"sessionId":%q}`, id))
		return err
	}
	var reading sync.WaitGroup
	var early atomic.Int32 // reads that ended before all waited for the session
	for range flood {
		reading.Go(func() {
			if err := get(alpha, busy); err != nil {
				early.Add(1)
			}
		})
	}
	testkit.Eventually(t, "all wait for the session", func() bool { return early.Load() > 0 || b.Command.Queued(busy) >= flood })
	if early.Load() > 0 {
		t.Error("some were told to come again while others waited for a slot")
	}
	if err := get(gamma, other); err != nil {
		t.Errorf("a read of another session is answered %v", err)
	}
	if queued := b.Command.Queued(busy); queued < flood {
		t.Errorf("%d wait, so the session was not busy all the time", queued)
	}
	letGo()
	reading.Wait()
	at.close(b)
}
