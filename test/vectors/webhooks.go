package vectors

import (
	"strings"
	"time"

	"github.com/parley-asp/parley/internal/webhook"
)

// A Webhook is a call of Standard Webhooks, as it arrives.
type Webhook struct {
	Name      string `json:"name"`
	About     string `json:"about"`
	Secret    string `json:"secret"`
	Now       int64  `json:"now"` // of the receiver, in seconds of Unix
	ID        string `json:"webhook-id"`
	Timestamp string `json:"webhook-timestamp"`
	Signature string `json:"webhook-signature"`
	Body      string `json:"body"`
	Refused   string `json:"refused,omitzero"` // signature or timestamp; "" is accepted
}

// Tolerance is how old a call may be, and how far ahead.
const Tolerance = 5 * time.Minute

func webhooks() (all []Webhook, err error) {
	secret := make([]byte, 32)
	if _, err := (salts(7)).Read(secret); err != nil {
		return nil, err
	}
	c := webhook.Call{
		ID: "sha256:65a4c84cdbd36b03cee4c61ea47306261d436afbed53978b7ee4e29ca0694a24", At: start,
		Body: []byte(`{"type":"session.news","hash":"sha256:65a4c84cdbd36b03cee4c61ea47306261d436afbed53978b7ee4e29ca0694a24","at":"2026-03-07T14:30:00Z","agentId":"agent://acme.com/procurement/alpha","sessionId":"019478a3-0001-7def-8a12-000000000001","since":5}`),
	}
	h := c.Header(secret)
	good := Webhook{
		Secret: webhook.Text(secret), Now: start.Unix() + 2, ID: h.Get("webhook-id"), Timestamp: h.Get("webhook-timestamp"), Signature: h.Get("webhook-signature"), Body: string(c.Body),
	}
	add := func(name, about, refused string, change func(*Webhook)) {
		w := good
		w.Name, w.About, w.Refused = name, about, refused
		change(&w)
		all = append(all, w)
	}
	add("call", "a call as the broker makes it", "", func(*Webhook) {})
	add("two-signatures", "two signatures, of which the second is of this secret", "", func(w *Webhook) { w.Signature = "v1,AAAA " + w.Signature })
	add("nearly-old", "five minutes less a second old", "", func(w *Webhook) { w.Now = start.Add(Tolerance).Unix() - 1 })
	add("changed-byte", "one byte of the body is another", "signature", func(w *Webhook) { w.Body = strings.Replace(w.Body, `"since":5`, `"since":6`, 1) })
	add("other-id", "the id of another call", "signature", func(w *Webhook) { w.ID = "sha256:" + strings.Repeat("0", 64) })
	add("other-time", "a time that was not signed", "signature", func(w *Webhook) { w.Timestamp = "1772893801" })
	add("other-secret", "signed with another secret", "signature", func(w *Webhook) { w.Secret = webhook.Text(secret[1:]) })
	add("unknown-version", "a version of signatures that there is not", "signature", func(w *Webhook) { w.Signature = strings.Replace(w.Signature, "v1,", "v9,", 1) })
	add("replayed", "a good call, ten minutes later", "timestamp", func(w *Webhook) { w.Now += 600 })
	add("from-the-future", "a good call, ten minutes too early", "timestamp", func(w *Webhook) { w.Now -= 600 })
	return all, nil
}
