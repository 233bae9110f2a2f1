package performatives

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (w fields) message() (*Message, error) {
	missing := func(path string) error { return malformed(path, "is missing") }
	switch {
	case w.version == nil:
		return nil, missing("/version")
	case w.id == nil:
		return nil, missing("/messageId")
	case w.session == nil:
		return nil, missing("/sessionId")
	case w.timestamp == nil:
		return nil, missing("/timestamp")
	case w.sender == nil:
		return nil, missing("/sender/agentId")
	case w.act == nil:
		return nil, missing("/performative")
	case w.body == nil:
		return nil, missing("/content/body")
	case w.body.Kind() != '{':
		return nil, malformed("/content/body", "want an object")
	case w.context != nil && w.context.Kind() != '[':
		return nil, malformed("/content/context", "want a list")
	}
	m := &Message{Version: text(w.version), ActName: text(w.act), RawBody: w.body, Context: w.context}
	m.Performative = Parse(m.ActName)
	var err error
	if m.ID, err = ParseMessageID(text(w.id)); err != nil {
		return nil, malformed("/messageId", "%s", err)
	}
	if m.Session, err = ParseSessionID(text(w.session)); err != nil {
		return nil, malformed("/sessionId", "%s", err)
	}
	if m.Timestamp, err = parseTime(text(w.timestamp)); err != nil {
		return nil, malformed("/timestamp", "want an RFC 3339 time, such as 2026-03-07T14:30:00.000Z")
	}
	if m.Sender, err = parseSender(text(w.sender)); err != nil {
		return nil, malformed("/sender/agentId", "%s", err)
	}
	if m.Recipient, err = recipient(w.recipient); err != nil {
		return nil, err
	}
	m.Broker = namedBroker(w.broker)
	if w.constraints != nil {
		if m.Constraints, err = w.constraints.valid(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// parseSender also takes a broker, whose entries Read meets in transcripts; a
// principal's subject never matches one.
func parseSender(uri string) (Agent, error) {
	if a := Agent(uri); a.IsBroker() && Key(strings.TrimPrefix(uri, brokerScheme)).Valid() {
		return a, nil
	}
	return ParseAgent(uri)
}

// namedBroker is the broker that an envelope is for. A member of this name that
// is no key is somebody's own and says nothing.
func namedBroker(v jsontext.Value) Key {
	if v.Kind() != '"' {
		return ""
	}
	if k := Key(strings.TrimPrefix(text(v), brokerScheme)); k.Valid() {
		return k
	}
	return ""
}

// parseTime takes RFC 3339 as it is written: time.Parse also accepts a comma
// before the fraction, hours of one digit and offsets beyond 23:59. Years are 1
// to 9999 in UTC, so that a time can always be written again; the leap second
// 23:59:60 is no time to a Go program and is refused.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, err
	}
	if s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",") {
		return time.Time{}, errTime
	}
	if zone := s[len(s)-len("+15:04"):]; s[len(s)-1] != 'Z' && (zone[1:3] > "23" || zone[4:] > "59") {
		return time.Time{}, errTime
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return time.Time{}, errTime
	}
	return t, nil
}

var errTime = errors.New("want an RFC 3339 time of the years 1 to 9999")

// recipient is a URI, or an object that names one.
func recipient(v jsontext.Value) (Agent, error) {
	path := "/recipient"
	var uri string
	switch v.Kind() {
	case 0, 'n':
		return "", nil
	case '"':
		uri = text(v)
	case '{':
		var to struct {
			AgentID string `json:"agentId"`
			OrgID   string `json:"orgId"`
		}
		if err := Unmarshal(v, &to, path); err != nil {
			return "", err
		}
		path, uri = "/recipient/agentId", to.AgentID
	default:
		return "", malformed(path, "want a principal's URI")
	}
	to, err := ParseAgent(uri)
	if err != nil {
		return "", malformed(path, "%s", err)
	}
	return to, nil
}

func (c Constraints) valid() (Constraints, error) {
	if ms := c.MaxResponseTimeMs; ms != nil && *ms < 0 {
		return c, malformed("/constraints/maxResponseTimeMs", "want at least 0 ms")
	}
	if t := c.RequiredTrustScore; t != nil && (*t < 0 || *t > 100) {
		return c, malformed("/constraints/requiredTrustScore", "want 0 to 100")
	}
	for _, name := range c.AllowedPerformatives {
		if Parse(name) == Unknown {
			return c, malformed("/constraints/allowedPerformatives", "%q is none of the thirteen performatives", name)
		}
	}
	return c, nil
}

// Unmarshal reads typed values; its error is a *Malformed with the path of what is
// ill-typed. at is the path of the value itself.
func Unmarshal(v jsontext.Value, into any, at string) error {
	err := json.Unmarshal(v, into)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		want := "another type"
		if semantic.GoType != nil {
			want = plainType(semantic.GoType)
		}
		return malformed(at+string(semantic.JSONPointer), "want %s", want)
	}
	return malformed(at, "ill-typed")
}

func plainType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "an RFC 3339 time"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return "an object"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}
