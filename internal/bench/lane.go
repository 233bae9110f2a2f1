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

// A lane is one session as a closed loop: an act, its acceptance, its arrival,
// the next act.
type lane struct {
	road     *road
	pair     [2]*party
	id       performatives.SessionID
	acts     int            // said so far, without the invitation and its acceptance
	received chan time.Time // when what is on its way arrived
}

func newLane(r *road, pair [2]*party) *lane {
	l := &lane{road: r, pair: pair, id: performatives.SessionID(uuid.Must(uuid.NewV7()).String()), received: make(chan time.Time, 1)}
	for _, p := range pair {
		p.enter(l)
	}
	return l
}

// leave ends a lane; its session goes on without us.
func (l *lane) leave() {
	for _, p := range l.pair {
		p.leave(l)
	}
}

// envelope is a signed act.
func (l *lane) envelope(sender *party, body performatives.Body) ([]byte, error) {
	return performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: l.id, Timestamp: time.Now(), Sender: sender.Agent, Body: body,
	}.Envelope(sender.signer)
}

// A trip is how long one act took.
type trip struct {
	accepted, received time.Duration
	bytes              int
}

// say makes an act of one party, submits it, and waits for its acceptance and
// its arrival at the other one.
func (l *lane) say(ctx context.Context, from int, body performatives.Body) (t trip, err error) {
	sender, other := l.pair[from], l.pair[1-from]
	envelope, err := l.envelope(sender, body)
	if err != nil {
		return t, err
	}
	start := time.Now()
	answer, err := sender.nc.RequestWithContext(ctx, l.road.subject(sender, other, l.id), envelope)
	t.accepted, t.bytes = time.Since(start), len(envelope)
	if err != nil {
		return t, fmt.Errorf("%s: session %s: %w", l.road.name, l.id, err)
	}
	if err := l.road.heard(answer); err != nil {
		return t, fmt.Errorf("%s: session %s: %w", l.road.name, l.id, err)
	}
	select {
	case at := <-l.received:
		t.received = at.Sub(start)
		return t, nil
	case <-ctx.Done():
		return t, fmt.Errorf("%s: session %s: an accepted act did not arrive: %w", l.road.name, l.id, ctx.Err())
	}
}

// open invites and joins.
func (l *lane) open(ctx context.Context) error {
	if _, err := l.say(ctx, 0, invitation(l.pair[1].Agent)); err != nil {
		return err
	}
	_, err := l.say(ctx, 1, &performatives.AcceptBody{ReferenceID: "inv"})
	return err
}

// next says the next act of the session.
func (l *lane) next(ctx context.Context) (trip, error) {
	from, body := haggle(l.acts)
	l.acts++
	return l.say(ctx, from, body)
}

// atOnce is how many sessions are opened, or grow, at a time.
const atOnce = 128

// openAll opens lanes, many at a time.
func openAll(ctx context.Context, lanes []*lane) error {
	return each(ctx, lanes, (*lane).open)
}

// each does something with all lanes, many at a time.
func each(ctx context.Context, lanes []*lane, do func(*lane, context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, l := range lanes {
		g.Go(func() error { return do(l, ctx) })
	}
	return g.Wait()
}

func invitation(of performatives.Agent) performatives.Body {
	return &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "log ingestion",
		Terms: []byte(`{"participants":["` + string(of) + `"],"maxDuration":86400000,"invitationTimeoutMs":600000}`),
	}
}

// haggle is the n-th act of a negotiation that goes on for ever: an offer, a
// counter-offer, a rejection, a remark; the parties take turns.
func haggle(n int) (from int, body performatives.Body) {
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
