package proposals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/proposals"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	buyer    = performatives.Agent("agent://acme.com/buyer")
	outsider = performatives.Agent("agent://outside.example/agent")
)

// An agent answers a call with bodies, or does not answer while the call lasts.
type agent struct {
	*testkit.Principal
	bodies  []string
	want    string // in the reply to each body
	crashes bool

	called chan string // the ID of the call
}

func skilled(trust float64, skills ...discovery.Skill) func(*api.Card) {
	return func(c *api.Card) {
		c.Capabilities, c.Skills, c.Registry.TrustScore = []string{"extract.pdf"}, skills, &trust
	}
}

var pdf = discovery.Skill{ID: "pdf", Name: "PDF", Tags: []string{"pdf", "tables"}}

// forty are agents that answer, are late, answer twice, forge, lie, crash, or advertise
// everything.
func forty(w *testkit.World) (all []*agent) {
	add := func(n int, trust float64, want string, bodies func(i int) []string) {
		for range n {
			i := len(all)
			a := performatives.Agent(fmt.Sprintf("agent://a%02d.example/pdf", i))
			all = append(all, &agent{Principal: w.Principal(a, skilled(trust, pdf)), bodies: bodies(i), want: want, called: make(chan string, 1)})
		}
	}
	own := func(score string) string { return `"accepted":true,"score":` + score + `,"confidence":0.9` }
	add(19, 50, `"counted":true`, func(i int) []string { return []string{own(fmt.Sprintf("0.%d", 30+i))} })
	add(4, 50, "", func(int) []string { return []string{own("0.25"), own("1")} })
	add(3, 50, "malformed", func(int) []string { return []string{`"agentId":"agent://a00.example/pdf",` + own("1")} })
	for _, lie := range []string{"2", "-1", "1e3"} {
		add(1, 50, "schema_invalid", func(int) []string { return []string{own(lie)} })
	}
	for _, lie := range []string{"NaN", `"NaN"`, "1e999"} {
		add(1, 50, "malformed", func(int) []string { return []string{own(lie)} })
	}
	add(3, 50, "", func(int) []string { return nil })
	for _, a := range all[len(all)-3:] {
		a.crashes = true
	}
	add(3, 50, `"counted":false`, func(int) []string { return nil }) // late
	all = append(all, &agent{Principal: w.Principal("agent://a39.example/pdf", skilled(90, pdf)), called: make(chan string, 1)})
	return all
}

// TestForty is a call among forty agents of which half do not behave: each answer counts
// once, and only in time from who was asked; whoever gave none is assessed from its card.
func TestForty(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	all := forty(w)
	everything := make([]discovery.Skill, api.MaxSkills)
	for i := range everything {
		everything[i] = discovery.Skill{ID: fmt.Sprint(i), Name: fmt.Sprint("skill ", i), Tags: []string{"translate", "print", fmt.Sprint(i)}}
	}
	everything[7] = pdf
	all = append(all, &agent{Principal: w.Principal("agent://a00.everything.example/x", skilled(10, everything...)), called: make(chan string, 1)})
	if len(all) != 40 {
		t.Fatalf("%d agents", len(all))
	}
	unasked := &agent{Principal: w.Principal(outsider), want: `"counted":false`, bodies: []string{`"accepted":true,"score":1,"confidence":1`}, called: make(chan string, 1)}
	w.Principal(buyer)

	var answered sync.WaitGroup
	for _, a := range append(all, unasked) {
		answered.Add(1)
		_, err := a.Conn().Subscribe("asp.discovery.extract.pdf", func(m *nats.Msg) {
			var call api.CallNotice
			if err := json.Unmarshal(m.Data, &call); err != nil {
				t.Error(err)
			}
			go func() {
				defer answered.Done()
				if a.crashes {
					a.Conn().Close()
				}
				for i, body := range a.bodies {
					want := a.want
					if want == "" { // the second answer of an agent does not count
						want = fmt.Sprintf(`"counted":%t`, i == 0)
					}
					a.answers(call.ID, body, want)
				}
				a.called <- call.ID
			}()
		})
		testkit.Must(t, err)
		testkit.Must(t, a.Conn().Flush())
	}
	limit, wait := 200, api.MaxWait
	ctx, enough := context.WithCancel(w.Ctx) // the call ends when all have done what they do
	go func() {
		answered.Wait()
		enough()
	}()
	found, err := w.Server.Broker.Proposals.Call(ctx, api.Caller{Agent: buyer}, api.CallForProposals{
		Task: discovery.Task{Summary: "pdf tables"}, Capability: "extract.pdf", WaitMs: &wait, Limit: limit,
	})
	testkit.Must(t, err)
	for _, a := range all[35:38] {
		a.answers(<-a.called, `"accepted":true,"score":1,"confidence":1`, `"counted":false`)
	}
	if found.Asked != 40 || found.Answered != 23 || len(found.Candidates) != 40 {
		t.Fatalf("asked %d, answered %d, %d candidates", found.Asked, found.Answered, len(found.Candidates))
	}
	// From the card: Jaccard 1 of the first 17, of which the trusted one is first and the one
	// that advertises everything last.
	first, last := found.Candidates[0], found.Candidates[16]
	if first.Agent != "agent://a39.example/pdf" || last.Agent != "agent://a00.everything.example/x" || first.Score != last.Score {
		t.Errorf("first %+v, last of the cards %+v", first, last)
	}
	for i, c := range found.Candidates {
		switch {
		case !c.Accepted || c.Why == "":
			t.Errorf("%+v", c)
		case i < 17 && (c.Source != discovery.ByRegistry || c.Score != first.Score || c.Subscores == nil):
			t.Errorf("%d: %+v", i, c)
		case i >= 17 && i < 36 && (c.Source != discovery.ByAgent || c.Agent != all[35-i].Agent || c.Score != float64(30+35-i)/100):
			t.Errorf("%d: %+v", i, c)
		case i >= 36 && (c.Source != discovery.ByAgent || c.Score != 0.25):
			t.Errorf("%d: %+v", i, c)
		}
	}
	for _, subject := range []string{"asp.call.x", "asp.agent." + buyer.Token() + ".api.discovery.answer"} {
		testkit.Must(t, unasked.Conn().Publish(subject, []byte(`{}`)))
		if !testkit.Denied(t, unasked.Conn(), subject) {
			t.Errorf("an agent publishes on %s", subject)
		}
	}
}

// answers sends an answer over NATS.
func (a *agent) answers(id, body, want string) {
	reply, err := a.Conn().Request("asp.agent."+a.Agent.Token()+".api.discovery.answer", []byte(`{"callId":"`+id+`",`+body+`}`), testkit.Patience)
	if err != nil || !strings.Contains(string(reply.Data), want) {
		a.Errorf("%s answers %s: %v, want %s", a.Agent, body, err, want)
	}
}

// TestFlood: of one principal so many calls wait; the next is refused, and another's is not.
func TestFlood(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	w.Principal("agent://a.example/pdf").Call("agent.register", `{"card":{"capabilities":["extract.pdf"]}}`)
	called := make(chan struct{}, 16)
	nc := w.Principal("agent://a.example/pdf").Conn()
	_, err := nc.Subscribe("asp.discovery.extract.pdf", func(*nats.Msg) { called <- struct{}{} })
	testkit.Must(t, err)
	testkit.Must(t, nc.Flush())
	calls := w.Server.Broker.Proposals
	ctx, cancel := context.WithCancel(w.Ctx)
	wait := api.MaxWait
	q := api.CallForProposals{Task: discovery.Task{Summary: "pdf"}, Capability: "extract.pdf", WaitMs: &wait}
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() { _, _ = calls.Call(ctx, api.Caller{Agent: buyer}, q) })
	}
	for range 8 {
		<-called
	}
	ninth := w.Principal(buyer).Call("discovery.call", `{"task_summary":"pdf","capability":"extract.pdf"}`)
	testkit.Refused(t, ninth, session.RateLimited)
	waiting.Go(func() { _, _ = calls.Call(ctx, api.Caller{Agent: outsider}, q) })
	<-called
	cancel()
	waiting.Wait()
	none := 0
	q.WaitMs = &none
	_, err = calls.Call(w.Ctx, api.Caller{Agent: buyer}, q)
	testkit.Must(t, err)
}

// TestHasty: calls that hardly wait for the agents that they ask count as waiting for a while.
func TestHasty(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	w.Principal("agent://a.example/pdf").Call("agent.register", `{"card":{"capabilities":["extract.pdf"]}}`)
	wait := 1
	q := api.CallForProposals{Task: discovery.Task{Summary: "pdf"}, Capability: "extract.pdf", WaitMs: &wait}
	calls, err := w.Server.Broker.Proposals, error(nil)
	for n := 0; err == nil && n < 200; n++ {
		_, err = calls.Call(w.Ctx, api.Caller{Agent: buyer}, q)
	}
	if !errors.Is(err, &session.Refusal{Code: session.RateLimited}) {
		t.Errorf("one call of a millisecond after the other: %v", err)
	}
	none := 0
	q.WaitMs = &none
	_, err = calls.Call(w.Ctx, api.Caller{Agent: buyer}, q)
	testkit.Must(t, err)
}

// TestTurns: cards are assessed in a turn of the caller's, which it does not keep while it
// waits for answers. A caller that gets none is refused.
func TestTurns(t *testing.T) {
	t.Parallel()
	var turns, held atomic.Int32
	at := testkit.StartServer(t)
	opened, err := store.Open(t.Context(), store.Options{Conn: at.Connect()})
	testkit.Must(t, err)
	defer opened.Close()
	agents, err := registry.Open(t.Context(), registry.Options{
		Store: opened, Broker: at.Signer.Key(), Now: time.Now, Log: zap.NewNop(), Timely: func(time.Time) error { return nil },
	})
	testkit.Must(t, err)
	defer agents.Close()
	able := api.Card{Agent: "agent://a.example/pdf", Key: performatives.Key(testkit.Public(t, testkit.NewKey(t)))}
	skilled(0.5, pdf)(&able)
	_, err = agents.Add(t.Context(), able)
	testkit.Must(t, err)
	o := proposals.Options{Registry: agents, Bus: opened.Bus(), Broker: "b", Now: time.Now, Queue: func(performatives.Agent) int { return 0 }}
	o.Enter = func(_ context.Context, a performatives.Agent) (func(), error) {
		if a == outsider {
			return nil, session.Busy()
		}
		turns.Add(1)
		held.Add(1)
		return func() { held.Add(-1) }, nil
	}
	ctx, enough := context.WithCancel(t.Context())
	stop, err := opened.Bus().Listen(api.Discovery("extract.pdf"), func([]byte) []byte {
		if held.Load() != 0 {
			t.Error("a turn is held while answers are awaited")
		}
		enough()
		return nil
	})
	testkit.Must(t, err)
	defer stop()
	calls, err := proposals.Open(o)
	testkit.Must(t, err)
	defer calls.Close()
	wait := api.MaxWait
	q := api.CallForProposals{Task: discovery.Task{Summary: "pdf"}, Capability: "extract.pdf", WaitMs: &wait}
	found, err := calls.Call(ctx, api.Caller{Agent: buyer}, q)
	if err != nil || len(found.Candidates) != 1 || turns.Load() != 2 || held.Load() != 0 {
		t.Errorf("%+v %v; %d turns, %d held", found, err, turns.Load(), held.Load())
	}
	if _, err := calls.Call(ctx, api.Caller{Agent: outsider}, q); !errors.Is(err, &session.Refusal{Code: session.Unavailable}) {
		t.Errorf("without a turn: %v", err)
	}
}
