package performatives

// QueryBody asks for information.
type QueryBody struct {
	QueryID    string `json:"queryId" jsonschema:"format=asp-id,description=The query's own id"`
	QueryType  string `json:"queryType" jsonschema:"minLength=1,description=What kind of question"`
	Subject    string `json:"subject" jsonschema:"minLength=1,description=What it is about"`
	Parameters Object `json:"parameters,omitzero" jsonschema:"type=object,description=Whatever the query needs"`
}

var _ = enter("QUERY", Information, func() Body { return new(QueryBody) })

// Act is QUERY.
func (*QueryBody) Act() Performative { return Query }

// ID is the queryId.
func (b *QueryBody) ID(MessageID) string { return b.QueryID }

// SetID sets the queryId.
func (b *QueryBody) SetID(id string) { b.QueryID = id }

// Refers is "": a question is about nothing that was said before.
func (*QueryBody) Refers() string { return "" }

// Text is how the act reads.
func (b *QueryBody) Text() Text {
	return Text{
		Line:  words("", Word{Kind: OwnID, Text: b.QueryID}, Word{Text: b.QueryType}, Word{Kind: Subject, Lead: ": ", Text: b.Subject}),
		Below: below(Data{Value: b.Parameters}),
	}
}
