package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A Payload is what a webhook gets. It has no text of the conversation: who
// follows the link and signs in may read it.
type Payload struct {
	ID         string                     `json:"id"`   // the same however often it comes
	Type       string                     `json:"type"` // escalation. and the event's kind
	At         time.Time                  `json:"at"`
	Escalation string                     `json:"escalationId"`
	Session    performatives.SessionID    `json:"sessionId"`
	Org        performatives.Organisation `json:"organisation"`
	Asks       performatives.Agent        `json:"asks"`
	Reason     string                     `json:"reason"`
	Urgency    string                     `json:"urgency"`
	Status     string                     `json:"status"` // as it stands when this is sent
	Due        string                     `json:"due"`
	Amount     *escalation.Amount         `json:"amount,omitzero"`
	By         performatives.Agent        `json:"by,omitzero"` // absent: the clock
	To         performatives.Agent        `json:"to,omitzero"`
	Link       string                     `json:"link"`
}

// hooks follows no redirect: an address is the operator's word, not a stranger's.
var hooks = &http.Client{
	Timeout:       attempt,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (w *Webhook) wants(k escalation.Kind) bool { return slices.Contains(w.Events, k) }

// An EnrolledPayload is what a webhook gets when a device signs for a human.
type EnrolledPayload struct {
	ID     string              `json:"id"`
	Type   string              `json:"type"` // human.enrolled
	At     time.Time           `json:"at"`
	Human  performatives.Agent `json:"human"`
	Device api.Device          `json:"device"`
	Link   string              `json:"link"`
}

// payload is what is posted of an event.
func payload(news News) any {
	it, e := &news.Item, news.Event
	if of := news.Enrolled; of != nil {
		return EnrolledPayload{ID: news.ID, Type: "human." + string(e.Kind), At: e.At, Human: of.Human, Device: of.Device, Link: news.Link}
	}
	return Payload{
		ID: news.ID, Type: "escalation." + string(e.Kind), At: e.At, Escalation: string(it.ID), Session: it.Session,
		Org: it.Organisation, Asks: it.By, Reason: it.Reason, Urgency: it.Urgency, Status: it.Status, Due: due(it), Amount: it.Amount,
		By: e.By, To: e.To, Link: news.Link,
	}
}

// tell posts an event, signed: the HMAC-SHA256 by the secret over id, time and
// body, so that a receiver knows who sent it, and that it is fresh.
func (w *Webhook) tell(ctx context.Context, news News, now time.Time) (who string, err error) {
	body, err := json.Marshal(payload(news))
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "parley")
	r.Header.Set("Webhook-Id", news.ID)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", w.sign(news.ID, stamp, body))
	answer, err := hooks.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()                              //nolint:errcheck // it has been answered
	io.Copy(io.Discard, io.LimitReader(answer.Body, 4096)) //nolint:errcheck // so that the connection can be used again
	switch {
	case answer.StatusCode/100 == 2:
		return "webhook " + r.URL.Host, nil
	case answer.StatusCode == http.StatusGone: // the receiver's word that it wants no more
		return "", fmt.Errorf("%s: %w", answer.Status, errHopeless)
	default:
		return "", fmt.Errorf("answered %s", answer.Status)
	}
}

func (w *Webhook) sign(id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// due is when an answer is due from whoever is asked now.
func due(it *api.EscalationItem) string {
	if it.Due != "" {
		return it.Due
	}
	return it.Deadline
}
