package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// A natsAPI does what the HTTP API does, and keeps its acts in one stream of the NATS server that parley embeds, with its
// accounts and group commit. A broker that takes acts from a subject, appends them to a stream and answers does at least this.
//
//	asp.agent.<token>.api.peers.register  a key
//	asp.agent.<token>.submit.<session>    an envelope → {"sequenceNumber", "hash", "receipt"}
//	_INBOX.<token>.acts                   the entries for the agent from now on
//
// With inboxes it keeps what an agent receives in a second stream, which the agent reads and acknowledges by a durable
// consumer, as it does with parley. A broker whose messages outlive a connection does at least that.
type natsAPI struct {
	inboxes bool // copies are sent to them; their acknowledgements are not waited for

	server *embedded.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	judge  *judge

	mu   sync.Mutex
	last map[performatives.SessionID]uint64 // sequence in the stream of each session's newest entry
}

const (
	actsStream = "ACTS"
	actsOf     = "acts." // and the session's id
	register   = "peers.register"
)

// actsFor follows api.Inboxes in the agents' account, and api.Wakeups in that of the broker.
func actsFor(a performatives.Agent) string { return a.Token() + ".acts" }

// serveNATS runs the API until the context ends, and prints its URL. The current folder is its store.
func serveNATS(ctx context.Context, out io.Writer, inboxes bool) error {
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		return err
	}
	authority, err := login.NewAuthority(issuer)
	if err != nil {
		return err
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	n := &natsAPI{inboxes: inboxes, last: map[performatives.SessionID]uint64{}}
	const derived = 10 * time.Second // as parley's, whose transcripts are fsynced before they are acknowledged
	if n.server, err = embedded.Start(embedded.Options{
		StoreDir: ".", Listen: "127.0.0.1:-1", Dev: true, Broker: public, Authority: authority, SyncInterval: derived,
	}); err != nil {
		return err
	}
	defer n.server.Shutdown()
	if n.nc, err = nats.Connect(n.server.ClientURL(), n.server.InProcess(), nats.Nkey(public, key.Sign)); err != nil {
		return err
	}
	defer n.nc.Close()
	if n.js, err = jetstream.New(n.nc); err != nil {
		return err
	}
	if n.stream, err = n.js.CreateStream(ctx, jetstream.StreamConfig{Name: actsStream, Subjects: []string{actsOf + "*"}, Storage: jetstream.FileStorage, AllowDirect: true}); err != nil {
		return err
	}
	if inboxes {
		if _, err := n.js.CreateStream(ctx, jetstream.StreamConfig{Name: api.InboxStream, Subjects: []string{api.AllInboxes}, Storage: jetstream.FileStorage, AllowDirect: true}); err != nil {
			return err
		}
	}
	if n.judge, err = newJudge(n); err != nil {
		return err
	}
	for subject, receive := range map[string]nats.MsgHandler{
		"asp.agent.*.api." + register: func(m *nats.Msg) { go n.register(ctx, m) },
		api.AllSubmits:                func(m *nats.Msg) { go n.submit(ctx, m) },
	} {
		if _, err := n.nc.Subscribe(subject, receive); err != nil {
			return err
		}
	}
	if err := n.nc.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, n.server.ClientURL())
	<-ctx.Done()
	return nil
}

func (n *natsAPI) register(ctx context.Context, m *nats.Msg) {
	agent, _, err := api.ParseCall(m.Subject)
	if err == nil {
		err = n.judge.register(agent, performatives.Key(m.Data))
	}
	if err == nil && n.inboxes {
		_, err = n.js.CreateConsumer(ctx, api.InboxStream, jetstream.ConsumerConfig{
			Durable: agent.Token(), FilterSubject: api.InboxOf(agent), AckPolicy: jetstream.AckExplicitPolicy,
		})
	}
	n.answer(m, struct{}{}, err)
}

func (n *natsAPI) submit(ctx context.Context, m *nats.Msg) {
	agent, _, err := api.ParseSubmit(m.Subject)
	var accepted acceptance
	if err == nil {
		accepted, err = n.judge.submit(ctx, agent, m.Data)
	}
	n.answer(m, accepted, err)
}

func (n *natsAPI) answer(m *nats.Msg, value any, err error) {
	answer := &nats.Msg{Subject: m.Reply, Header: nats.Header{}}
	var refusal *session.Refusal
	switch {
	case errors.As(err, &refusal):
		answer.Header.Set(api.ErrorCodeHeader, "422")
		value = refusal
	case err != nil:
		fmt.Fprintln(os.Stderr, "nats:", err)
		answer.Header.Set(api.ErrorCodeHeader, "500")
	}
	if answer.Data, err = json.Marshal(value); err == nil {
		err = n.nc.PublishMsg(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
	}
}

func (n *natsAPI) add(ctx context.Context, id performatives.SessionID, entry []byte, _ performatives.Stamp, _ time.Time, readers []performatives.Agent) error {
	n.mu.Lock()
	last := n.last[id]
	n.mu.Unlock()
	ack, err := n.js.Publish(ctx, actsOf+string(id), entry, jetstream.WithExpectLastSequencePerSubject(last))
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return errTaken
	}
	if err != nil {
		return err
	}
	if err := n.server.Durable(actsStream, ack.Sequence); err != nil {
		return err
	}
	n.mu.Lock()
	n.last[id] = ack.Sequence
	n.mu.Unlock()
	for _, reader := range readers {
		if n.inboxes {
			_, err = n.js.PublishAsync(api.Inbox(reader, id), entry)
		} else {
			err = n.nc.Publish(api.Wakeups+actsFor(reader), entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *natsAPI) load(ctx context.Context, id performatives.SessionID) (*session.State, error) {
	state, last := session.New(id, modes.All()), uint64(0)
	for {
		m, err := n.stream.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(actsOf+string(id)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		last = m.Sequence
		if state, err = replay(state, m.Data); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last[id] = last
	return &state, nil
}
