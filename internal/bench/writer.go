package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/audit"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/transcript"
)

// A writer writes finished sessions directly to the store, with the broker's key:
// each act is signed by its sender, validated by Step, chained and receipted, and
// its side effects are written too. It skips replies and lookups, and pipelines
// the writes. The result is what a broker leaves behind; a sample is verified as
// `parley session verify` does.
type writer struct {
	js       jetstream.JetStream
	signer   performatives.Signer
	policy   performatives.Policy
	archived bool          // write to the archive
	copies   bool          // write inbox copies
	age      time.Duration // of the sessions

	mu     sync.Mutex
	page   []sessionlist.Listed // of the archive's index, not full yet
	sample []performatives.SessionID
}

// longAgo exceeds the retention of inbox copies.
const longAgo = 30 * 24 * time.Hour

// maxPending is the number of pending acknowledgements.
const maxPending = 4096

// sampleSize is how many sessions are verified.
const sampleSize = 200

// write writes finished sessions to the store of a target's only broker.
func (o *Options) write(ctx context.Context, at *world, target, sessions int) error {
	r := at.targets[target]
	key, err := server.ReadSeed(filepath.Join(at.dir, r.name, server.BrokerSeed))
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
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(deadline),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) {
			select {
			case failed <- fmt.Errorf("%s: %w", m.Subject, err):
			default: // the first error is enough
			}
		}))
	if err != nil {
		return err
	}
	w := &writer{js: js, signer: signer, archived: o.Archived, copies: !o.Archived || o.Copies, policy: performatives.Policy{
		Format:             performatives.Format,
		InvitationTimeout:  session.DefaultInvitationTimeout.Milliseconds(),
		MaxDuration:        session.DefaultMaxDuration.Milliseconds(),
		EscalationLow:      escalation.DefaultLow.Milliseconds(),
		EscalationMedium:   escalation.DefaultMedium.Milliseconds(),
		EscalationHigh:     escalation.DefaultHigh.Milliseconds(),
		EscalationCritical: escalation.DefaultCritical.Milliseconds(),
		MaxPaused:          escalation.MaxPaused.Milliseconds(),
	}}
	if !w.copies {
		w.age = longAgo
	}
	const part = 50_000
	for done := 0; done < sessions; {
		n := min(part, sessions-done)
		g, each := errgroup.WithContext(ctx)
		g.SetLimit(maxParallel)
		for i := range n {
			g.Go(func() error {
				id, err := w.session(each, r.pairs[(done+i)%len(r.pairs)])
				if (done+i)%max(1, sessions/sampleSize) == 0 {
					w.mu.Lock()
					w.sample = append(w.sample, id)
					w.mu.Unlock()
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := w.list(); err != nil {
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
	return w.verify(ctx, at.operators[target])
}

// verify checks the sample's transcripts, and the derived data against them.
func (w *writer) verify(ctx context.Context, operator *client.Operator) error {
	for _, id := range w.sample {
		entries, err := operator.Transcript(ctx, id)
		if err != nil {
			return err
		}
		verifier := transcript.NewVerifier(w.signer.Key(), transcript.Expect{Session: id, Length: len(entries)})
		var faults []transcript.Fault
		for _, e := range entries {
			faults = append(faults, verifier.Add(e.Bytes)...)
		}
		if faults = append(faults, verifier.End()...); len(faults) > 0 {
			return fmt.Errorf("session %s does not verify: %v", id, faults)
		}
		held, err := operator.Held(ctx, id)
		if err != nil {
			return err
		}
		beside, err := audit.Session(entries, held, modes.All())
		if err != nil {
			return err
		}
		if len(beside) > 0 {
			return fmt.Errorf("derived data of session %s is wrong: %v", id, beside)
		}
	}
	return nil
}

// session writes one finished session.
func (w *writer) session(ctx context.Context, pair [2]*party) (performatives.SessionID, error) {
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	state := session.New(id, modes.All())
	known := session.Known{}
	for _, p := range pair {
		known.Add(performatives.Member{
			Agent: p.Agent, Key: p.signer.Key(), Kind: performatives.KindSystem, Authority: performatives.AuthorityPrincipal,
		})
	}
	var entries [][]byte
	for i, body := range Negotiation(pair[1].Agent, finishedActs, 0) {
		if err := ctx.Err(); err != nil {
			return id, err
		}
		var err error
		var entry []byte
		if state, entry, err = w.act(state, id, pair[i%2], body, known); err != nil {
			return id, err
		}
		entries = append(entries, entry)
	}
	if err := w.store(id, entries); err != nil {
		return id, err
	}
	row := sessionlist.Row{State: state.Phase, Participants: state.Participants(), Principals: state.Principals(), Entries: state.Next}
	if w.archived {
		return id, w.list(sessionlist.Listed{Session: id, Row: row})
	}
	data, err := json.Marshal(row)
	if err != nil {
		return id, err
	}
	return id, w.publish(api.IndexOver(id), data, nil)
}

// pageSize is how many sessions one page of the archive index lists.
const pageSize = 200

// list adds sessions to the archive index, which it writes page by page. Without
// a session it writes the last, partial page.
func (w *writer) list(more ...sessionlist.Listed) error {
	w.mu.Lock()
	w.page = append(w.page, more...)
	if len(w.page) < pageSize && len(more) > 0 || len(w.page) == 0 {
		w.mu.Unlock()
		return nil
	}
	page := w.page
	w.page = nil
	w.mu.Unlock()
	m, err := archive.IndexPage(page)
	if err != nil {
		return err
	}
	return w.publish(m.Subject, m.Data, m.Header)
}

// store writes a transcript to the transcript stream or the archive.
func (w *writer) store(id performatives.SessionID, entries [][]byte) error {
	if w.archived {
		messages, err := archive.Messages(id, entries)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := w.publish(m.Subject, m.Data, m.Header); err != nil {
				return err
			}
		}
		return nil
	}
	for _, entry := range entries {
		if err := w.publish(api.Session(id), entry, nats.Header{api.FormatHeader: {strconv.Itoa(performatives.Format)}}); err != nil {
			return err
		}
	}
	return nil
}

// act makes an entry and writes its inbox copies.
func (w *writer) act(s session.State, id performatives.SessionID, by *party, body performatives.Body, known session.Known) (_ session.State, entry []byte, err error) {
	envelope, err := performatives.Draft{
		ID: performatives.MessageID(uuid.Must(uuid.NewV7()).String()), Session: id, Timestamp: time.Now().Add(-w.age), Sender: by.Agent, Body: body,
	}.Envelope(by.signer)
	if err != nil {
		return s, nil, err
	}
	m, err := performatives.Read(envelope)
	if err != nil {
		return s, nil, err
	}
	if err := m.DecodeBody(); err != nil {
		return s, nil, err
	}
	at := time.Now().Add(-w.age)
	next, err := session.Step(s, session.Event{Message: m, At: at, Known: known, Policy: w.policy, Broker: w.signer.Key()})
	if err != nil {
		return s, nil, err
	}
	entry, stamp, err := m.Deliver(performatives.Stamp{
		Sequence: s.Next, PreviousHash: s.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}, at, next.Phase.String(), w.signer)
	if err != nil {
		return s, nil, err
	}
	next = next.Sealed(m.ID, stamp.Hash)
	if !w.copies {
		return next, entry, nil
	}
	for _, to := range next.Audience() {
		if err := w.publish(api.Inbox(to, id), entry, nats.Header{api.SequenceHeader: {strconv.FormatUint(stamp.Sequence, 10)}}); err != nil {
			return s, nil, err
		}
	}
	return next, entry, nil
}

func (w *writer) publish(subject string, data []byte, header nats.Header) error {
	_, err := w.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: data, Header: header}, jetstream.WithStallWait(deadline))
	return err
}
