package performatives

// InvitationTerms are the terms of a PROPOSE session-invitation (PROTOCOL.md
// §5). All are optional; unknown ones are kept.
type InvitationTerms struct {
	Purpose             string          `json:"purpose,omitzero" jsonschema:"description=What the session is for"`
	Schemas             []string        `json:"schemas,omitzero" jsonschema:"format=asp-id,description=The terms schemas that offers may name"`
	Participants        []Agent         `json:"participants,omitzero" jsonschema:"format=asp-principal,description=Who is invited besides the recipient"`
	Mode                string          `json:"mode,omitzero" jsonschema:"format=asp-id,description=By default asp/1"`
	MaxDuration         int64           `json:"maxDuration,omitzero" jsonschema:"minimum=1,maximum=2592000000,description=Milliseconds\\, from the acceptance on\\, by default 24 h\\, at most 30 d"`
	InvitationTimeoutMs int64           `json:"invitationTimeoutMs,omitzero" jsonschema:"minimum=1,maximum=2592000000,description=Milliseconds\\, by default 24 h"`
	Policy              Object          `json:"policy,omitzero" jsonschema:"type=object,description=Parameters of the mode"`
	SeedAssessment      *SeedAssessment `json:"seedAssessment,omitzero" jsonschema:"description=What a matchmaker thought of the match\\, shown to both sides"`
}

// A SeedAssessment is what a matchmaker thought of the match; shown to both
// sides (bilateral/1).
type SeedAssessment struct {
	Score       *float64    `json:"score,omitzero" jsonschema:"minimum=0,maximum=100"`
	Reasoning   string      `json:"reasoning,omitzero"`
	ValencyRole string      `json:"valencyRole,omitzero"`
	Actors      []SeedActor `json:"actors,omitzero"`
}

// A SeedActor is a user and the role that a matchmaker saw for them.
type SeedActor struct {
	UserID string `json:"userId"`
	Role   string `json:"role"`
}
