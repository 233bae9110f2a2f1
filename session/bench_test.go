package session_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A bench is a session without its transcript: only what Step sees.
type bench struct {
	*stage
	b testing.TB
}

func newBench(b testing.TB) *bench { return &bench{newStage(b), b} }

func (s *bench) message(from performatives.Agent, body performatives.Body) session.Event {
	s.b.Helper()
	m, err := performatives.Read(s.envelope(performatives.Draft{Sender: from, Body: body}))
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		s.b.Fatal(err)
	}
	return s.event(m)
}

func (s *bench) happens(from performatives.Agent, body performatives.Body) {
	s.b.Helper()
	e := s.message(from, body)
	next, err := session.Step(s.state, e)
	if err != nil {
		s.b.Fatal(err)
	}
	s.state = next.Sealed(e.Message.ID, performatives.HashOf(e.Message.RawBody))
}

func terms(price int) performatives.Object {
	return jsontext.Value(`{"price":` + strconv.Itoa(price) + `}`)
}

// opens brings alpha and so many others to CONVERSING.
func (s *bench) opens(others int) []performatives.Agent {
	s.b.Helper()
	return s.opensIn(session.DefaultMode, others)
}

func (s *bench) opensIn(mode string, others int) []performatives.Agent {
	s.b.Helper()
	invited := make([]performatives.Agent, others)
	list := ""
	for i := range invited {
		invited[i] = performatives.Agent(fmt.Sprintf("agent://many.org/a%d", i))
		s.registry[invited[i]] = performatives.Member{Agent: invited[i], Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal}
		list += fmt.Sprintf(",%q", invited[i])
	}
	s.happens(principals["alpha"], &performatives.ProposeBody{
		ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "many", Terms: jsontext.Value(`{"mode":"` + mode + `","participants":[` + list[1:] + `]}`),
	})
	for _, a := range invited {
		s.happens(a, &performatives.AcceptBody{ReferenceID: "i1"})
	}
	s.happens(principals["alpha"], &performatives.ObserveBody{Subject: "open"})
	return invited
}

// bargains makes the session so many acts longer: offers that are countered,
// asked about, accepted, and left to expire.
func (s *bench) bargains(acts int) {
	s.b.Helper()
	alpha, other := principals["alpha"], performatives.Agent("agent://many.org/a0")
	for i := 0; int(s.state.Next) < acts; i++ { //nolint:gosec // small
		soon := s.now.Add(time.Duration(i+1) * time.Millisecond)
		p, c := fmt.Sprintf("p%d", i), fmt.Sprintf("c%d", i)
		s.happens(alpha, &performatives.ProposeBody{ProposalID: p, Type: "data-exchange", Subject: p, Terms: terms(2 * i), ValidUntil: &soon})
		s.now = s.now.Add(time.Millisecond)
		s.happens(other, &performatives.ProposeBody{ProposalID: c, Type: "data-exchange", Subject: c, Terms: terms(2*i + 1)})
		s.happens(alpha, &performatives.ClarifyBody{ReferenceID: c, Questions: []performatives.Question{{Field: "terms.price", Question: "?"}}})
		s.happens(other, &performatives.InformBody{Type: performatives.Fact, Data: jsontext.Value(fmt.Sprintf(`{"answers":[{"answer":1,"field":"terms.price"}],"referenceId":%q}`, c))})
		s.happens(alpha, &performatives.AcceptBody{ReferenceID: c})
	}
}

// What one act costs must not grow with the session (PROTOCOL.md is silent; the
// house is not): 10 and 10,000 acts differ by the depth of the maps only.
func BenchmarkStep(b *testing.B) {
	for _, acts := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("acts=%d", acts), func(b *testing.B) {
			s := newBench(b)
			s.opens(1)
			s.bargains(acts)
			e := s.message(principals["alpha"], &performatives.ProposeBody{ProposalID: "new", Type: "data-exchange", Subject: "s", Terms: terms(-1)})
			steps(b, s.state, e)
		})
	}
}

// BenchmarkRefusal is an act that is refused with what is allowed instead.
func BenchmarkRefusal(b *testing.B) {
	for _, acts := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("acts=%d", acts), func(b *testing.B) {
			s := newBench(b)
			s.opens(1)
			s.bargains(acts)
			e := s.message(principals["alpha"], &performatives.ProposeBody{
				ProposalID: "i2", Type: performatives.SessionInvitation, Subject: "again", Terms: jsontext.Value(`{"mode":"asp/1","participants":["agent://many.org/a0"]}`),
			})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := session.Step(s.state, e); !errors.Is(err, &session.Refusal{Code: session.WrongState}) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStepParticipants is an ACCEPT of a commitment among many, and who
// is to receive it, which is everybody.
func BenchmarkStepParticipants(b *testing.B) {
	for _, others := range []int{9, 99, 999} {
		b.Run(fmt.Sprintf("participants=%d", others+1), func(b *testing.B) {
			s := newBench(b)
			invited := s.opens(others)
			s.happens(principals["alpha"], &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{
				Obligations: []performatives.Obligation{{Party: principals["alpha"], Action: "deliver"}},
			}})
			e := s.message(invited[0], &performatives.AcceptBody{ReferenceID: "k1"})
			b.Run("step", func(b *testing.B) { steps(b, s.state, e) })
			next, err := session.Step(s.state, e)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("audience", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if len(next.Audience()) != others {
						b.Fatal("somebody is missing")
					}
				}
			})
		})
	}
}

func steps(b *testing.B, state session.State, e session.Event) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.Step(state, e); err != nil {
			b.Fatal(err)
		}
	}
}

// A session of many acts stays as it was told: the benchmark's own session,
// short, so that it is right before it is fast.
func TestBenchedSession(t *testing.T) {
	s := newBench(t)
	s.opens(3)
	s.bargains(50)
	if v := api.ViewSession(&s.state, s.now); v.State != session.Conversing || len(v.Proposals) < 10 || v.Proposals[0].Status != "expired" || v.Proposals[1].Status != "accepted" {
		t.Errorf("%s, %d proposals, %v", v.State, len(v.Proposals), v.Proposals[:2])
	}
}

// BenchmarkExecuting is an act in EXECUTING, a delivery that is accepted, with so many obligations that
// are due, and what each side's turn is after it (COMMITMENTS.md).
func BenchmarkExecuting(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newBench(b)
			other := s.opens(1)[0]
			deadline, promised := curtain.Add(48*time.Hour), make([]performatives.Obligation, n)
			for i := range promised {
				promised[i] = performatives.Obligation{Party: other, Action: "deliver", Deadline: &deadline}
			}
			s.happens(other, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{Obligations: promised}})
			s.happens(principals["alpha"], &performatives.AcceptBody{ReferenceID: "k1"})
			delivers := s.message(other, &performatives.InformBody{Type: performatives.Result, Data: jsontext.Value(`{"commitmentId":"k1","obligation":"0"}`)})
			accepts := s.message(principals["alpha"], &performatives.AcceptBody{ReferenceID: string(delivers.Message.ID)})
			for b.Loop() {
				next, err := session.Step(s.state, delivers)
				if err == nil {
					next, err = session.Step(next.Sealed(delivers.Message.ID, performatives.NoHash), accepts)
				}
				if err != nil {
					b.Fatal(err)
				}
				next.TurnOf(other, s.now)
				next.TurnOf(principals["alpha"], s.now)
				next.NextDeadline(s.now)
			}
		})
	}
}
