package api

import (
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Enrolled is what a human is told of a device that signs for them from now on,
// on asp.people.<org>.<token>.
type Enrolled struct {
	Kind   string              `json:"kind"` // enrolled
	At     time.Time           `json:"at"`
	Human  performatives.Agent `json:"human"`
	Device Device              `json:"device"`
}

// EnrolHuman is the request of human.enrol.
type EnrolHuman struct {
	Agent performatives.Agent `json:"agentId"`
}

// Enrolment answers human.enrol: a code, good once, by which the human's browser
// has a key of its own registered.
type Enrolment struct {
	Agent   performatives.Agent `json:"agentId"`
	Code    string              `json:"code"`
	Expires time.Time           `json:"expiresAt"`
}

// DeviceRef is the request of human.unenrol; the reply is the card. A human may omit
// their own agentId.
type DeviceRef struct {
	Agent performatives.Agent `json:"agentId,omitzero"`
	Key   performatives.Key   `json:"key"`
}

// A Device is a key that a human enrolled, such as a browser's, or that the installation
// holds for an agent. It signs like the principal's own; it does not log in to NATS.
type Device struct {
	Key      performatives.Key `json:"key"`
	Name     string            `json:"name,omitzero"`
	Enrolled string            `json:"enrolledAt,omitzero"`
	Custody  string            `json:"custody,omitzero"` // hosted: the installation holds it
}
