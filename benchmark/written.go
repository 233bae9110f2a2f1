package benchmark

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/node"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// A writer stores sessions as the broker would have, with its key but without
// asking it: each act is signed by its party, judged by Step, sealed with a
// receipt and chained, and what follows from it is written beside it. Nobody is
// answered, nothing is looked up, and hundreds of acts are acknowledged at once.
// Of a session that is over a broker leaves the same behind.
type writer struct {
	js     jetstream.JetStream
	signer performatives.Signer
	policy performatives.Policy
}

// writing is how many messages are on their way at once.
const writing = 4096

// write stores finished sessions in the store of a road's one broker.
func (o *Options) write(ctx context.Context, dir string, r *road, sessions int) error {
	key, err := node.ReadSeed(filepath.Join(dir, r.name, node.BrokerSeed))
	if err != nil {
		return err
	}
	signer, err := performatives.NewSigner(key)
	if err != nil {
		return err
	}
	login, err := nkeyLogin(key)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(r.pairs[0][0].nc.ConnectedUrl(), login)
	if err != nil {
		return err
	}
	defer nc.Close()
	failed := make(chan error, 1)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(writing), jetstream.WithPublishAsyncTimeout(patience),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) {
			select {
			case failed <- fmt.Errorf("%s: %w", m.Subject, err):
			default: // the first says enough
			}
		}))
	if err != nil {
		return err
	}
	w := &writer{js: js, signer: signer, policy: performatives.Policy{
		Format:             performatives.Format,
		InvitationTimeout:  session.DefaultInvitationTimeout.Milliseconds(),
		MaxDuration:        session.DefaultMaxDuration.Milliseconds(),
		EscalationLow:      escalation.DefaultLow.Milliseconds(),
		EscalationMedium:   escalation.DefaultMedium.Milliseconds(),
		EscalationHigh:     escalation.DefaultHigh.Milliseconds(),
		EscalationCritical: escalation.DefaultCritical.Milliseconds(),
		MaxPaused:          escalation.MaxPaused.Milliseconds(),
	}}
	const part = 50_000
	for done := 0; done < sessions; {
		n := min(part, sessions-done)
		g, each := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for i := range n {
			g.Go(func() error { return w.session(each, r.pairs[(done+i)%len(r.pairs)]) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		select {
		case <-js.PublishAsyncComplete():
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-failed:
			return err
		default:
		}
		done += n
		o.say("%s: %d finished sessions", r.name, done)
	}
	return nil
}

// session writes one: an invitation, its acceptance, a CLOSE, as fill has it.
func (w *writer) session(ctx context.Context, pair [2]*party) error {
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	state := session.New(id, modes.All())
	known := session.Known{}
	for _, p := range pair {
		known[p.Agent] = performatives.Member{
			Agent: p.Agent, Key: p.signer.Key(), Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal,
		}
	}
	for _, act := range finished(pair) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if state, err = w.act(state, id, act, known); err != nil {
			return err
		}
	}
	line, err := json.Marshal(map[string]any{"state": state.Phase, "participants": state.Roll(), "entries": state.Next})
	if err != nil {
		return err
	}
	return w.publish(wire.IndexOver(id), line, nil)
}

// act writes an entry and its inbox copies.
func (w *writer) act(s session.State, id performatives.SessionID, a said, known session.Known) (session.State, error) {
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: time.Now(), Sender: a.by.Agent, Body: a.body,
	}.Envelope(a.by.signer)
	if err != nil {
		return s, err
	}
	m, err := performatives.Read(envelope)
	if err != nil {
		return s, err
	}
	if err := m.DecodeBody(); err != nil {
		return s, err
	}
	at := time.Now()
	next, err := session.Step(s, session.Event{Message: m, At: at, Known: known, Policy: w.policy, Broker: w.signer.Key()})
	if err != nil {
		return s, err
	}
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: s.Next, PreviousHash: s.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), w.signer)
	if err != nil {
		return s, err
	}
	next = next.Sealed(m.ID, stamp.Hash)
	if err := w.publish(wire.Session(id), entry, nats.Header{wire.FormatHeader: {strconv.Itoa(performatives.Format)}}); err != nil {
		return s, err
	}
	for _, to := range next.Audience() {
		if err := w.publish(wire.Inbox(to, id), entry, nats.Header{wire.SequenceHeader: {strconv.FormatUint(stamp.Sequence, 10)}}); err != nil {
			return s, err
		}
	}
	return next, nil
}

func (w *writer) publish(subject string, data []byte, header nats.Header) error {
	_, err := w.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: data, Header: header}, jetstream.WithStallWait(patience))
	return err
}
