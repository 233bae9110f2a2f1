package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// HTTP speaks HTTP with a token instead of NATS, at an address such as
// http://127.0.0.1:8080; that given to [Connect] is not used. A hosted agent needs
// no key, because the broker signs what it says; another one gives its [Key] too.
// Messages come from the beginning of the inbox: acknowledgements are known to this
// client only. Verbs without a path in HTTP, such as schema.put,
// are errors.
func HTTP(address, token string) Option {
	return func(c *config) error {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" {
			return fmt.Errorf("%q is no URL of HTTP", address)
		}
		c.http = &web{strings.TrimSuffix(address, "/"), token, &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: ahead}}
		return nil
	}
}

// web is a broker's HTTP.
type web struct {
	url, token string
	transport  *http.Transport
}

// send sends a request with the token.
func (w *web) send(ctx context.Context, method, path, contentType string, body []byte, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	reply, err := w.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, err) // to be asked again
	}
	if reply.StatusCode < http.StatusBadRequest {
		return reply, nil
	}
	defer reply.Body.Close() //nolint:errcheck // it has been read
	data, err := io.ReadAll(reply.Body)
	var problem struct {
		api.Error
		Detail string `json:"detail"`
	}
	if err != nil || json.Unmarshal(data, &problem) != nil || problem.Code == "" {
		return nil, fmt.Errorf("client: the broker answered %s: %.200s", reply.Status, data)
	}
	problem.Message = problem.Detail
	return nil, api.ErrorReply{Error: problem.Error}.Refusal()
}

// request does over HTTP what a NATS request on the subject does.
func (w *web) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	method, path, contentType, body, err := route(subject, data)
	if err != nil {
		return nil, err
	}
	reply, err := w.send(ctx, method, path, contentType, body, "")
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // it has been read
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, err)
	}
	if reply.StatusCode == http.StatusNoContent {
		return []byte("{}"), nil
	}
	if strings.HasSuffix(subject, api.BrokerInfo.Name) {
		var version struct {
			Broker performatives.Key `json:"broker"`
		}
		if err := json.Unmarshal(answer, &version); err != nil {
			return nil, err
		}
		return json.Marshal(api.Broker{Key: version.Broker})
	}
	return answer, nil
}

const base = "/v1/asp"

// paths say where HTTP has a verb: ":name" stands for a member of its request. What is left
// of it is the query of a GET and the body of others.
var paths = map[string]string{
	api.SessionList.Name: "GET /sessions", api.SessionGet.Name: "GET /sessions/:sessionId", api.SessionMessages.Name: "GET /sessions/:sessionId/messages",
	api.TurnPickup.Name: "POST /turns/pickup", api.TurnRespond.Name: "POST /turns/:turnId/respond", api.TurnRelease.Name: "POST /turns/:turnId/release",
	api.TurnWait.Name: "GET /turns/wait", api.AgentList.Name: "GET /agents", api.AgentGet.Name: "GET /agents/:agentId/card",
	api.AgreementList.Name: "GET /agreements", api.AgreementGet.Name: "GET /agreements/:agreementId", api.InsightsGet.Name: "GET /insights",
	api.AgentSearch.Name: "GET /discover", api.DiscoveryCall.Name: "POST /discover",
	api.EscalationList.Name: "GET /escalations", api.EscalationGet.Name: "GET /escalations/:escalationId",
	api.EscalationHistory.Name: "GET /escalations/:escalationId/history", api.EscalationClaim.Name: "POST /escalations/:escalationId/claim",
	api.EscalationRelease.Name: "POST /escalations/:escalationId/release", api.EscalationAssign.Name: "POST /escalations/:escalationId/assign",
	api.EscalationComment.Name: "POST /escalations/:escalationId/comment", api.EscalationTransfer.Name: "POST /escalations/:escalationId/transfer",
}

// names are what a query calls a member otherwise.
var names = map[string]string{"since": "since_sequence", "minTrust": "min_trust"}

// route is where HTTP has what is asked on a subject.
func route(subject string, data []byte) (method, path, contentType string, body []byte, err error) {
	if _, id, submits := strings.Cut(subject, ".submit."); submits {
		contentType, body, err = said(data)
		return http.MethodPost, base + "/sessions/" + id + "/messages", contentType, body, err
	}
	_, verb, _ := strings.Cut(subject, ".api.")
	if verb == api.BrokerInfo.Name {
		return http.MethodGet, "/version", "", nil, nil
	}
	method, path, has := strings.Cut(paths[verb], " ")
	if !has {
		return "", "", "", nil, fmt.Errorf("client: %s is not called over HTTP", verb)
	}
	members, query := map[string]jsontext.Value{}, url.Values{}
	if err := json.Unmarshal(data, &members); err != nil {
		return "", "", "", nil, err
	}
	for name, raw := range members {
		value := string(raw)
		if raw.Kind() == '"' {
			if err := json.Unmarshal(raw, &value); err != nil {
				return "", "", "", nil, err
			}
		}
		if filled := strings.Replace(path, ":"+name, url.PathEscape(value), 1); filled != path {
			path = filled
			delete(members, name)
			continue
		}
		var list []string
		if raw.Kind() == '[' && json.Unmarshal(raw, &list) == nil {
			query[cmp.Or(names[name], name)] = list
			continue
		}
		query.Set(cmp.Or(names[name], name), value)
	}
	if method == http.MethodGet {
		return method, base + path + "?" + query.Encode(), "", nil, nil
	}
	body, err = json.Marshal(members, json.Deterministic(true))
	return method, base + path, "application/json", body, err
}

// said is an envelope as it is posted: as it was signed, or without a signature what the
// broker makes an envelope of.
func said(envelope []byte) (contentType string, body []byte, err error) {
	var e struct {
		Message      performatives.MessageID `json:"messageId"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient,omitzero"`
		Constraints  jsontext.Value          `json:"constraints,omitzero"`
		Content      struct {
			Body jsontext.Value `json:"body"`
		} `json:"content"`
		Integrity struct {
			Signature string             `json:"signature"`
			Previous  performatives.Hash `json:"previousHash"`
		} `json:"integrity"`
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		return "", nil, err
	}
	switch {
	case e.Integrity.Signature != "":
		return "application/asp+json", envelope, nil
	case e.Integrity.Previous != "":
		return "", nil, errors.New("client: the broker links what a hosted agent says")
	}
	body, err = json.Marshal(struct {
		Message      performatives.MessageID `json:"messageId"`
		Performative string                  `json:"performative"`
		Recipient    jsontext.Value          `json:"recipient,omitzero"`
		Constraints  jsontext.Value          `json:"constraints,omitzero"`
		Body         jsontext.Value          `json:"body"`
	}{e.Message, e.Performative, e.Recipient, e.Constraints, e.Content.Body})
	return "application/json", body, err
}

// follow fills the mailbox from the events of the inbox until the context ends or the
// token is refused.
func (f *feed) follow(ctx context.Context) error {
	log := f.in.client.link.log
	for attempt := 0; ; attempt++ {
		came, err := f.events(ctx)
		if _, refused := errors.AsType[*session.Refusal](err); refused && !worthAsking(err) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		log.Debug("inbox", slog.Any("error", err))
		if came {
			attempt = 0
		}
		if !wait(ctx, pause(attempt)) {
			return ctx.Err()
		}
	}
}

// events reads a stream of events until it ends.
func (f *feed) events(ctx context.Context) (came bool, err error) {
	in := f.in
	reply, err := in.client.link.http.send(ctx, http.MethodGet, base+"/inbox/events", "", nil, strconv.FormatUint(in.cursor.Load(), 10))
	if err != nil {
		return false, err
	}
	defer reply.Body.Close() //nolint:errcheck // nobody reads it any more
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 2*performatives.MaxEnvelope)
	var id uint64
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			if id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return came, err
			}
		case "data":
			came = true
			if err := f.room(ctx); err != nil {
				return came, err
			}
			f.heard(id, []byte(value))
			in.cursor.Store(id)
		}
	}
	return came, lines.Err()
}

// heard puts an event into the mailbox.
func (f *feed) heard(id uint64, data []byte) {
	in := f.in
	entry, err := readEntry(data)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil {
		in.fault(id, &unreadable{err})
		return
	}
	in.put(&Message{Entry: entry, inbox: in, came: []delivery{{by: f}}})
}
