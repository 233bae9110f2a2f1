package httpgateway

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// maxInteger is the largest that survives a double.
const maxInteger = 1<<53 - 1

// maxPage is how many entries or rows a page has at most.
const maxPage = 200

// serve authenticates a request and answers it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, row route) {
	c := &call{g: g, w: w, r: r, route: row}
	if err := c.enter(); err != nil {
		c.refuse(err)
		return
	}
	if row.serve != nil {
		row.serve(c)
		return
	}
	reply, err := c.called()
	c.answer(reply, err)
}

// enter finds whom the request is for.
func (c *call) enter() (err error) {
	for _, values := range c.r.URL.Query() {
		if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "parley_") }) {
			return custody.ErrToken // a URL ends up in logs
		}
	}
	if c.route.public {
		return c.g.anonymous(c.r)
	}
	c.Caller, err = c.g.service.AdmitHTTP(c.r)
	switch {
	case errors.Is(err, custody.ErrToken):
		if err := c.g.anonymous(c.r); err != nil {
			return err
		}
	case err == nil && c.route.acts():
		err = c.Acts()
	}
	return err
}

// anonymous charges a request of nobody to its address.
func (g *Gateway) anonymous(r *http.Request) error {
	if g.allow == nil || g.allow(r) {
		return nil
	}
	return session.Refuse(session.RateLimited, "your address asks too often without a token")
}

// called calls the route's verb with the request that path and body make.
func (c *call) called() ([]byte, error) {
	request, err := c.request()
	if err != nil {
		return nil, err
	}
	if c.route.verb.Name != api.TurnWait.Name { // which waits, and not for longer than the token is valid
		return c.CallJSON(c.r.Context(), c.route.verb.Name, request)
	}
	ctx, cancel := c.Until(c.r.Context())
	defer cancel()
	reply, err := c.CallJSON(ctx, c.route.verb.Name, request)
	if ended := context.Cause(ctx); errors.Is(ended, custody.ErrToken) {
		return nil, ended
	}
	return reply, err
}

// answer writes the reply of the route's verb.
func (c *call) answer(reply []byte, err error) {
	if err != nil {
		c.refuse(err)
		return
	}
	write(c.w, http.StatusOK, jsonType, reply)
}

// request makes the verb's request of path, query and body.
func (c *call) request() ([]byte, error) {
	members := map[string]jsontext.Value{}
	if c.route.body == verbBody || c.route.body == turnBody {
		given, err := c.object(true)
		if err != nil {
			return nil, err
		}
		members = given
	}
	if c.route.hasWorker() {
		if _, given := members[workerMember]; given {
			return nil, malformed("/"+workerMember, "is the token's id")
		}
		members[workerMember] = text(c.Worker)
	}
	if err := c.query(members); err != nil {
		return nil, err
	}
	for _, name := range c.route.at.Members() {
		if _, twice := members[name]; twice {
			return nil, malformed("/"+name, "is in the path")
		}
		members[name] = text(c.r.PathValue(name))
	}
	return json.Marshal(members, json.Deterministic(true))
}

func text(s string) jsontext.Value {
	data, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it is not UTF-8, and no id, cursor or name is
		return jsontext.Value(`"\ufffd"`)
	}
	return data
}

// object reads the body as a JSON object.
func (c *call) object(orNone bool) (map[string]jsontext.Value, error) {
	data, err := c.read(jsonType)
	if err != nil {
		return nil, err
	}
	members := map[string]jsontext.Value{}
	if len(data) == 0 && orNone {
		return members, nil
	}
	if err := decode(data, &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, malformed("", "want a JSON object, not null")
	}
	return members, nil
}

// decode reads I-JSON: valid UTF-8, and no member twice.
func decode(data []byte, into any) error {
	canonical, err := performatives.Canonical(data)
	if err == nil {
		err = performatives.Unmarshal(canonical, into, "")
	}
	return unreadable(err)
}

// unreadable is the refusal of what is no I-JSON of the type that is wanted.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	if bad, is := errors.AsType[*performatives.Malformed](err); is {
		return malformed(bad.Path, bad.Why)
	}
	if errors.Is(err, performatives.ErrTooLarge) {
		return tooLarge(performatives.MaxEnvelope)
	}
	return malformed("", err.Error())
}

// status is an error that HTTP has a status of its own for.
type status struct {
	*session.Refusal
	code int
}

func (s status) Unwrap() error { return s.Refusal }

// read reads the body, which has to be of one of these types.
func (c *call) read(types ...string) ([]byte, error) {
	data, err := c.ReadBody(c.w, c.r)
	_, refused := errors.AsType[*session.Refusal](err)
	switch {
	case refused:
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, status{session.Refuse(session.MalformedEnvelope, "the body took too long to come"), http.StatusRequestTimeout}
	case err != nil:
		return nil, malformed("", "the body ends early")
	case slices.ContainsFunc(c.r.Header.Values("Content-Encoding"), func(e string) bool { return e != "" && e != "identity" }):
		return nil, status{session.Refuse(session.MalformedEnvelope, "a body comes without Content-Encoding"), http.StatusUnsupportedMediaType}
	case len(data) > 0 && !slices.Contains(types, c.contentType()):
		return nil, status{
			session.Refuse(session.MalformedEnvelope, "the Content-Type is %s", strings.Join(types, " or ")), http.StatusUnsupportedMediaType,
		}
	}
	return data, nil
}

// contentType is that of the body.
func (c *call) contentType() string {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || len(c.r.Header.Values("Content-Type")) != 1 {
		return ""
	}
	return kind
}

func tooLarge(most int) error {
	return session.RefuseTooLarge(most, "a body has at most %d bytes here", most)
}

// malformed refuses what cannot be read; path is a JSON pointer, or of a parameter.
func malformed(path, why string) error {
	if path == "" {
		return session.Refuse(session.MalformedEnvelope, "%s", why)
	}
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}

func clip(s string) string { return s[:min(len(s), performatives.MaxID)] }

// message answers with one entry.
func (c *call) message() {
	reply, err := c.called()
	var page api.Messages
	if err == nil {
		err = json.Unmarshal(reply, &page)
	}
	if err != nil || len(page.Messages) != 1 {
		c.refuse(err)
		return
	}
	write(c.w, http.StatusOK, jsonType, page.Messages[0])
}
