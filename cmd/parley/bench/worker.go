package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/performatives"
)

// A worker holds one session after the other, in a closed loop: submit an act, wait for its
// acceptance and its delivery, repeat.
type worker struct {
	target   *target
	pair     [2]*party
	script   []performatives.Body // of each session: the parties take turns
	id       performatives.SessionID
	acts     int            // submitted in this session
	received chan time.Time // when the act was delivered
}

func newWorker(r *target, pair [2]*party, script []performatives.Body) *worker {
	k := &worker{target: r, pair: pair, script: script, received: make(chan time.Time, 1)}
	k.begin()
	return k
}

// begin begins a new session.
func (k *worker) begin() {
	k.id, k.acts = performatives.SessionID(uuid.Must(uuid.NewV7()).String()), 0
	for _, p := range k.pair {
		p.enter(k)
	}
}

// leave stops receiving for a worker; its session stays as it is.
func (k *worker) leave() {
	for _, p := range k.pair {
		p.leave(k)
	}
}

// A roundTrip is the latency of one act.
type roundTrip struct {
	accepted, received time.Duration
	bytes              int
}

// next submits the next act, and waits for its acceptance and its delivery to the other
// party. After the last one of a session comes the first of a new one.
func (k *worker) next(ctx context.Context) (t roundTrip, err error) {
	if k.acts == len(k.script) {
		k.leave()
		k.begin()
	}
	body, sender, other := k.script[k.acts], k.pair[k.acts%2], k.pair[1-k.acts%2]
	k.acts++
	message, err := k.target.encode(sender, k.id, body)
	if err != nil {
		return t, err
	}
	start := time.Now()
	err = k.target.submit(ctx, sender, other, k.id, message)
	t.accepted, t.bytes = time.Since(start), len(message)
	if err != nil {
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

// opening is the number of acts that open a session.
const opening = 2

// Negotiation returns the acts of a whole session, which the two parties send in turns: the
// invitation, its acceptance, an offer, counter-offers, the acceptance of the last one, a
// CLOSE. Each body has about so many bytes. Without room for an offer it is closed at once.
func Negotiation(invited performatives.Agent, acts, bytes int) []performatives.Body {
	script := make([]performatives.Body, acts)
	offer := func(i int) string { return fmt.Sprint("p", i) }
	text := strings.Repeat("x", max(0, bytes-overhead))
	for i := range script {
		terms := fmt.Appendf(nil, `{"currency":"USD","pricePerMonth":%d,"region":"eu-west-1","retentionDays":30,"slaPercent":99.9}`, 400+i)
		var remarks performatives.Remarks
		remarks.Message = text
		switch i {
		case 0:
			script[i] = &performatives.ProposeBody{
				ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "log ingestion", Remarks: remarks,
				Terms: []byte(`{"participants":["` + string(invited) + `"],"maxDuration":86400000,"invitationTimeoutMs":600000}`),
			}
		case 1:
			script[i] = &performatives.AcceptBody{ReferenceID: "inv", Remarks: remarks}
		case acts - 1:
			script[i] = &performatives.CloseBody{Outcome: performatives.Completed, Summary: text}
		case opening:
			script[i] = &performatives.ProposeBody{ProposalID: offer(i), Type: "service-agreement", Subject: "log ingestion", Terms: terms, Remarks: remarks}
		case acts - 2:
			script[i] = &performatives.AcceptBody{ReferenceID: offer(i - 1), Remarks: remarks}
		default:
			script[i] = &performatives.CounterBody{ProposalID: offer(i), ReferenceID: offer(i - 1), Terms: terms, Remarks: remarks}
		}
	}
	return script
}

// overhead is about what a body has besides its text.
const overhead = 150
