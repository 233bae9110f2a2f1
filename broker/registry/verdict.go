package registry

import (
	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// quickWork is how many units of work a validation may take where it keeps others
// waiting: about a millisecond.
const quickWork = 512

// Verdict validates the terms of an offer against the schema that applies to them. Work
// that may take long is left to aside, which runs it where it holds up nobody else.
func (s *Schemas) Verdict(state *session.State, m *performatives.Message, aside func(work func())) session.TermsVerdict {
	if state.OffersInvitation(m) {
		if counter, ok := m.Body.(*performatives.CounterBody); ok {
			return verdict(schemas.ValidateInvitation(counter.Terms))
		}
		return session.TermsVerdict{} // the body schema of PROPOSE has validated them
	}
	offering, ok := m.Body.(performatives.Offering)
	name := state.SchemaFor(m)
	if !ok || name == "" {
		return session.TermsVerdict{}
	}
	record, registered := s.record(name)
	if !registered {
		return session.TermsVerdict{Unregistered: true}
	}
	var schema *schemas.TermsSchema
	var err error
	compile := func() { schema, err = s.compiled.get(record.Schema) }
	if s.compiled.ready(name) {
		compile()
	} else {
		aside(compile)
	}
	if err != nil { // it was registered when more was accepted
		s.o.Log.Warn("a registered terms schema cannot be used", zap.String("schema", name), zap.Error(err))
		return session.TermsVerdict{Faults: []session.Fault{{Path: "/terms", Rule: "budget", Message: "terms cannot be checked: " + err.Error()}}}
	}
	validation := schema.Begin(offering.Offer().Terms)
	if validation.Work() <= quickWork {
		return verdict(validation.Faults())
	}
	var faults []schemas.Fault
	aside(func() { faults = validation.Faults() })
	return verdict(faults)
}

func verdict(faults []schemas.Fault) (v session.TermsVerdict) {
	for _, f := range faults {
		v.Faults = append(v.Faults, session.Fault(f))
	}
	return v
}
