package registry

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

// A browser makes a key that never leaves it. Its human enrols the key with a code
// from an operator, and from then on the key signs like the human's own. It does not
// log in to NATS, and its human or an operator can take it away.

const (
	codeValid  = 15 * time.Minute // and a code is used only once
	codeBytes  = 10               // 80 bits, so nobody guesses a code while it is valid
	maxDevices = 16               // of one human
	maxName    = 80               // characters of a device's name
)

type enrolment struct {
	Agent      performatives.Agent `json:"agentId"`
	Expires    time.Time           `json:"expiresAt"`
	Registered string              `json:"registeredAt,omitzero"` // the human then, who may be another by now
	Key        performatives.Key   `json:"key,omitzero"`          // then; a new key ends what was made for the old one
}

// HumanEnrol answers human.enrol: it makes a code for a human.
func (r *Registry) HumanEnrol(ctx context.Context, _ api.Caller, q api.EnrolHuman) (api.Enrolment, error) {
	card, err := r.human(q.Agent)
	if err != nil {
		return api.Enrolment{}, err
	}
	raw := make([]byte, codeBytes)
	if _, err := rand.Read(raw); err != nil {
		return api.Enrolment{}, err
	}
	code := base32.StdEncoding.EncodeToString(raw)
	e := enrolment{q.Agent, r.o.Now().Add(codeValid).UTC().Truncate(time.Second), card.Registry.RegisteredAt, card.Key}
	data, err := json.Marshal(e)
	if err != nil {
		return api.Enrolment{}, err
	}
	if _, err := r.codes.Put(ctx, codeKey(code), data); err != nil {
		return api.Enrolment{}, err
	}
	return api.Enrolment{Agent: q.Agent, Code: code[:4] + "-" + code[4:8] + "-" + code[8:12] + "-" + code[12:], Expires: e.Expires}, nil
}

// human is the card of a human who is registered.
func (r *Registry) human(a performatives.Agent) (api.Card, error) {
	card, known := r.Card(a)
	switch {
	case !a.IsHuman():
		return card, session.Refuse(session.MalformedEnvelope, "/agentId: is a human, human://…").With(map[string]string{"path": "/agentId"})
	case !known:
		return card, unregistered(a)
	}
	return card, nil
}

// codeKey is the key that a code is stored under. It does not reveal the code.
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

// Redeem enrols a key, such as a browser's, with a code from human.enrol, and returns
// the human whose key it is now.
func (r *Registry) Redeem(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error) {
	if !key.Valid() {
		return "", session.RefuseSchema(session.Fault{Path: "/key", Rule: "card", Message: "key is a public user nkey (U…)"})
	}
	entry, err := r.codes.Get(ctx, codeKey(code))
	if errors.Is(err, store.ErrNoKey) {
		return "", invalidCode()
	}
	if err != nil {
		return "", err
	}
	var e enrolment
	if err := json.Unmarshal(entry.Value, &e); err != nil {
		return "", err
	}
	if !r.o.Now().Before(e.Expires) {
		return "", invalidCode()
	}
	card, err := r.human(e.Agent)
	if err != nil {
		return "", err
	}
	if e.Registered != "" && (e.Registered != card.Registry.RegisteredAt || e.Key != card.Key) { // else an earlier release made it
		return "", invalidCode()
	}
	if err := r.mayEnrol(card, key); err != nil {
		return "", err
	}
	if err := r.use(ctx, entry); err != nil {
		return "", err
	}
	device := api.Device{Key: key, Name: clip(name, maxName), Enrolled: r.o.Now().UTC().Format(time.RFC3339)}
	if err := r.tellEnrolled(ctx, e.Agent, device); err != nil {
		return "", err
	}
	_, err = r.change(ctx, e.Agent, func(c *api.Card) error {
		if err := r.mayEnrol(*c, key); err != nil {
			return err
		}
		c.Registry.Devices = append(slices.DeleteFunc(slices.Clone(c.Registry.Devices), func(d api.Device) bool { return d.Key == key }), device)
		return nil
	})
	return e.Agent, err
}

// use deletes a code, unless somebody else has just used it.
func (r *Registry) use(ctx context.Context, code store.Entry) error {
	err := r.codes.DeleteIf(ctx, code.Key, code.Revision)
	if errors.Is(err, store.ErrConflict) {
		return invalidCode()
	}
	if err != nil {
		return err
	}
	return r.codes.Sync()
}

func invalidCode() error {
	return session.Refuse(session.Unauthorized, "the code is wrong, used or expired: a code works once, within %d minutes; ask for another with 'parley human enrol'", int(codeValid.Minutes()))
}

// tellEnrolled notifies a human of a device before it can sign: the code may have
// reached somebody else.
func (r *Registry) tellEnrolled(ctx context.Context, a performatives.Agent, device api.Device) error {
	data, err := json.Marshal(api.Enrolled{Kind: "enrolled", At: r.o.Now().UTC(), Human: a, Device: device})
	if err != nil {
		return err
	}
	sequence, err := r.o.Store.Put(ctx, store.Message{Subject: api.PeopleOf(a.Organisation(), a.Token()), Data: data})
	if err != nil {
		return err
	}
	return r.o.Store.Sync(api.CaseLogStream, sequence)
}

func clip(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most])
	}
	return s
}

// mayEnrol refuses a key that has an owner, and one device too many.
func (r *Registry) mayEnrol(c api.Card, key performatives.Key) error {
	if owner, is := r.owner(key); owner != "" && (owner != c.Agent || is != asDevice) {
		return session.Refuse(session.Duplicate, "the key is somebody's already; a browser makes one of its own")
	}
	has := slices.ContainsFunc(c.Registry.Devices, func(d api.Device) bool { return d.Key == key })
	if len(c.Registry.Devices) >= maxDevices && !has {
		return session.Refuse(session.TooLarge, "%s has %d devices, and there are no more than that: take one away (parley human unenrol)", c.Agent, maxDevices)
	}
	return nil
}

// HumanUnenrol answers human.unenrol, of an operator or of the human: acts that the
// device signs are refused from now on.
func (r *Registry) HumanUnenrol(ctx context.Context, c api.Caller, q api.DeviceRef) (api.Card, error) {
	if !c.Operator {
		if q.Agent != "" && q.Agent != c.Agent {
			return api.Card{}, session.Refuse(session.Unauthorized, "a device is its human's own: agentId is not the principal of your subject")
		}
		q.Agent = c.Agent
	}
	if _, err := r.human(q.Agent); err != nil {
		return api.Card{}, err
	}
	return r.change(ctx, q.Agent, func(c *api.Card) error {
		left := slices.DeleteFunc(slices.Clone(c.Registry.Devices), func(d api.Device) bool { return d.Key == q.Key })
		if len(left) == len(c.Registry.Devices) {
			return session.Refuse(session.UnknownAgent, "%s has no device with this key", q.Agent)
		}
		c.Registry.Devices = left
		return nil
	})
}
