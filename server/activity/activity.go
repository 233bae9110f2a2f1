// Package activity says what brokers do now, from their metrics at two times.
//
//	before := activity.Sample{At: time.Now(), Brokers: []activity.Families{families}}
//	…
//	now := activity.Between(before, after) // acts of each second, how long they take, what waits
package activity

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
)

// Families are the metrics of one broker, by name; nil if it did not answer.
type Families map[string]*dto.MetricFamily

// A Sample has the metrics of brokers at one time.
type Sample struct {
	At      time.Time
	Brokers []Families
}

// Between is what brokers, the same of both samples, do now. Rates and times are of what happened between the samples.
func Between(before, now Sample) api.Activity {
	p := api.Activity{
		Since:    api.Timestamp(before.At),
		Acts:     acts(now.rates(before, "parley_acts_total", "performative", "outcome")),
		Refusals: now.rates(before, "parley_acts_total", "code"), LimitsHit: now.rates(before, "parley_limits_hit_total", "limit"),
		Times:    []api.TimeTaken{},
		Sessions: now.shared("parley_sessions", "state"), Escalations: now.shared("parley_escalations", "due"),
		Obligations: now.shared("parley_obligations", "status"), Queues: now.summed("parley_queue_length", "queue"),
		Lag: now.shared("parley_lag_seconds", "of"), Stuck: now.summed("parley_stuck_sessions", "")[""],
		Servers: now.shared("parley_store_servers", "state"),
	}
	delete(p.Refusals, "none")
	for _, family := range []struct{ name, label string }{{"parley_act_seconds", "outcome"}, {"parley_act_stage_seconds", "stage"}, {"parley_fsync_seconds", ""}} {
		took := now.times(before, family.name, family.label)
		for _, of := range slices.Sorted(maps.Keys(took)) {
			p.Times = append(p.Times, api.TimeTaken{
				Of: cmp.Or(of, "fsync"), Rate: took[of].count() / now.since(before), Median: took[of].quantile(0.5), P99: took[of].quantile(0.99),
			})
		}
	}
	return p
}

// acts are rates by performative and outcome, as rows.
func acts(rates map[string]float64) []api.ActRates {
	rows := map[string]*api.ActRates{}
	for labels, rate := range rates {
		act, outcome, _ := strings.Cut(labels, " ")
		if rows[act] == nil {
			rows[act] = &api.ActRates{Performative: act}
		}
		switch outcome {
		case "accepted":
			rows[act].Accepted += rate
		case "repeated":
			rows[act].Repeated += rate
		case "refused":
			rows[act].Refused += rate
		}
	}
	sorted := []api.ActRates{}
	for _, act := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, *rows[act])
	}
	return sorted
}

// Uses is what one broker uses.
func (b Families) Uses() api.BrokerUse {
	use := api.BrokerUse{
		Ready: b.values("parley_ready")[""] == 1, Partitions: b.values("parley_partitions_owned")[""], Cached: b.values("parley_cache_sessions")[""],
		Memory: b.values("process_resident_memory_bytes")[""],
	}
	if free, known := b.values("parley_disk_bytes", "state")["free"]; known {
		use.DiskFree = &free
	}
	for version := range b.values("parley_build_info", "version") {
		use.Version = version
	}
	return use
}

// Bounds of the time that a broker's rates are of: at least first for who asks first for a while, later window to stale.
const (
	first  = time.Second
	window = 10 * time.Second
	stale  = time.Minute
)

// A Watch says what the broker does whose metrics it gathers.
type Watch struct {
	mu         sync.Mutex
	from, next Sample // an earlier sample, and a newer one that takes its place once it is a window old
}

// Now is what happens now.
func (w *Watch) Now(ctx context.Context, gather func() Families) (api.Activity, error) {
	sample := func() Sample { return Sample{time.Now(), []Families{gather()}} }
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.next.At) > stale {
		w.from = sample()
		if err := background.Pause(ctx, first); err != nil {
			return api.Activity{}, err
		}
		w.next = w.from
	}
	now := sample()
	if now.At.Sub(w.next.At) >= window {
		w.from, w.next = w.next, now
	}
	return Between(w.from, now), nil
}
