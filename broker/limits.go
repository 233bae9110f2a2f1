package broker

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/ratelimit"
	"github.com/parley-asp/parley/session"
)

// Limits bound what one principal may ask of a broker. A field that is zero is the
// default beside it; one below zero is no limit. They hold under --dev too; operators
// have none. Each broker limits for itself.
type Limits struct {
	Rate         float64 // acts and api calls a second: 10,000
	Burst        int     // of them at once after a pause: a tenth of the rate
	InFlight     int     // of them that wait for their answer: 256
	Sessions     int     // that it opened and that are not over: 10,000
	Participants int     // principals of a session, and besides them delegates: 1,001
	Bytes        int     // of an envelope: 256 KiB, which is the most
	Schemas      int     // terms schemas of its organisation, which stay for ever: 1,000
	SchemaBytes  int     // of all terms schemas of its organisation: 8 MiB
	Escalations  int     // of its side in one session: 8

	SessionBytes      int // of the transcript of a session: 32 MiB
	PrincipalBytes    int // that it sends in a minute: 64 MiB
	OrganisationBytes int // that its organisation sends in a minute: 256 MiB
}

// The defaults of Limits.
const (
	DefaultRate         = 10_000
	DefaultInFlight     = 256
	DefaultSessions     = 10_000
	DefaultParticipants = 1001
	DefaultSchemas      = 1000
	DefaultSchemaBytes  = 8 << 20
	DefaultEscalations  = 8

	DefaultSessionBytes      = 32 << 20
	DefaultPrincipalBytes    = 64 << 20
	DefaultOrganisationBytes = 256 << 20
)

func (l Limits) withDefaults() Limits {
	or := func(n *int, d int) {
		switch {
		case *n == 0:
			*n = d
		case *n < 0:
			*n = math.MaxInt
		}
	}
	switch {
	case l.Rate == 0:
		l.Rate = DefaultRate
	case l.Rate < 0:
		l.Rate = float64(rate.Inf)
	}
	or(&l.Burst, int(max(1, min(l.Rate/10, math.MaxInt32))))
	or(&l.InFlight, DefaultInFlight)
	or(&l.Sessions, DefaultSessions)
	or(&l.Participants, DefaultParticipants)
	or(&l.Schemas, DefaultSchemas)
	or(&l.Escalations, DefaultEscalations)
	or(&l.SchemaBytes, DefaultSchemaBytes)
	or(&l.SessionBytes, DefaultSessionBytes)
	or(&l.PrincipalBytes, DefaultPrincipalBytes)
	or(&l.OrganisationBytes, DefaultOrganisationBytes)
	if l.Bytes <= 0 || l.Bytes > performatives.MaxEnvelope {
		l.Bytes = performatives.MaxEnvelope
	}
	return l
}

// ofRequests are the limits that hold before a request is read.
func (l Limits) ofRequests() ratelimit.Limits {
	return ratelimit.Limits{Rate: l.Rate, Burst: l.Burst, InFlight: l.InFlight, PrincipalBytes: l.PrincipalBytes, OrganisationBytes: l.OrganisationBytes}
}

// afterAnEnd is when to ask again, where nobody knows when there will be room.
const afterAnEnd = 5 * time.Second

// fits refuses an act for which the transcript has no room. What ends the session, or
// the pause of one, is heard in a full one too.
func (b *Broker) fits(l *cachedSession, m *performatives.Message, entry []byte) error {
	most := b.Limits.SessionBytes
	left := max(0, most-l.bytes)
	if len(entry) <= left || m.Performative == performatives.Close {
		return nil
	}
	if body, ok := m.Body.(*performatives.InformBody); ok && l.state.Escalation() != nil {
		if _, rules := body.Ruling(); rules {
			return nil
		}
	}
	return session.Refuse(session.TooLarge, "a session has at most %d bytes here, this act takes %d, and %d are left: send less, or CLOSE and open another", most, len(entry), left).
		With(map[string]int{"maxBytes": most, "bytesLeft": left})
}

// roomFor limits the participants of a session, and the sessions that an inviter has open, and
// refuses what nobody could decide. It comes last: only an act that would be accepted is
// limited. leave says that the act was appended, or was not.
func (b *Broker) roomFor(l *cachedSession, m *performatives.Message, next *session.State) (leave func(), err error) {
	most := b.Limits.Participants
	if err := b.mayConfirm(l, m, next); err != nil {
		return nil, err
	}
	switch m.Performative {
	case performatives.Propose:
		if l.state.Phase != session.Idle {
			break
		}
		if n := next.Principals(); n > most {
			return nil, tooMany("principals", n, most)
		}
		release, open, ok := b.list.Reserve(m.Sender, b.Limits.Sessions)
		if !ok {
			return nil, api.RateLimited("sessions", afterAnEnd, "%d sessions that you opened are not over, and there are no more than that at a time: CLOSE some", open)
		}
		return release, nil
	case performatives.Delegate:
		if n := len(next.Participants()) - next.Principals(); n > most && len(next.Participants()) > len(l.state.Participants()) {
			return nil, tooMany("delegates and approvers", n, most)
		}
	case performatives.Escalate:
		return func() {}, b.mayEscalate(next)
	default:
	}
	return func() {}, nil
}

// tooMany is final: the same act will not be accepted later.
func tooMany(who string, n, most int) error {
	return session.Refuse(session.TooLarge, "the session would have %d %s; here it has at most %d", n, who, most).
		With(map[string]int{"maxParticipants": most})
}
