package main

import (
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
)

// limitFlags limit what one principal may use.
func limitFlags(flags *pflag.FlagSet, l *broker.Limits) {
	flags.Float64Var(&l.Rate, "limit-rate", broker.DefaultRate, "acts and API calls per second and principal; -1 is unlimited")
	flags.IntVar(&l.Burst, "limit-burst", 0, "acts and API calls at once after a pause (default: a tenth of --limit-rate)")
	flags.IntVar(&l.InFlight, "limit-in-flight", broker.DefaultInFlight, "concurrent acts and API calls per principal; -1 is unlimited")
	flags.IntVar(&l.Sessions, "limit-sessions", broker.DefaultSessions, "open sessions per principal that opened them; -1 is unlimited")
	flags.IntVar(&l.Participants, "limit-participants", broker.DefaultParticipants, "principals per session, and as many delegates; -1 is unlimited")
	flags.IntVar(&l.Bytes, "limit-bytes", performatives.MaxEnvelope, "bytes per envelope, at most the protocol's limit")
	flags.IntVar(&l.SessionBytes, "limit-session-bytes", broker.DefaultSessionBytes, "bytes of a session's transcript; -1 is unlimited")
	flags.IntVar(&l.PrincipalBytes, "limit-principal-bytes", broker.DefaultPrincipalBytes, "bytes that a principal sends per minute; -1 is unlimited")
	flags.IntVar(&l.OrganisationBytes, "limit-organisation-bytes", broker.DefaultOrganisationBytes, "bytes that the principals of an organisation send per minute; -1 is unlimited")
	flags.IntVar(&l.Schemas, "limit-schemas", broker.DefaultSchemas, "terms schemas per organisation; -1 is unlimited")
	flags.IntVar(&l.Escalations, "limit-escalations", broker.DefaultEscalations, "escalations per side and session; -1 is unlimited")
}
