package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A human's browser has a key of its own, which never leaves it. The human
// enrols it once, with a code that an operator made; from then on it signs like
// the human's own. It does not log in to NATS, and an operator takes it away.

const (
	enrolWithin = 15 * time.Minute // a code is good so long, and once
	codeBytes   = 10               // 80 bits: nobody guesses one in that time
	maxDevices  = 16               // of one human
)

// enrolments are codes that nobody has used yet, by their hash.
type enrolments struct{ bucket *store.Bucket }

type enrolment struct {
	Agent   performatives.Agent `json:"agentId"`
	Expires time.Time           `json:"expiresAt"`
}

func (b *Broker) openEnrolments(ctx context.Context) error {
	bucket, err := b.store.Bucket(ctx, api.EnrolBucket, "codes by which browsers enrol", 2*enrolWithin)
	b.enrolments = &enrolments{bucket}
	return err
}

// humanEnrol makes a code for a human.
func (b *Broker) humanEnrol(ctx context.Context, _ api.Caller, q api.EnrolHuman) (api.Enrolment, error) {
	if _, err := b.human(q.Agent); err != nil {
		return api.Enrolment{}, err
	}
	raw := make([]byte, codeBytes)
	if _, err := rand.Read(raw); err != nil {
		return api.Enrolment{}, err
	}
	code := base32.StdEncoding.EncodeToString(raw)
	e := enrolment{q.Agent, b.Now().Add(enrolWithin).UTC().Truncate(time.Second)}
	data, err := json.Marshal(e)
	if err != nil {
		return api.Enrolment{}, err
	}
	if _, err := b.enrolments.bucket.Put(ctx, codeKey(code), data); err != nil {
		return api.Enrolment{}, err
	}
	return api.Enrolment{Agent: q.Agent, Code: code[:4] + "-" + code[4:8] + "-" + code[8:12] + "-" + code[12:], Expires: e.Expires}, nil
}

// human is the card of a human who is registered.
func (b *Broker) human(a performatives.Agent) (api.Card, error) {
	card, known := b.registry.Card(a)
	switch {
	case !a.IsHuman():
		return card, session.Refuse(session.MalformedEnvelope, "/agentId: is a human://…: only humans have browsers").With(map[string]string{"path": "/agentId"})
	case !known:
		return card, session.Refuse(session.UnknownAgent, "%.300s is not registered", a)
	}
	return card, nil
}

// codeKey is where a code is kept: what is stored does not tell the code.
func codeKey(code string) string {
	plain := strings.ToUpper(strings.Map(func(c rune) rune {
		if c == '-' || c == ' ' {
			return -1
		}
		return c
	}, code))
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}

// Redeem enrols a key, such as a browser's, with a code from human.enrol, and
// tells whose it is from now on. A code is good once.
func (b *Broker) Redeem(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error) {
	noCode := session.Refuse(session.Unauthorized, "the code is not, or no longer, good: a code can be used once, within %d minutes; ask for another (parley human enrol)", int(enrolWithin.Minutes()))
	if !key.Valid() {
		return "", session.RefuseSchema(session.Fault{Path: "/key", Rule: "card", Message: "key is a public user nkey (U…)"})
	}
	entry, err := b.enrolments.bucket.Get(ctx, codeKey(code))
	if errors.Is(err, store.ErrNoKey) {
		return "", noCode
	}
	if err != nil {
		return "", err
	}
	var e enrolment
	if err := json.Unmarshal(entry.Value, &e); err != nil {
		return "", err
	}
	if !b.Now().Before(e.Expires) {
		return "", noCode
	}
	card, err := b.human(e.Agent)
	if err != nil {
		return "", err
	}
	if err := b.mayEnrol(card, key); err != nil {
		return "", err
	}
	switch err := b.enrolments.bucket.DeleteIf(ctx, entry.Key, entry.Revision); {
	case errors.Is(err, store.ErrConflict):
		return "", noCode // somebody was faster
	case err != nil:
		return "", err
	}
	if err := b.enrolments.bucket.Sync(); err != nil {
		return "", err
	}
	device := api.Device{Key: key, Name: clip(name, 80), Enrolled: b.Now().UTC().Format(time.RFC3339)}
	if err := b.tellEnrolled(ctx, e.Agent, device); err != nil {
		return "", err
	}
	_, err = b.registry.change(ctx, e.Agent, func(c *api.Card) error {
		if err := b.mayEnrol(*c, key); err != nil {
			return err
		}
		c.Registry.Devices = append(slices.DeleteFunc(c.Registry.Devices, func(d api.Device) bool { return d.Key == key }), device)
		return nil
	})
	if err == nil {
		err = b.keep()
	}
	return e.Agent, err
}

// tellEnrolled has a human told of a device before it is theirs: a code can go to
// somebody else, and nobody is to sign for a human who cannot know it.
func (b *Broker) tellEnrolled(ctx context.Context, a performatives.Agent, device api.Device) error {
	data, err := json.Marshal(api.Enrolled{Kind: "enrolled", At: b.Now().UTC(), Human: a, Device: device})
	if err != nil {
		return err
	}
	if _, err := b.store.Put(ctx, store.Message{Subject: api.PeopleOf(a.Organisation(), a.Token()), Data: data}); err != nil {
		return err
	}
	return b.store.Sync(api.DeskStream, len(data))
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

// mayEnrol refuses a key that is somebody's already, and one too many.
func (b *Broker) mayEnrol(c api.Card, key performatives.Key) error {
	if owner, taken := b.registry.Owner(key); taken && owner != c.Agent || key == c.Key {
		return session.Refuse(session.Duplicate, "the key is somebody's already; a browser makes one of its own")
	}
	has := slices.ContainsFunc(c.Registry.Devices, func(d api.Device) bool { return d.Key == key })
	if len(c.Registry.Devices) >= maxDevices && !has {
		return session.Refuse(session.TooLarge, "%s has %d devices, and there are no more than that: take one away (parley human unenrol)", c.Agent, maxDevices)
	}
	return nil
}

// humanUnenrol takes a device's key away: nothing that it signs is heard any more.
func (b *Broker) humanUnenrol(ctx context.Context, _ api.Caller, q api.DeviceRef) (api.Card, error) {
	return b.registry.change(ctx, q.Agent, func(c *api.Card) error {
		left := slices.DeleteFunc(slices.Clone(c.Registry.Devices), func(d api.Device) bool { return d.Key == q.Key })
		if len(left) == len(c.Registry.Devices) {
			return session.Refuse(session.UnknownAgent, "%s has no device with this key", q.Agent)
		}
		c.Registry.Devices = left
		return nil
	})
}

// Devices are the keys that a human's browsers sign with.
func (b *Broker) Devices(a performatives.Agent) []api.Device {
	card, _ := b.registry.Card(a)
	return card.Registry.Devices
}

// Owner is whose key it is, to log in with or a device's.
func (r *registry) Owner(k performatives.Key) (performatives.Agent, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.keys[k]
	if !ok {
		a, ok = r.devices[k]
	}
	if !ok && (k == r.b.Signer.Key() || slices.Contains(r.b.Reserved, k)) {
		return performatives.BrokerAgent(k), true // the installation's own, and so nobody's
	}
	return a, ok
}

// holdDevices keeps the devices of a card instead of those of the one before.
func (r *registry) holdDevices(old, c api.Card) {
	for _, d := range old.Registry.Devices {
		delete(r.devices, d.Key)
	}
	for _, d := range c.Registry.Devices {
		r.devices[d.Key] = c.Agent
	}
}

// SignedByDevice tells whether one of the sender's devices signed.
func (r *registry) SignedByDevice(m *performatives.Message) bool {
	card, _ := r.Card(m.Sender)
	return slices.ContainsFunc(card.Registry.Devices, func(d api.Device) bool { return m.VerifySignature(d.Key) == nil })
}
