// Package notify tells people and their tools what happens to escalations, by
// webhooks and mail with links into the inbox; opening a link decides nothing
// (PROTOCOL.md §7).
//
//	n, err := notify.Start(ctx, notify.Options{Conn: nc, Config: c, Item: item})
//	if err != nil { … }
//	defer n.Close()
//
// Each target (a webhook, an organisation's mail) reads the events of the desk
// stream by a durable consumer of its own. So nothing is lost over a restart, no
// target waits for another, and any number of brokers share the work. An event
// is told at least once; its id is the same each time.
package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// How long a target that fails is tried again, and how long after the first
// failures; then as the last, until GiveUp.
const (
	GiveUp  = 72 * time.Hour
	attempt = 20 * time.Second // one try may take so long
)

var pauses = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

// Options say what is told, and where from.
type Options struct {
	Conn   *nats.Conn // to the account that holds JetStream
	Config *Config
	Item   func(ctx context.Context, id string) (api.EscalationItem, error)      // as it stands, without its conversation
	Told   func(ctx context.Context, item *api.EscalationItem, who string) error // notes it; nil is nobody
	Pauses []time.Duration                                                       // between tries; nil is up to an hour
	Log    *zap.Logger                                                           // nil is silent
	Now    func() time.Time                                                      // nil is time.Now
}

// A Notifier runs until it is closed.
type Notifier struct {
	Options
	stop context.CancelFunc
	work sync.WaitGroup
}

// News is one event of one item, on its way to a target.
type News struct {
	ID    string // the same however often it is told
	Event escalation.Event
	Item  api.EscalationItem
	Link  string

	Enrolled *api.Enrolled // instead of an item and what happened to it
}

// A target is told, and says who that was; "" is nobody, for there was nothing
// to tell. errHopeless is for what no later try will change.
type target interface {
	wants(escalation.Kind) bool
	tell(ctx context.Context, news News, now time.Time) (who string, err error)
}

var errHopeless = errors.New("no later try will change that")

// Start starts telling; targets that are new hear of what happens from now on.
func Start(ctx context.Context, o Options) (*Notifier, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pauses == nil {
		o.Pauses = pauses
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	n := &Notifier{Options: o}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	for org, of := range o.Config.Organisations {
		for h := range of.Webhooks {
			hook := &of.Webhooks[h]
			err = errors.Join(err, n.follow(ctx, running, js, org, "hook "+hook.URL, hook))
		}
		if of.Mail != nil {
			err = errors.Join(err, n.follow(ctx, running, js, org, "mail", &post{of.Mail, o.Config.SMTP}))
		}
	}
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("notify: %w", err)
	}
	return n, nil
}

// Close stops telling; what is not told yet is, by whoever is next.
func (n *Notifier) Close() {
	n.stop()
	n.work.Wait()
}

// follow reads the events of an organisation for one target.
func (n *Notifier) follow(ctx, running context.Context, js jetstream.JetStream, org performatives.Organisation, name string, to target) error {
	sum := sha256.Sum256([]byte(string(org) + "\n" + name))
	consumer, err := js.CreateOrUpdateConsumer(ctx, api.DeskStream, jetstream.ConsumerConfig{
		Durable: "notify-" + hex.EncodeToString(sum[:8]), Description: "tells " + string(org) + " by " + name,
		FilterSubjects: []string{api.DeskOf(org, "*"), api.PeopleOf(org, "*")}, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 3 * attempt, MaxAckPending: 1000, InactiveThreshold: 30 * 24 * time.Hour,
	})
	if err != nil {
		return err
	}
	pulls, err := consumer.Messages(jetstream.PullMaxMessages(16))
	if err != nil {
		return err
	}
	n.work.Go(func() {
		for {
			m, err := pulls.Next()
			if err != nil {
				return // stopped
			}
			n.handle(running, m, to, name)
		}
	})
	n.work.Go(func() {
		<-running.Done()
		pulls.Stop()
	})
	return nil
}

// handle tells one event, and says when it is to be told again if that failed.
func (n *Notifier) handle(ctx context.Context, m jetstream.Msg, to target, name string) {
	log := n.Log.With(zap.String("subject", m.Subject()), zap.String("target", name))
	meta, err := m.Metadata()
	if err != nil {
		log.Error("notify", zap.Error(err))
		return
	}
	news, err := newsOf(m, meta)
	if err != nil {
		log.Error("notify: an event that cannot be read", zap.Error(err))
		end(log, m.Term())
		return
	}
	kind := news.Event.Kind
	if !to.wants(kind) {
		end(log, m.Ack())
		return
	}
	one, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	err = n.tell(one, news, to)
	switch {
	case err == nil:
		end(log, m.Ack())
	case ctx.Err() != nil:
		end(log, m.Nak()) // whoever is next
	case errors.Is(err, errHopeless), n.Now().Sub(meta.Timestamp) > GiveUp:
		log.Error("notify: given up", zap.String("event", string(kind)), zap.Error(err))
		end(log, m.Term())
	default:
		again := n.Pauses[min(int(meta.NumDelivered), len(n.Pauses))-1] //nolint:gosec // far below 2^63
		log.Warn("notify: tried in vain", zap.String("event", string(kind)), zap.Duration("again", again), zap.Error(err))
		end(log, m.NakWithDelay(again))
	}
}

// end is the last word on a message; if it is lost, the message comes again.
func end(log *zap.Logger, err error) {
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		log.Debug("notify", zap.Error(err))
	}
}

// newsOf is what a message says, without the item as it stands.
func newsOf(m jetstream.Msg, meta *jetstream.MsgMetadata) (News, error) {
	if api.IsOfPeople(m.Subject()) {
		e := new(api.Enrolled)
		err := json.Unmarshal(m.Data(), e)
		return News{
			ID: fmt.Sprintf("enrolled-%d", meta.Sequence.Stream), Event: escalation.Event{Kind: Enrolled, At: e.At}, Enrolled: e,
		}, err
	}
	var entry struct {
		Event escalation.Event `json:"event"`
	}
	err := json.Unmarshal(m.Data(), &entry)
	id := m.Subject()[len(m.Subject())-36:] // an escalation is named by a UUID
	return News{ID: fmt.Sprintf("%s-%d", id, meta.Sequence.Stream), Event: entry.Event}, err
}

// Enrolled is the event that a device signs for a human from now on.
const Enrolled escalation.Kind = "enrolled"

func (n *Notifier) tell(ctx context.Context, news News, to target) (err error) {
	news.Link = n.Config.Links
	if news.Enrolled == nil {
		id := news.ID[:36]
		if news.Item, err = n.Item(ctx, id); err != nil {
			return err
		}
		news.Link += "items/" + id
	}
	who, err := to.tell(ctx, news, n.Now())
	if err != nil || who == "" || n.Told == nil || news.Enrolled != nil || !slices.Contains(toPeople, news.Event.Kind) {
		return err
	}
	if err := n.Told(ctx, &news.Item, who); err != nil { // telling again would be worse
		n.Log.Warn("notify: not noted", zap.String("news", news.ID), zap.Error(err))
	}
	return nil
}
