package registry

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A hosted key is a device of an agent: the installation holds its private half, and it
// signs like a key of the agent's own. Package custody makes and seals it.

// AddHosted is Add for an agent that the installation signs for with this key.
func (r *Registry) AddHosted(ctx context.Context, card api.Card, key performatives.Key) (api.Card, error) {
	return r.add(ctx, card, r.hosted(key))
}

// Host has a key sign for an agent that is registered.
func (r *Registry) Host(ctx context.Context, a performatives.Agent, key performatives.Key) (api.Card, error) {
	return r.change(ctx, a, func(c *api.Card) error {
		c.Registry.Devices = withHosted(c.Registry.Devices, r.hosted(key))
		return nil
	})
}

// Unhost takes an agent's hosted key away: what it signs is refused from now on.
func (r *Registry) Unhost(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return r.change(ctx, a, func(c *api.Card) error {
		_, hosted := hostedKey(*c)
		switch {
		case !hosted:
			return session.Refuse(session.UnknownAgent, "%s is not hosted", a)
		case c.Key == "" && !r.o.Dev:
			return session.Refuse(session.Unauthorized, "%s has no key of its own to sign with: give it one first (parley agent rotate), or remove it", a)
		}
		c.Registry.Devices = withHosted(c.Registry.Devices)
		return nil
	})
}

// Signing is what an entry pins of a principal that signed it with this one of its keys.
func (r *Registry) Signing(m performatives.Member, key performatives.Key) performatives.Member {
	own := m.Key
	m.Key, m.Custody = key, ""
	if d, hosted := r.HostedKey(m.Agent); hosted && d == key {
		m.Custody = performatives.Hosted
		if own != key {
			m.DIDKey = own
		}
	}
	return m
}

// HostedKey is the key that the installation signs for an agent with.
func (r *Registry) HostedKey(a performatives.Agent) (performatives.Key, bool) {
	card, _ := r.Card(a)
	return hostedKey(card)
}

// HostedBesideOwn reports whether an agent has a key of its own and is hosted.
func (r *Registry) HostedBesideOwn(a performatives.Agent) bool {
	card, _ := r.Card(a)
	key, hosted := hostedKey(card)
	return hosted && card.Key != "" && card.Key != key
}

func hostedKey(c api.Card) (performatives.Key, bool) {
	i := slices.IndexFunc(c.Registry.Devices, isHosted)
	if i < 0 {
		return "", false
	}
	return c.Registry.Devices[i].Key, true
}

func isHosted(d api.Device) bool { return d.Custody == performatives.Hosted }

func (r *Registry) hosted(key performatives.Key) api.Device {
	return api.Device{Key: key, Custody: performatives.Hosted, Enrolled: r.o.Now().UTC().Format(time.RFC3339)}
}

// withHosted replaces the hosted key, if there is one, by the one that is given, if any.
func withHosted(devices []api.Device, key ...api.Device) []api.Device {
	return append(slices.DeleteFunc(slices.Clone(devices), isHosted), key...)
}

// KeysOf are the registered key of a principal and the one that the installation holds for it,
// "" for none.
func (r *Registry) KeysOf(a performatives.Agent) (own, hosted performatives.Key) {
	card, _ := r.Card(a)
	hosted, _ = r.HostedKey(a)
	return card.Key, hosted
}
