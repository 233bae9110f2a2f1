// Package notify sends webhooks and mail about escalations and checks, with links
// into the inbox. Opening a link decides nothing (PROTOCOL.md §7).
//
//	n, err := notify.Start(ctx, notify.Options{Conn: nc, Config: c, Item: item})
//	if err != nil { … }
//	defer n.Close()
//
// Each target (a webhook, an organisation's mail) has its own durable consumer on
// the case log. So nothing is lost over a restart, no target waits for another, and
// any number of brokers share the work. Delivery is at least once, with the same id
// each time.
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
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

const (
	giveUp  = 72 * time.Hour   // retries end when an event is this old
	attempt = 20 * time.Second // timeout of one attempt
)

// delays are those of the first retries. Further ones wait as long as the last.
var delays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

// Options configure a Notifier.
type Options struct {
	Conn   *nats.Conn // to the account that holds JetStream
	Config *Config
	Item   func(ctx context.Context, id string) (api.EscalationItem, error)      // the current item, without its conversation
	Sent   func(ctx context.Context, item *api.EscalationItem, who string) error // records who was notified; may be nil
	// Insights counts an organisation's sessions for its weekly digest; nil sends none.
	Insights func(ctx context.Context, of performatives.Organisation, q api.GetInsights) (api.Insights, error)
	Looks    time.Duration    // how often it looks whether a week is over; 0 is every ten minutes
	Delays   []time.Duration  // between attempts; nil is from 1 s up to 1 h
	Log      *zap.Logger      // nil is silent
	Now      func() time.Time // nil is time.Now
}

// A Notifier runs until it is closed.
type Notifier struct {
	Options
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	checks map[string][]time.Time // of the last hour, by target, and human and organisation that asks, or session
}

// A Notification is one event of one item, for a target.
type Notification struct {
	ID    string // the same on every attempt
	Event escalation.Action
	Item  api.EscalationItem
	Link  string

	Enrolled *api.Enrolled // if set, there is no item
	Asked    *api.Asked    // likewise
	Week     *Week         // likewise

	Due *api.DueNotice // likewise
}

// A target receives notifications. send returns whom it notified, "" if there was
// nothing to send, and errPermanent if a retry cannot succeed.
type target interface {
	wants(escalation.Kind) bool
	send(ctx context.Context, note Notification, now time.Time) (who string, err error)
}

var errPermanent = errors.New("permanent failure")

// Start starts the notifier. New targets receive events from now on.
func Start(ctx context.Context, o Options) (*Notifier, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Delays == nil {
		o.Delays = delays
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	n := &Notifier{Options: o, checks: map[string][]time.Time{}}
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
	n.work.Go(func() { n.digests(running, js) })
	return n, nil
}

// Close stops the notifier. Another one, or the next start, sends what is left.
func (n *Notifier) Close() {
	n.stop()
	n.work.Wait()
}

// follow reads an organisation's events for one target.
func (n *Notifier) follow(ctx, running context.Context, js jetstream.JetStream, org performatives.Organisation, name string, to target) error {
	sum := sha256.Sum256([]byte(string(org) + "\n" + name))
	config := jetstream.ConsumerConfig{
		Durable: "notify-" + hex.EncodeToString(sum[:8]), Description: "tells " + string(org) + " by " + name,
		FilterSubjects: []string{api.CaseLogOf(org, "*"), api.PeopleOf(org, "*")}, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 3 * attempt, MaxAckPending: 1000, InactiveThreshold: 30 * 24 * time.Hour,
	}
	events, err := eventsOf(ctx, js, config)
	if err != nil {
		return err
	}
	n.work.Go(func() {
		for {
			err := n.read(running, events, to, name)
			for err != nil {
				if background.Pause(running, refollow) != nil {
					return
				}
				n.Log.Warn("notify: the events are read anew", zap.String("target", name), zap.Error(err))
				events, err = eventsOf(running, js, config)
			}
		}
	})
	return nil
}

const (
	refollow  = time.Second     // until the events of a target are read anew
	heartbeat = 5 * time.Second // of the server, while there are no events; twice as long without is an error
)

// eventsOf reads the events of a durable consumer, and makes it if it is not there.
func eventsOf(ctx context.Context, js jetstream.JetStream, config jetstream.ConsumerConfig) (jetstream.MessagesContext, error) {
	if known, err := js.Consumer(ctx, api.CaseLogStream, config.Durable); err == nil { // where it began stays
		config.DeliverPolicy, config.OptStartSeq = known.CachedInfo().Config.DeliverPolicy, known.CachedInfo().Config.OptStartSeq
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, api.CaseLogStream, config)
	if err != nil {
		return nil, err
	}
	return consumer.Messages(jetstream.PullMaxMessages(16), jetstream.PullHeartbeat(heartbeat))
}

// read processes events until there is an error: there are no heartbeats, as from a leader that died or of a consumer that
// was deleted.
func (n *Notifier) read(ctx context.Context, events jetstream.MessagesContext, to target, name string) error {
	defer events.Stop()
	defer context.AfterFunc(ctx, events.Stop)()
	for {
		m, err := events.Next()
		if err != nil {
			return err
		}
		n.process(ctx, m, to, name)
	}
}

// process sends one event, and schedules a retry if that fails.
func (n *Notifier) process(ctx context.Context, m jetstream.Msg, to target, name string) {
	log := n.Log.With(zap.String("subject", m.Subject()), zap.String("target", name))
	meta, err := m.Metadata()
	if err != nil {
		log.Error("notify", zap.Error(err))
		return
	}
	note, err := notificationOf(m, meta)
	if err != nil {
		log.Error("notify: unreadable event", zap.Error(err))
		end(log, m.Term())
		return
	}
	kind := note.Event.Kind
	if !to.wants(kind) {
		end(log, m.Ack())
		return
	}
	if about := crowding(note); about != "" && meta.NumDelivered == 1 && !n.admits(name+" "+about) {
		log.Warn("notify: too many in an hour", zap.String("about", about))
		end(log, m.Ack())
		return
	}
	one, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	err = n.send(one, note, to)
	switch {
	case err == nil:
		end(log, m.Ack())
	case ctx.Err() != nil:
		end(log, m.Nak()) // for the next notifier
	case errors.Is(err, errPermanent), n.Now().Sub(meta.Timestamp) > giveUp:
		log.Error("notify: given up", zap.String("event", string(kind)), zap.Error(err))
		end(log, m.Term())
	default:
		retry := n.Delays[min(int(meta.NumDelivered), len(n.Delays))-1] //nolint:gosec // far below 2^63
		log.Warn("notify: attempt failed", zap.String("event", string(kind)), zap.Duration("retry", retry), zap.Error(err))
		end(log, m.NakWithDelay(retry))
	}
}

// end logs a failed acknowledgement. The message is then delivered again.
func end(log *zap.Logger, err error) {
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		log.Debug("notify", zap.Error(err))
	}
}

// notificationOf decodes a message. It does not look up the item.
func notificationOf(m jetstream.Msg, meta *jetstream.MsgMetadata) (Notification, error) {
	if api.IsOfPeople(m.Subject()) {
		var of struct {
			Kind escalation.Kind `json:"kind"`
		}
		if err := json.Unmarshal(m.Data(), &of); err == nil && of.Kind == Asked {
			return asked(m.Data())
		} else if err == nil && of.Kind == Digest {
			return weekOf(m.Data())
		} else if err == nil && (of.Kind == DueSoon || of.Kind == Overdue) {
			return dueOf(m.Subject(), m.Data())
		}
		e := new(api.Enrolled)
		err := json.Unmarshal(m.Data(), e)
		return Notification{
			ID: fmt.Sprintf("enrolled-%d", meta.Sequence.Stream), Event: escalation.Action{Kind: Enrolled, At: e.At}, Enrolled: e,
		}, err
	}
	var entry struct {
		Event escalation.Action `json:"event"`
	}
	err := json.Unmarshal(m.Data(), &entry)
	id := m.Subject()[len(m.Subject())-36:] // an escalation's id is a UUID
	return Notification{ID: fmt.Sprintf("%s-%d", id, meta.Sequence.Stream), Event: entry.Event}, err
}

// Enrolled is the event that a device was enrolled to sign for a human.
const Enrolled escalation.Kind = "enrolled"

func (n *Notifier) send(ctx context.Context, note Notification, to target) (err error) {
	note.Link = n.Config.Links
	switch {
	case note.Week != nil:
		note.Link += "insights"
		if err := n.count(ctx, note.Week); err != nil {
			return err
		}
	case note.Asked != nil:
		note.Link += "checks/" + string(note.Asked.Session)
	case note.Due != nil:
		note.Link += dueLink(note.Due)
	case note.Enrolled == nil:
		id := note.ID[:36]
		if note.Item, err = n.Item(ctx, id); err != nil {
			return err
		}
		note.Link += "items/" + id
	}
	who, err := to.send(ctx, note, n.Now())
	if err != nil || who == "" || n.Sent == nil || note.Enrolled != nil || note.Asked != nil || note.Due != nil || !slices.Contains(mailEvents, note.Event.Kind) {
		return err
	}
	if err := n.Sent(ctx, &note.Item, who); err != nil { // sending it again would be worse
		n.Log.Warn("notify: sent, but not recorded", zap.String("notification", note.ID), zap.Error(err))
	}
	return nil
}

// Asked is the event that something was delegated to a human.
const Asked escalation.Kind = "asked"

// maxAsked is how many checks in an hour that one organisation asks a human for a target is
// told of: any agent may delegate, and none uses up what others have. So it is of what is due in
// one session. The page and the command line list them all.
const maxAsked = 30

// crowding is what a notification is counted with; "" is nothing.
func crowding(note Notification) string {
	switch {
	case note.Asked != nil:
		return fmt.Sprintf("%s %s", note.Asked.Human, note.Asked.From.Organisation())
	case note.Due != nil:
		return string(note.Due.Session)
	}
	return ""
}

// admits counts a notification, unless there were too many of its kind in the last hour.
func (n *Notifier) admits(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Now()
	recent := slices.DeleteFunc(n.checks[key], func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	ok := len(recent) < maxAsked
	if ok {
		recent = append(recent, now)
	}
	n.checks[key] = recent
	return ok
}

func asked(data []byte) (Notification, error) {
	a := new(api.Asked)
	err := json.Unmarshal(data, a)
	return Notification{ID: "asked-" + string(a.Delegation), Event: escalation.Action{Kind: Asked, At: a.At, By: a.From, To: a.Human}, Asked: a}, err
}
