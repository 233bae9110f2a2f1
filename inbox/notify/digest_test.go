package notify_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Who asks for it is told once a week how sessions went, whatever is restarted and however many brokers
// there are.
func TestDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	now := time.Date(2026, 3, 9, 5, 59, 0, 0, time.UTC) // the week is over at six
	advance := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	complete := false
	options := func(o *notify.Options) {
		o.Looks = time.Millisecond
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		o.Insights = func(_ context.Context, of performatives.Organisation, q api.GetInsights) (api.Insights, error) {
			mu.Lock()
			defer mu.Unlock()
			complete = !complete // at first it is still read
			return api.Insights{Since: q.Since, Until: q.Until, Sessions: 3, Ends: api.Ends{Agreed: 2, Rejected: 1}, Complete: !complete}, nil
		}
	}
	asks := w.config(strings.NewReplacer("secretFile: hook.secret}", "secretFile: hook.secret, events: [digest, opened]}", "mail:", "mail:\n      events: [digest]").Replace(both))
	told := func(week string) {
		t.Helper()
		body, err := io.ReadAll(next(w, w.hooks).Body)
		testkit.Must(t, err)
		var p notify.DigestPayload
		testkit.Must(t, json.Unmarshal(body, &p))
		if p.ID != "digest-acme.example-"+week || p.Type != "insights.digest" || p.Insights.Ends.Agreed != 2 || !strings.Contains(p.Text, "2 agreed, 1 rejected") ||
			p.Link != "https://parley.acme.example/inbox/insights" || !strings.HasPrefix(p.Insights.Until, week+"T06:00:00") {
			t.Errorf("the webhook has %s", body)
		}
		for range 2 { // people
			if mail := next(w, w.mails); !strings.Contains(mail, "2 agreed, 1 rejected") || !strings.Contains(mail, "to "+week) {
				t.Errorf("the mail is %s", mail)
			}
		}
	}
	n, other := w.startsWith(asks, options), w.startsWith(asks, options)
	told("2026-03-02") // the newest week that is over
	advance(time.Minute)
	told("2026-03-09")
	w.acknowledged()
	n.Close()
	other.Close()
	w.startsWith(asks, options)
	advance(7 * 24 * time.Hour)
	told("2026-03-16")
	w.happens(escalation.Action{Kind: escalation.Opened, By: w.item.By})
	if r := next(w, w.hooks); !strings.HasPrefix(r.Header.Get("Webhook-Id"), id) { // and nothing was told between
		t.Errorf("a digest is told again: %s", r.Header.Get("Webhook-Id"))
	}
}

// acknowledged waits until the notifiers have noted all that they told: what they have not is told again.
func (w *world) acknowledged() {
	w.Helper()
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(w, err)
	stream, err := js.Stream(w.ctx, api.CaseLogStream)
	testkit.Must(w, err)
	testkit.Eventually(w, "what was told is acknowledged", func() bool {
		all, open := stream.ListConsumers(w.ctx), uint64(0)
		for c := range all.Info() {
			if strings.HasPrefix(c.Name, "notify-") {
				open += c.NumPending + uint64(c.NumAckPending) //nolint:gosec // it counts
			}
		}
		return all.Err() == nil && open == 0
	})
}
