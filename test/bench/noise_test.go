package bench

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// BenchmarkNoise is one act of a quiet principal, alone and while another one
// sends as much as it can: with the limits that a broker has by default, and
// with none. The noise is signed acts of its own sessions, beforehand.
func BenchmarkNoise(b *testing.B) {
	for _, setup := range []struct {
		name   string
		sync   time.Duration
		limits limits.Limits
	}{
		{"limits, sync always", 0, limits.Limits{}},
		{"limits, sync 1m", time.Minute, limits.Limits{}},
		{"no limits, sync always", 0, limits.Limits{Rate: -1, InFlight: -1}},
		{"no limits, sync 1m", time.Minute, limits.Limits{Rate: -1, InFlight: -1}},
	} {
		b.Run(setup.name, func(b *testing.B) {
			s := newSite(b, setup.sync, true, func(o *server.BrokerOptions) { o.Limits = setup.limits })
			quiet := s.session(3)
			says := func(taken *spans) {
				envelope := s.act(quiet, beta, remark())
				taken.time(func() { s.submit(quiet, beta, envelope) })
			}
			var alone, beside spans
			for range 500 {
				says(&alone)
			}
			noise := s.noise(20_000)
			for b.Loop() {
				says(&beside)
			}
			accepted, refused := noise()
			b.ReportMetric(alone.at(.5), "alone-µs-p50")
			b.ReportMetric(beside.at(.5), "beside-µs-p50")
			b.ReportMetric(beside.at(.5)/alone.at(.5), "ratio-p50")
			b.ReportMetric(beside.at(.99)/alone.at(.99), "ratio-p99")
			b.ReportMetric(accepted, "noise-accepted/s")
			b.ReportMetric(refused, "noise-refused/s")
		})
	}
}

// noise makes alpha send signed acts in 64 sessions, again and again, with 512
// of them on their way: more than are let in. It returns how to stop it, which
// tells how many were accepted and refused in a second.
func (s *site) noise(acts int) (stop func() (accepted, refused float64)) {
	ids := make([]performatives.SessionID, 64)
	for i := range ids {
		ids[i] = s.session(3)
	}
	subjects, envelopes := make([]string, acts), make([][]byte, acts)
	for i := range envelopes {
		id := ids[i%len(ids)]
		subjects[i], envelopes[i] = api.Submit(alpha, id), s.act(id, alpha, remark())
	}
	nc := s.people[alpha].nc
	room := make(chan struct{}, 512)
	var yes, no atomic.Int64
	answers := nc.NewInbox()
	listening := must(nc.Subscribe(answers, func(m *nats.Msg) {
		if m.Header.Get(api.ErrorCodeHeader) == "" {
			yes.Add(1)
		} else {
			no.Add(1)
		}
		<-room
	}))
	ended := make(chan struct{})
	var sending sync.WaitGroup
	start := time.Now()
	sending.Go(func() {
		for i := 0; ; i = (i + 1) % acts {
			select {
			case room <- struct{}{}:
			case <-ended:
				return
			}
			if err := nc.PublishRequest(subjects[i], answers, envelopes[i]); err != nil {
				panic(err)
			}
		}
	})
	return func() (accepted, refused float64) {
		close(ended)
		sending.Wait()
		seconds := time.Since(start).Seconds()
		must(0, listening.Unsubscribe())
		return float64(yes.Load()) / seconds, float64(no.Load()) / seconds
	}
}
