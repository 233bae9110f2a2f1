// Package limits keeps an account of what each principal costs a broker.
//
//	accounts := limits.NewAccounts(limits.Limits{InFlight: 16}.WithDefaults(), time.Now)
//	mine := accounts.Of(agent)
//	release, err := mine.Hold(limits.InFlight, 1)  // what is held is given back
//	err = mine.Admit(1, len(request))              // what is known before is refused before
//	slot := accounts.Scheduler(cores, 0).Enter(agent)
//	defer slot.Release()                           // charges the time
//	mine.Spend(limits.BytesOut, len(answer))       // what is known afterwards may be owed
//
// A principal's account is its organisation's, too, and whoever is not known has that of an
// address. Units are spent, and come back within a minute; or held. Who owes what it has spent is
// refused until it owes nothing, before anything of its request is read (PROTOCOL.md §3).
//
// Each unit is charged once:
//   - Requests, the bytes that they have and requests in flight: by the broker to which they come over
//     NATS. A gateway asks on the caller's own subjects, so what it asks for its caller is
//     charged there. It charges what it answers by itself, such as each call of MCP.
//   - Bytes of answers: by the face from which they leave. Over NATS the broker charges what it
//     answers to a client, and not what it answers to a gateway; the gateway charges what it writes.
//   - CPU: while a slot of a scheduler is held, to whoever holds it. A slot counts as its part of
//     the cores: where more slots are held than there are cores, each counts for less.
//   - Items: by the broker that accepts the act of which they are copies. They are charged to the
//     pair of organisations, too, whose account no other unit has.
//   - Streams, and bytes that are buffered: by the gateway that has them.
//
// Connections to others are no unit: they wait for their turns (package internal/outbound).
//
// The fair scheduler divides slots for work: each principal has a queue of its own, and the queues
// take turns.
package limits

import (
	"maps"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Limits bound what one principal may ask of a broker. A field that is zero is the
// default beside it; one below zero is no limit. They hold under --dev too; operators
// have none. Each broker limits for itself.
type Limits struct {
	Rate         float64 // acts and api calls a second: 10,000
	Burst        int     // of them at once after a pause: a tenth of the rate
	Useless      int     // of them a second that are refused unread, or that nobody could answer, and of pulls, before its NATS connections are closed: 20,000
	InFlight     int     // of them that wait for their answer: 256
	Sessions     int     // that it opened and that are not over: 10,000
	Invitations  int     // of its organisation to another one that are not answered, in sessions: 256
	Participants int     // principals of a session, and besides them delegates: 1,001
	Bytes        int     // of an envelope: 256 KiB, which is the most
	Schemas      int     // terms schemas of its organisation, which stay for ever: 1,000
	SchemaBytes  int     // of all terms schemas of its organisation: 8 MiB
	Escalations  int     // of its side in one session: 8

	SessionBytes      int // of the transcript of a session: 32 MiB
	PrincipalBytes    int // that it sends in a minute: 64 MiB
	OrganisationBytes int // that its organisation sends in a minute: 256 MiB

	BytesOut     int           // of answers in a minute: 1 GiB
	CPU          time.Duration // of work in a minute: all of every core
	Items        int           // copies that it puts into inboxes in a minute: 6,000,000
	Buffered     int           // bytes of answers that wait to be sent: 64 MiB
	Streams      int           // that are open: 1,024
	Organisation int           // times as much of these five for its organisation: 4
}

// The defaults of Limits.
const (
	DefaultRate         = 10_000
	DefaultUseless      = 20_000
	DefaultInFlight     = 256
	DefaultSessions     = 10_000
	DefaultInvitations  = 256
	DefaultParticipants = 1001
	DefaultSchemas      = 1000
	DefaultSchemaBytes  = 8 << 20
	DefaultEscalations  = 8

	DefaultSessionBytes      = 32 << 20
	DefaultPrincipalBytes    = 64 << 20
	DefaultOrganisationBytes = 256 << 20

	DefaultBytesOut     = 1 << 30
	DefaultItems        = 6_000_000
	DefaultBuffered     = 64 << 20
	DefaultStreams      = 1024
	DefaultOrganisation = 4
)

// DefaultCPU is all the time of every core, so that one principal alone may use the machine.
func DefaultCPU() time.Duration { return time.Duration(runtime.GOMAXPROCS(0)) * time.Minute }

// AddressRate is how many requests a second an address may send without a token, and four times as many
// after a pause.
const AddressRate = 1000

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
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
		l.Rate = math.Inf(1)
	}
	or(&l.Burst, int(max(1, min(l.Rate/10, math.MaxInt32))))
	or(&l.Useless, DefaultUseless)
	or(&l.InFlight, DefaultInFlight)
	or(&l.Sessions, DefaultSessions)
	or(&l.Invitations, DefaultInvitations)
	or(&l.Participants, DefaultParticipants)
	or(&l.Schemas, DefaultSchemas)
	or(&l.Escalations, DefaultEscalations)
	or(&l.SchemaBytes, DefaultSchemaBytes)
	or(&l.SessionBytes, DefaultSessionBytes)
	or(&l.PrincipalBytes, DefaultPrincipalBytes)
	or(&l.OrganisationBytes, DefaultOrganisationBytes)
	or(&l.BytesOut, DefaultBytesOut)
	or(&l.Items, DefaultItems)
	or(&l.Buffered, DefaultBuffered)
	or(&l.Streams, DefaultStreams)
	or(&l.Organisation, DefaultOrganisation)
	switch {
	case l.CPU == 0:
		l.CPU = DefaultCPU()
	case l.CPU < 0:
		l.CPU = math.MaxInt64
	}
	if l.Bytes <= 0 || l.Bytes > performatives.MaxEnvelope {
		l.Bytes = performatives.MaxEnvelope
	}
	return l
}

// principal are the quotas of a principal.
func (l Limits) principal() [all]quota {
	requests := quota{float64(l.Burst), l.Rate}
	if math.IsInf(l.Rate, 1) {
		requests = unlimited
	}
	cpu := unlimited
	if l.CPU < math.MaxInt64 {
		cpu = quota{l.CPU.Seconds(), l.CPU.Minutes()}
	}
	return [all]quota{
		Requests: requests, BytesIn: aMinute(l.PrincipalBytes), BytesOut: aMinute(l.BytesOut), CPU: cpu, Items: aMinute(l.Items),
		InFlight: atATime(l.InFlight), Buffered: atATime(l.Buffered), Streams: atATime(l.Streams),
	}
}

// organisation are those of an organisation, whose requests and what is in flight of them are not bounded.
func (l Limits) organisation() [all]quota {
	times := float64(l.Organisation)
	if l.Organisation == math.MaxInt {
		times = math.Inf(1)
	}
	quotas := l.principal()
	for u := range quotas {
		quotas[u].most *= times
		quotas[u].perSecond *= times
	}
	quotas[Requests], quotas[InFlight], quotas[BytesIn] = unlimited, unlimited, aMinute(l.OrganisationBytes)
	return quotas
}

// address are those of an address.
func (l Limits) address() [all]quota {
	quotas := l.principal()
	quotas[Requests] = quota{4 * AddressRate, AddressRate}
	return quotas
}

// pair are those of an organisation towards another one: as many items as one principal has for everybody.
func (l Limits) pair() (quotas [all]quota) {
	for u := range quotas {
		quotas[u] = unlimited
	}
	quotas[Items] = l.principal()[Items]
	return quotas
}

var unlimited = quota{math.Inf(1), math.Inf(1)}

// aMinute is a quota that is full again after a minute.
func aMinute(n int) quota {
	if n == math.MaxInt {
		return unlimited
	}
	return quota{float64(n), float64(n) / 60}
}

func atATime(n int) quota {
	if n == math.MaxInt {
		return unlimited
	}
	return quota{most: float64(n)}
}

// limitedEvery is how often monitors hear that a principal exceeds its limits: who does
// so may ask thousands of times a second.
const limitedEvery = time.Second

// Events are when monitors were last told of whom, and how often it has happened since.
type Events struct {
	mu      sync.Mutex
	told    map[performatives.Agent]event
	sweepAt int // look for old ones when there are so many
}

type event struct {
	at   time.Time
	more int
}

// Count notes a refusal and returns how many there are to tell of; 0 is none yet.
func (e *Events) Count(a performatives.Agent, now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.told[a]
	if now.Sub(last.at) < limitedEvery {
		last.more++
		e.told[a] = last
		return 0
	}
	if len(e.told) >= e.sweepAt {
		maps.DeleteFunc(e.told, func(_ performatives.Agent, of event) bool { return now.Sub(of.at) >= limitedEvery })
		e.sweepAt = max(fewAccounts, 2*len(e.told))
	}
	if e.told == nil {
		e.told = map[performatives.Agent]event{}
	}
	e.told[a] = event{at: now}
	return last.more + 1
}
