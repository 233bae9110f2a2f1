package main

import (
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
)

// limitFlags are what one principal may ask of the broker.
func limitFlags(flags *pflag.FlagSet, l *broker.Limits) {
	flags.Float64Var(&l.Rate, "limit-rate", broker.DefaultRate, "acts and api calls of one principal in a second; -1 is no limit, here and below")
	flags.IntVar(&l.Burst, "limit-burst", 0, "of them at once after a pause (default: a tenth of the rate)")
	flags.IntVar(&l.InFlight, "limit-in-flight", broker.DefaultInFlight, "of them that wait for their answer")
	flags.IntVar(&l.Sessions, "limit-sessions", broker.DefaultSessions, "sessions that one principal opened and that are not over")
	flags.IntVar(&l.Participants, "limit-participants", broker.DefaultParticipants, "principals of one session, and besides them delegates")
	flags.IntVar(&l.Bytes, "limit-bytes", performatives.MaxEnvelope, "bytes of one envelope; the protocol has no more")
	flags.IntVar(&l.Schemas, "limit-schemas", broker.DefaultSchemas, "terms schemas that the principals of one organisation register, for ever")
	flags.IntVar(&l.Escalations, "limit-escalations", broker.DefaultEscalations, "times that one side escalates in a session")
}
