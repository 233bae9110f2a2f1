package api

// A Status answers broker.status: how the installation does, without anything of its deals. What a broker
// counts by itself, limits and sessions handed over, is that of the broker that answers.
type Status struct {
	Broker     string          `json:"broker"` // that answers
	At         string          `json:"at"`
	Brokers    []BrokerRow     `json:"brokers"` // by id
	Principals PrincipalCounts `json:"principals"`
	Streams    []StreamRow     `json:"streams"` // by name
	Limits     []LimitHit      `json:"limits"`  // the newest 100 of who exceeded which limit
	Overdue    Overdue         `json:"overdue"`

	// Of the broker that answers, if it counts what it does, for --monitor or --otlp.
	Use      BrokerUse `json:"use,omitzero"`
	Activity *Activity `json:"activity,omitzero"`
}

// A BrokerUse is what a broker uses.
type BrokerUse struct {
	Ready      bool     `json:"ready"`
	Version    string   `json:"version,omitzero"`
	Partitions float64  `json:"partitions"`
	Cached     float64  `json:"cachedSessions"`
	DiskFree   *float64 `json:"diskFreeBytes,omitzero"` // absent while the broker starts
	Memory     float64  `json:"memoryBytes"`
}

// An Activity is what goes on. Rates are of one second.
type Activity struct {
	Since       string             `json:"since"` // which rates and times are of
	Acts        []ActRates         `json:"acts"`
	Refusals    map[string]float64 `json:"refusals"`  // rates by code
	LimitsHit   map[string]float64 `json:"limitsHit"` // rates by limit
	Times       []TimeTaken        `json:"times"`     // of acts and their stages
	Sessions    map[string]float64 `json:"sessions"`  // by state
	Escalations map[string]float64 `json:"escalations"`
	Obligations map[string]float64 `json:"obligations"`
	Queues      map[string]float64 `json:"queues"`
	Lag         map[string]float64 `json:"lagSeconds"`
	Stuck       float64            `json:"stuckSessions"`
	Servers     map[string]float64 `json:"servers"` // of NATS that keep the transcripts, by whether they are there
}

// ActRates are those of one performative.
type ActRates struct {
	Performative string  `json:"performative"`
	Accepted     float64 `json:"accepted"`
	Repeated     float64 `json:"repeated"`
	Refused      float64 `json:"refused"`
}

// A TimeTaken is how long something took, in seconds.
type TimeTaken struct {
	Of     string  `json:"of"`
	Rate   float64 `json:"rate"`
	Median float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// A BrokerRow is one broker.
type BrokerRow struct {
	ID         string `json:"id"`
	Version    string `json:"version,omitzero"` // absent of a broker that does not say
	Heartbeat  string `json:"heartbeatAt"`
	Suspected  bool   `json:"suspected,omitzero"` // it was silent for 3 seconds
	Partitions int    `json:"partitions"`         // of 128 that it owns
	HandedOver int    `json:"handedOver"`         // sessions whose side effects its peers are asked to apply
}

// PrincipalCounts count those that are registered, by kind.
type PrincipalCounts struct {
	Agents       int `json:"agents"`
	AgentsOnline int `json:"agentsOnline"`
	Humans       int `json:"humans"`
	HumansOnline int `json:"humansOnline"`
}

// A StreamRow is one stream of JetStream.
type StreamRow struct {
	Name     string `json:"name"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	Leader   string `json:"leader,omitzero"` // absent of a server that is in no cluster
	Replicas int    `json:"replicas"`
	Fault    string `json:"fault,omitzero"` // why nothing can be stored now
}

// A LimitHit is who exceeded a limit: a principal, "organisation …", "address …" or "pair …" of two organisations.
type LimitHit struct {
	Who   string `json:"who"`
	Limit string `json:"limit"`
	At    string `json:"at"` // the last time
	Times uint64 `json:"times"`
}

// An Overdue is what should have happened.
type Overdue struct {
	Escalations     int    `json:"escalations"`         // open ones whose answer is late, of all organisations
	EscalationSince string `json:"since,omitzero"`      // when the oldest of these was due
	Timers          uint64 `json:"timers"`              // fired, and not seen to
	TimerSince      string `json:"timerSince,omitzero"` // when the oldest of these was due
	HandedOver      uint64 `json:"handedOver"`          // sessions that the broker handed over since it started
}
