package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/performatives"
)

// A worker drives one session in a closed loop: submit an act, wait for its
// acceptance and its delivery, repeat.
type worker struct {
	target   *target
	pair     [2]*party
	id       performatives.SessionID
	acts     int            // submitted, without the invitation and its acceptance
	received chan time.Time // when the act was delivered
}

func newWorker(r *target, pair [2]*party) *worker {
	k := &worker{target: r, pair: pair, id: performatives.SessionID(uuid.Must(uuid.NewV7()).String()), received: make(chan time.Time, 1)}
	for _, p := range pair {
		p.enter(k)
	}
	return k
}

// leave stops receiving for a worker; its session stays open.
func (k *worker) leave() {
	for _, p := range k.pair {
		p.leave(k)
	}
}

// envelope returns a signed act.
func (k *worker) envelope(sender *party, body performatives.Body) ([]byte, error) {
	return performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: k.id, Timestamp: time.Now(), Sender: sender.Agent, Body: body,
	}.Envelope(sender.signer)
}

// A roundTrip is the latency of one act.
type roundTrip struct {
	accepted, received time.Duration
	bytes              int
}

// submit submits an act of one party, and waits for its acceptance and its
// delivery to the other.
func (k *worker) submit(ctx context.Context, from int, body performatives.Body) (t roundTrip, err error) {
	sender, other := k.pair[from], k.pair[1-from]
	envelope, err := k.envelope(sender, body)
	if err != nil {
		return t, err
	}
	start := time.Now()
	answer, err := sender.nc.RequestWithContext(ctx, k.target.subject(sender, other, k.id), envelope)
	t.accepted, t.bytes = time.Since(start), len(envelope)
	if err != nil {
		return t, fmt.Errorf("%s: session %s: %w", k.target.name, k.id, err)
	}
	if err := k.target.accepted(answer); err != nil {
		return t, fmt.Errorf("%s: session %s: %w", k.target.name, k.id, err)
	}
	select {
	case at := <-k.received:
		t.received = at.Sub(start)
		return t, nil
	case <-ctx.Done():
		return t, fmt.Errorf("%s: session %s: an accepted act was not delivered: %w", k.target.name, k.id, ctx.Err())
	}
}

// open submits the invitation and its acceptance.
func (k *worker) open(ctx context.Context) error {
	if _, err := k.submit(ctx, 0, invitation(k.pair[1].Agent)); err != nil {
		return err
	}
	_, err := k.submit(ctx, 1, &performatives.AcceptBody{ReferenceID: "inv"})
	return err
}

// next submits the next act of the session.
func (k *worker) next(ctx context.Context) (roundTrip, error) {
	from, body := negotiationAct(k.acts)
	k.acts++
	return k.submit(ctx, from, body)
}

// maxParallel is how many workers run at once outside a measurement.
const maxParallel = 128

// openAll opens the sessions of workers in parallel.
func openAll(ctx context.Context, workers []*worker) error {
	return each(ctx, workers, (*worker).open)
}

// each calls do for all workers in parallel.
func each(ctx context.Context, workers []*worker, do func(*worker, context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxParallel)
	for _, k := range workers {
		g.Go(func() error { return do(k, ctx) })
	}
	return g.Wait()
}

func invitation(of performatives.Agent) performatives.Body {
	return &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "log ingestion",
		Terms: []byte(`{"participants":["` + string(of) + `"],"maxDuration":86400000,"invitationTimeoutMs":600000}`),
	}
}

// negotiationAct returns the n-th act of an endless negotiation: an offer, a
// counter-offer, a rejection, a remark, in turns.
func negotiationAct(n int) (from int, body performatives.Body) {
	round := n / 4
	offer, counter := fmt.Sprint("p", round), fmt.Sprint("c", round)
	terms := func(price int) []byte {
		return fmt.Appendf(nil, `{"currency":"USD","pricePerMonth":%d,"region":"eu-west-1","retentionDays":30,"slaPercent":99.9}`, price)
	}
	switch n % 4 {
	case 0:
		return 0, &performatives.ProposeBody{ProposalID: offer, Type: "service-agreement", Subject: "log ingestion", Terms: terms(round)}
	case 1:
		return 1, &performatives.CounterBody{ProposalID: counter, ReferenceID: offer, Terms: terms(round + 20), Reason: "capacity"}
	case 2:
		return 0, &performatives.RejectBody{ReferenceID: counter, Code: "budget_exceeded", Reason: "above what we may spend", Retryable: true}
	}
	return 1, &performatives.ObserveBody{Subject: "load is 80 % of what was agreed", Data: load}
}

var load = jsontext.Value(`{"eventsPerSecond":4000,"p99Ms":84,"regions":["eu-west-1","eu-central-1"],"window":"5m"}`)
