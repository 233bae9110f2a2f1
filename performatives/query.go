package performatives

// QueryBody asks for information.
type QueryBody struct {
	QueryID    string `json:"queryId" jsonschema:"format=asp-id,description=The query's own id"`
	QueryType  string `json:"queryType" jsonschema:"minLength=1,description=What kind of question"`
	Subject    string `json:"subject" jsonschema:"minLength=1,description=What it is about"`
	Parameters Object `json:"parameters,omitzero" jsonschema:"type=object,description=Whatever the query needs"`
}

// Act is QUERY.
func (*QueryBody) Act() Performative { return Query }

var _ = enter(func() Body { return new(QueryBody) })
