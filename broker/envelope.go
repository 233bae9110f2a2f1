package broker

import (
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// read does the checks that need no session: size, JSON, envelope, sender, version,
// performative, signature.
func (b *Broker) read(id performatives.SessionID, who performatives.Agent, data []byte) (*performatives.Message, error) {
	if most := b.limits.Load().Bytes; len(data) > most {
		return nil, session.RefuseTooLarge(most, "an envelope has at most %d bytes here", most)
	}
	m, err := performatives.Read(data)
	if err != nil {
		return nil, session.RefuseUnreadable(err)
	}
	member, registered := b.parts.Registry.Member(who)
	reads := b.parts.Registry.RefuseAuditors(api.Caller{Agent: who})
	switch {
	case m.Session != id:
		return nil, session.Refuse(session.MalformedEnvelope, "/sessionId: is not the session of the subject").
			With(map[string]string{"path": "/sessionId"})
	case m.Sender != who:
		return nil, session.Refuse(session.Unauthorized, "sender.agentId is not the principal of the subject that you publish on")
	case !registered:
		return nil, session.Refuse(session.UnknownAgent, "you are not registered")
	case reads != nil:
		return nil, reads
	case m.Version != performatives.Version:
		return nil, session.Refuse(session.VersionUnsupported, "this broker speaks %s", performatives.Version).
			With(map[string]any{"supported": []string{performatives.Version}})
	case m.Performative == performatives.Unknown:
		return nil, session.Refuse(session.UnknownPerformative, "%.40q is none of the thirteen performatives", m.ActName).
			With(map[string]any{"performatives": performatives.All()})
	case m.Broker != "" && m.Broker != b.o.Signer.Key() && !b.o.Keys.Has(m.Broker):
		return nil, session.Refuse(session.SignatureInvalid, "the envelope was signed for another broker; this one is %s", b.o.Signer.Key())
	}
	return m, b.signed(m, member)
}

// signed insists on a signature by the sender's key or one of its devices. Under --dev an envelope may be unsigned,
// and a principal may have no key.
func (b *Broker) signed(m *performatives.Message, member performatives.Member) error {
	devices := b.parts.Registry.Devices(m.Sender)
	if m.Signature != "" && !performatives.WellFormedSignature(m.Signature) {
		return session.Refuse(session.SignatureInvalid, "integrity.signature is ed25519: and 128 lower-case hex digits")
	}
	if b.o.Dev && (m.Signature == "" || member.Key == "" && len(devices) == 0) {
		return nil
	}
	if m.Signature == "" {
		return session.Refuse(session.SignatureInvalid, "integrity.signature is missing: sign with your signing key")
	}
	byDevice := func(d api.Device) bool { return m.VerifySignature(d.Key) == nil }
	if err := m.VerifySignature(member.Key); err != nil && !slices.ContainsFunc(devices, byDevice) {
		signed := m.SigningBytes()
		hash := performatives.HashOf(signed)
		return session.Refuse(session.SignatureInvalid, "%s; checked were %d canonical bytes with %s", err, len(signed), hash).
			With(map[string]any{"sha256": hash, "bytes": len(signed)})
	}
	return nil
}
