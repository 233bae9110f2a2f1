package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/test/testkit"
)

// message is an act of haggle as the broker reads it.
func message(id performatives.SessionID, n int, signer performatives.Signer) *performatives.Message {
	sender, body := haggle(n)
	return draft(id, sender, body, signer)
}

func draft(id performatives.SessionID, sender performatives.Agent, body performatives.Body, signer performatives.Signer) *performatives.Message {
	m := must(performatives.Read(must(performatives.Draft{
		ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: sender, Body: body,
	}.Envelope(signer))))
	if err := m.DecodeBody(); err != nil {
		panic(err)
	}
	return m
}

// BenchmarkStep is one act judged and carried out, in memory, by the length of
// the session that it is said in.
func BenchmarkStep(b *testing.B) {
	known := session.Known{}
	for _, a := range []performatives.Agent{alpha, beta} {
		known.Add(performatives.Member{Agent: a, Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal})
	}
	policy := performatives.Policy{
		Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000, MaxPaused: 1, EscalationLow: 1, EscalationMedium: 1, EscalationHigh: 1, EscalationCritical: 1,
	}
	for _, acts := range []int{10, 10_000} {
		b.Run(fmt.Sprint(acts, " acts"), func(b *testing.B) {
			id := testkit.NewSession()
			state := session.New(id, modes.All())
			step := func(m *performatives.Message) {
				next, err := session.Step(state, session.Event{Message: m, At: time.Now(), Known: known, Policy: policy})
				if err != nil {
					b.Fatal(err)
				}
				state = next.Sealed(m.ID, performatives.NoHash)
			}
			for n := range 2 {
				sender, body := opening(n)
				step(draft(id, sender, body, nil))
			}
			for n := 2; n < acts; n++ {
				step(message(id, n, nil))
			}
			before, round := state, []*performatives.Message{}
			for n := range 4 {
				round = append(round, message(id, acts-acts%4+4+n, nil))
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%4 == 0 {
					state = before
				}
				step(round[n%4])
			}
		})
	}
}

// BenchmarkJudged is all that is done for an act besides storing and sending it:
// read, verified, held against its schema, judged, signed, sealed, and when to
// look again.
func BenchmarkJudged(b *testing.B) {
	id, keys, known := testkit.NewSession(), map[performatives.Agent]performatives.Signer{}, session.Known{}
	for _, a := range []performatives.Agent{alpha, beta} {
		keys[a] = signer()
		known.Add(performatives.Member{Agent: a, Key: keys[a].Key(), Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal})
	}
	broker, policy := signer(), performatives.Policy{
		Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000, MaxPaused: 1, EscalationLow: 1, EscalationMedium: 1, EscalationHigh: 1, EscalationCritical: 1,
	}
	envelope := func(n int) []byte {
		sender, body := haggle(n)
		if n < 2 {
			sender, body = opening(n)
		}
		return must(performatives.Draft{
			ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: sender, Body: body,
		}.Envelope(keys[sender]))
	}
	judge := func(s session.State, envelope []byte) session.State {
		m, at := must(performatives.Read(envelope)), time.Now()
		if err := m.VerifySignature(keys[m.Sender].Key()); err != nil {
			b.Fatal(err)
		}
		if _, again := s.Seen(m.ID); again {
			b.Fatal("it was said before")
		}
		if faults := schemas.Validate(m.Performative, m.RawBody); len(faults) > 0 {
			b.Fatal(faults)
		}
		if err := m.DecodeBody(); err != nil {
			b.Fatal(err)
		}
		if _, passed := s.Passed(at); passed {
			b.Fatal("it is over")
		}
		next, err := session.Step(s, session.Event{Message: m, At: at, Known: known, Policy: policy, Broker: broker.Key()})
		if err != nil {
			b.Fatal(err)
		}
		_, stamp, err := m.Deliver(performatives.Stamp{
			Sequence: s.Next, PreviousHash: s.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
		}, at, next.Phase.String(), broker)
		if err != nil {
			b.Fatal(err)
		}
		next = next.Sealed(m.ID, stamp.Hash)
		next.NextDeadline(at)
		next.Audience()
		return next
	}
	state := session.New(id, modes.All())
	for n := range 12 {
		state = judge(state, envelope(n))
	}
	before, round := state, [4][]byte{}
	for n := range round {
		round[n] = envelope(12 + n)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%4 == 0 {
			state = before
		}
		state = judge(state, round[n%4])
	}
}

// opening are the two acts that open a session.
func opening(n int) (performatives.Agent, performatives.Body) {
	if n == 0 {
		return alpha, &performatives.ProposeBody{
			ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: []byte(`{"participants":["` + string(beta) + `"]}`),
		}
	}
	return beta, &performatives.AcceptBody{ReferenceID: "inv"}
}

// BenchmarkRead is the reading of an envelope into a message.
func BenchmarkRead(b *testing.B) {
	sender, body := haggle(4)
	envelope := must(performatives.Draft{
		ID: testkit.NewID(), Session: testkit.NewSession(), Timestamp: time.Now(), Sender: sender, Body: body,
	}.Envelope(signer()))
	b.SetBytes(int64(len(envelope)))
	b.ReportAllocs()
	for b.Loop() {
		must(performatives.Read(envelope))
	}
}

func signer() performatives.Signer {
	return must(performatives.NewSigner(must(nkeys.CreateUser())))
}

// BenchmarkValidate is a body held against its schema.
func BenchmarkValidate(b *testing.B) {
	for n, name := range []string{"PROPOSE", "COUNTER", "REJECT", "OBSERVE"} {
		b.Run(name, func(b *testing.B) {
			m := message(testkit.NewSession(), 4+n, nil)
			b.ReportAllocs()
			for b.Loop() {
				if faults := schemas.Validate(m.Performative, m.RawBody); len(faults) > 0 {
					b.Fatal(faults)
				}
			}
		})
	}
}

// BenchmarkVerify is the check of a sender's signature.
func BenchmarkVerify(b *testing.B) {
	key := signer()
	m := message(testkit.NewSession(), 4, key)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.VerifySignature(key.Key()); err != nil {
			b.Fatal(err)
		}
	}
}

// setups are the ways in which the whole path is measured.
var setups = []struct {
	name string
	sync time.Duration
	tcp  bool
}{
	{"in process, sync always", 0, false}, {"in process, sync 1m", time.Minute, false},
	{"TCP, sync always", 0, true}, {"TCP, sync 1m", time.Minute, true},
}

// BenchmarkAccepted is one act from its sender to its acceptance, signed and
// verified, one at a time; turn and turn about with the same bytes published
// into a stream of a server beside it and acknowledged, and with the same bytes
// on a subject that names no session, which are answered without any work: what
// a request and its answer take at least.
func BenchmarkAccepted(b *testing.B) {
	for _, setup := range setups {
		b.Run(setup.name, func(b *testing.B) {
			s := newSite(b, setup.sync, setup.tcp)
			raw, id := s.store(setup.tcp), s.session(10)
			var acts, publishes, answers spans
			for n := 12; b.Loop(); n++ {
				sender, body := haggle(n)
				envelope := s.act(id, sender, body)
				acts.time(func() { s.submit(id, sender, envelope) })
				publishes.time(func() { must(raw.Publish(context.Background(), "bench.x", envelope)) })
				answers.time(func() { must(s.people[sender].nc.Request(api.Submit(sender, "none"), envelope, time.Minute)) })
			}
			report(b, acts, publishes)
			b.ReportMetric(answers.at(.5), "answer-µs-p50")
		})
	}
}

func report(b *testing.B, acts, publishes spans) {
	b.ReportMetric(acts.at(.5), "act-µs-p50")
	b.ReportMetric(acts.at(.99), "act-µs-p99")
	b.ReportMetric(publishes.at(.5), "raw-µs-p50")
	b.ReportMetric(acts.at(.5)/publishes.at(.5), "ratio-p50")
}

// BenchmarkBusy is the same with 128 acts on their way at once, in as many
// sessions; an iteration is one such burst of acts, and one of raw publishes.
func BenchmarkBusy(b *testing.B) {
	const burst = 128
	for _, setup := range setups {
		b.Run(setup.name, func(b *testing.B) {
			s := newSite(b, setup.sync, setup.tcp)
			raw := s.store(setup.tcp)
			ids := make([]performatives.SessionID, burst)
			for i := range ids {
				ids[i] = s.session(3)
			}
			var acts, publishes spans
			for b.Loop() {
				envelopes := make([][]byte, burst)
				for i, id := range ids {
					envelopes[i] = s.act(id, beta, remark())
				}
				acts.time(func() {
					var all sync.WaitGroup
					for i, id := range ids {
						all.Go(func() { s.submit(id, beta, envelopes[i]) })
					}
					all.Wait()
				})
				publishes.time(func() {
					acks := make([]jetstream.PubAckFuture, burst)
					for i, envelope := range envelopes {
						acks[i] = must(raw.PublishAsync("bench.x", envelope))
					}
					for _, ack := range acks {
						select {
						case <-ack.Ok():
						case err := <-ack.Err():
							b.Fatal(err)
						}
					}
				})
			}
			b.ReportMetric(burst/acts.at(.5)*1e6, "acts/s")
			b.ReportMetric(burst/publishes.at(.5)*1e6, "raw/s")
			b.ReportMetric(acts.at(.5)/publishes.at(.5), "ratio-p50")
		})
	}
}

// BenchmarkLength is one act in a session of 10 acts, and, turn and turn about,
// in one of 10,000.
func BenchmarkLength(b *testing.B) {
	s := newSite(b, time.Minute, false)
	short, long := s.session(12), s.session(10_000)
	var inShort, inLong spans
	for n := 0; b.Loop(); n++ {
		if n%8 == 0 {
			short = s.session(12)
		}
		sender, body := haggle(12 + n%8)
		envelope := s.act(short, sender, body)
		inShort.time(func() { s.submit(short, sender, envelope) })
		sender, body = haggle(10_000 + n)
		envelope = s.act(long, sender, body)
		inLong.time(func() { s.submit(long, sender, envelope) })
	}
	b.ReportMetric(inShort.at(.5), "of-10-µs-p50")
	b.ReportMetric(inLong.at(.5), "of-10000-µs-p50")
	b.ReportMetric(inLong.at(.5)/inShort.at(.5), "ratio-p50")
}
