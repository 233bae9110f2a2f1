package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Digest is the event that a week is over: its notification says how sessions went. Targets name it in
// their events, it is in no default.
const Digest escalation.Kind = "digest"

const (
	week = 7 * 24 * time.Hour
	// weekEnds is the time of a Monday, in UTC, at which a week is over.
	weekEnds   = 6 * time.Hour
	looksEvery = 10 * time.Minute
)

// A Week is what a digest is about.
type Week struct {
	Kind         escalation.Kind            `json:"kind"`
	At           time.Time                  `json:"at"`
	Organisation performatives.Organisation `json:"organisation"`
	Since        time.Time                  `json:"since"`
	Until        time.Time                  `json:"until"`
	Insights     api.Insights               `json:"-"`
}

// A DigestPayload is the body of a webhook about a week.
type DigestPayload struct {
	ID           string                     `json:"id"`
	Type         string                     `json:"type"` // insights.digest
	At           time.Time                  `json:"at"`
	Organisation performatives.Organisation `json:"organisation"`
	Insights     api.Insights               `json:"insights"`
	Text         string                     `json:"text"` // the same in sentences
	Link         string                     `json:"link"`
}

func digestPayload(note Notification) DigestPayload {
	w := note.Week
	return DigestPayload{note.ID, "insights." + string(Digest), w.At, w.Organisation, w.Insights, render.Insights(w.Insights, true), note.Link}
}

// endOfWeek is the newest end of a week that is not after a time.
func endOfWeek(at time.Time) time.Time {
	at = at.UTC().Add(-weekEnds)
	days := (int(at.Weekday()) + 6) % 7 // since Monday
	return time.Date(at.Year(), at.Month(), at.Day()-days, 0, 0, 0, 0, time.UTC).Add(weekEnds)
}

// digests looks now and then whether a week is over, until the notifier is closed.
func (n *Notifier) digests(ctx context.Context, js jetstream.JetStream) {
	var orgs []performatives.Organisation
	for org, of := range n.Config.Organisations {
		if of.Mail != nil && slices.Contains(of.Mail.Events, Digest) || slices.ContainsFunc(of.Webhooks, func(h Webhook) bool { return h.wants(Digest) }) {
			orgs = append(orgs, org)
		}
	}
	if len(orgs) == 0 || n.Insights == nil {
		return
	}
	look := time.NewTicker(cmp.Or(n.Looks, looksEvery))
	defer look.Stop()
	for {
		for _, org := range orgs {
			if err := n.endWeek(ctx, js, org); err != nil && ctx.Err() == nil {
				n.Log.Warn("notify: digest", zap.String("organisation", string(org)), zap.Error(err))
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// endWeek writes the event of the last week that is over, once: its subject says which one was the last,
// and of several brokers one writes. An installation that was off sends one digest, of the newest week.
func (n *Notifier) endWeek(ctx context.Context, js jetstream.JetStream, org performatives.Organisation) error {
	one, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	stream, err := js.Stream(one, api.CaseLogStream)
	if err != nil {
		return err
	}
	subject, until, last := api.PeopleOf(org, string(Digest)), endOfWeek(n.Now()), uint64(0)
	switch m, err := stream.GetLastMsgForSubject(one, subject); {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return err
	default:
		var before Week
		if err := json.Unmarshal(m.Data, &before); err != nil {
			return err
		}
		if last = m.Sequence; !before.Until.Before(until) {
			return nil
		}
	}
	data, err := json.Marshal(Week{Kind: Digest, At: n.Now().UTC(), Organisation: org, Since: until.Add(-week), Until: until}, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = js.PublishMsg(one, &nats.Msg{Subject: subject, Data: data}, jetstream.WithExpectLastSequencePerSubject(last))
	if failed, is := errors.AsType[*jetstream.APIError](err); is && failed.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil // another broker was faster
	}
	return err
}

// weekOf reads the event of a week, and counts it.
func weekOf(data []byte) (Notification, error) {
	w := new(Week)
	err := json.Unmarshal(data, w)
	return Notification{
		ID: fmt.Sprintf("digest-%s-%s", w.Organisation, w.Until.Format(time.DateOnly)), Event: escalation.Action{Kind: Digest, At: w.At}, Week: w,
	}, err
}

var errReading = errors.New("the sessions of the week are still being read")

// count reads how sessions of the week went.
func (n *Notifier) count(ctx context.Context, w *Week) (err error) {
	q := api.GetInsights{Since: api.Timestamp(w.Since), Until: api.Timestamp(w.Until)}
	if w.Insights, err = n.Insights(ctx, w.Organisation, q); err == nil && !w.Insights.Complete {
		err = errReading
	}
	return err
}

// digestText is the body of the mail about a week.
func digestText(note Notification) string {
	return fmt.Sprintf("%s\n\n%s\nMore is at %s\n", subject(note), render.Insights(note.Week.Insights, true), note.Link)
}
