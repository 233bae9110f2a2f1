package server_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A receiver takes spans, metrics and lines of a log by OTLP.
type receiver struct {
	url string

	mu       sync.Mutex
	spans    []*tracepb.Span
	resource string
	secret   string            // the header that came with them
	metrics  map[string]string // the newest of each name
	lines    []string
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{metrics: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := io.Reader(q.Body)
		if q.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(q.Body); err != nil {
				t.Error(err)
			}
		}
		data, err := io.ReadAll(body)
		if err == nil {
			err = r.take(q.URL.Path, data)
		}
		if err != nil {
			t.Errorf("%s: %v, %d bytes", q.URL.Path, err, len(data))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.secret = q.Header.Get("X-Secret")
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *receiver) take(path string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch path {
	case "/v1/traces":
		var got collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(data, &got); err != nil {
			return err
		}
		for _, of := range got.ResourceSpans {
			r.resource = of.Resource.String()
			for _, in := range of.ScopeSpans {
				r.spans = append(r.spans, in.Spans...)
			}
		}
	case "/v1/metrics":
		var got metrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(data, &got); err != nil {
			return err
		}
		for _, of := range got.ResourceMetrics {
			for _, in := range of.ScopeMetrics {
				for _, m := range in.Metrics {
					r.metrics[m.Name] = of.Resource.String() + m.String()
				}
			}
		}
	case "/v1/logs":
		var got logs.ExportLogsServiceRequest
		if err := proto.Unmarshal(data, &got); err != nil {
			return err
		}
		for _, of := range got.ResourceLogs {
			for _, in := range of.ScopeLogs {
				for _, line := range in.LogRecords {
					r.lines = append(r.lines, of.Resource.String()+line.String())
				}
			}
		}
	default:
		return errors.New("no signal of OTLP")
	}
	return nil
}

// all are the spans of a name that came so far.
func (r *receiver) all(name string) (found []*tracepb.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// one is the span of a name, of which there must be one.
func (r *receiver) one(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	found := r.all(name)
	if len(found) != 1 {
		t.Fatalf("%d spans %s", len(found), name)
	}
	return found[0]
}

// children are the names of the spans below one.
func (r *receiver) children(of *tracepb.Span) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if string(s.ParentSpanId) == string(of.SpanId) && string(s.TraceId) == string(of.TraceId) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

const (
	traced  = "0af7651916cd43dd8448eb211c80319c"
	caller  = "b7ad6b7169203331"
	parent  = "00-" + traced + "-" + caller + "-01"
	another = "00-11111111111111111111111111111111-2222222222222222-01"
)

// withTrace submits an act with headers of a trace.
func withTrace(p *testkit.Principal, id performatives.SessionID, envelope []byte, header nats.Header) *nats.Msg {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	m, err := p.Conn().RequestMsgWithContext(ctx, &nats.Msg{Subject: api.Submit(p.Agent, id), Data: envelope, Header: header})
	testkit.Must(p, err)
	return m
}

// delivered are the headers of the next copy in a principal's inbox.
func delivered(p *testkit.Principal) nats.Header {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	js, err := jetstream.New(p.Conn())
	testkit.Must(p, err)
	consumer, err := js.Consumer(ctx, api.InboxStream, p.Agent.Token())
	testkit.Must(p, err)
	m, err := consumer.Next(jetstream.FetchMaxWait(testkit.Patience))
	testkit.Must(p, err)
	testkit.Must(p, m.DoubleAck(ctx))
	return m.Headers()
}

// OPERATIONS.md, Traces: a negotiation over NATS is one trace of two parties, and nothing that they say is in it.
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-secret=hush")
	t.Setenv("OTEL_SERVICE_NAME", "deals")
	r := startReceiver(t)
	w := testkit.NewWorld(t, testkit.Options{OTLP: telemetry.Exporter{URL: r.url, Sample: 1}})
	a, b := w.Principal(alpha), w.Principal(beta)
	id := testkit.NewSession()
	testkit.Accepted(t, withTrace(a, id, a.Envelope(id, testkit.Invitation(beta)), nats.Header{"traceparent": {parent}, "tracestate": {"acme=private"}}))
	copied := delivered(b)
	onward := copied.Get("traceparent")
	if !strings.HasPrefix(onward, "00-"+traced+"-") || strings.Contains(onward, caller) || copied.Get("tracestate") != "" {
		t.Errorf("an inbox copy has %v", copied)
	}
	testkit.Accepted(t, withTrace(b, id, b.Envelope(id, &performatives.AcceptBody{ReferenceID: "inv"}), nats.Header{"Traceparent": {onward}}))
	a.Say(id, testkit.Fact("a secret"))
	testkit.Refused(t, b.Submit(id, b.Envelope(id, &performatives.RejectBody{ReferenceID: "nothing", Code: "unspecified", Reason: "a secret"})), session.ProposalUnknown)
	testkit.Refused(t, b.Submit(id, []byte("{")), session.MalformedEnvelope)
	inItem := func(d *performatives.Draft) {
		d.Context = append(d.Context, []byte(`"x"`), []byte(`{"traceparent":"`+another+`"}`))
	}
	testkit.Accepted(t, withTrace(b, id, b.Envelope(id, &performatives.ObserveBody{Subject: "a secret"}, inItem), nats.Header{"traceparent": {parent}}))
	for n, malformed := range []nats.Header{
		{"traceparent": {strings.ToUpper(parent)}}, {"traceparent": {parent, parent}}, {"traceparent": {"00-" + strings.Repeat("0", 32) + "-" + caller + "-01"}},
	} {
		testkit.Accepted(t, withTrace(a, id, a.Envelope(id, testkit.Offer(fmt.Sprint("p", n), n)), malformed))
	}
	w.Down() // all are exported

	invites := func() *tracepb.Span {
		for _, s := range r.all("PROPOSE") {
			if hex.EncodeToString(s.ParentSpanId) == caller {
				return s
			}
		}
		t.Fatal("no PROPOSE has the parent that its header names")
		return nil
	}()
	if hex.EncodeToString(invites.TraceId) != traced || invites.Kind != tracepb.Span_SPAN_KIND_SERVER || invites.TraceState != "acme=private" {
		t.Errorf("the invitation is %v", invites)
	}
	if got, want := strings.Join(r.children(invites), " "), "ACCEPT answer append deliver judge load verify wait"; got != want {
		t.Errorf("below the invitation are %s, want %s", got, want)
	}
	for key, want := range map[string]string{
		"gen_ai.conversation.id": string(id), "messaging.system": "nats", "messaging.operation.name": "submit", "messaging.operation.type": "process",
		"parley.outcome": "accepted", "error.type": "",
	} {
		if got := attribute(invites, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if attribute(invites, "messaging.message.id") == "" {
		t.Error("the invitation has no id")
	}
	refused := r.one(t, "REJECT")
	if attribute(refused, "error.type") != string(session.ProposalUnknown) || attribute(refused, "parley.outcome") != "refused" || refused.Status.Code != tracepb.Status_STATUS_CODE_ERROR || len(refused.ParentSpanId) != 0 {
		t.Errorf("a refused act is %v", refused)
	}
	if unread := r.one(t, "act"); attribute(unread, "error.type") != string(session.MalformedEnvelope) || attribute(unread, "gen_ai.conversation.id") != string(id) {
		t.Errorf("what cannot be read is %v", unread)
	}
	if observed := r.one(t, "OBSERVE"); hex.EncodeToString(observed.TraceId) != another[3:35] {
		t.Errorf("an act whose content.context names a trace is %v", observed)
	}
	if all := r.all("PROPOSE"); len(all) != 4 {
		t.Errorf("%d PROPOSE", len(all))
	}
	for _, s := range r.spans {
		for _, secret := range []string{"secret", "acme.com", "widgets.co", "sha256", "ed25519"} {
			if strings.Contains(s.String(), secret) {
				t.Errorf("a span has %s: %v", secret, s)
			}
		}
	}
	if !strings.Contains(r.resource, `"deals"`) || !strings.Contains(r.resource, w.ID) || r.secret != "hush" {
		t.Errorf("the resource is %s, the header %q", r.resource, r.secret)
	}
}

// Over HTTP the act is below the verb by which its hosted sender says it, and that below the request's parent.
func TestTracesHTTP(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	w := testkit.NewHosted(t, testkit.Options{OTLP: telemetry.Exporter{URL: r.url, Sample: 1}})
	with := func(parent string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set("traceparent", parent) }
	}
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[testkit.Cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups"}`, testkit.Seller), with(parent)).Is(http.StatusCreated, &opened)
	path := testkit.SessionPath(opened.Session)
	w.Send("POST", path+"/messages", w.Tokens[testkit.Seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`, with(parent)).Is(http.StatusOK, nil)
	w.Send("GET", path, w.Tokens[testkit.Other], "", with(another)).Refused(http.StatusNotFound, session.UnknownSession)
	w.Down()

	says := r.all("session.say")
	for _, act := range []string{"PROPOSE", "ACCEPT"} {
		s := r.one(t, act)
		if hex.EncodeToString(s.TraceId) != traced || !slices.ContainsFunc(says, func(say *tracepb.Span) bool {
			return string(say.SpanId) == string(s.ParentSpanId) && hex.EncodeToString(say.ParentSpanId) == caller
		}) {
			t.Errorf("%s is %v", act, s)
		}
	}
	if get := slices.DeleteFunc(r.all("session.get"), func(s *tracepb.Span) bool { return hex.EncodeToString(s.TraceId) != another[3:35] }); len(get) != 1 || attribute(get[0], "error.type") != string(session.UnknownSession) {
		t.Errorf("a refused read is %v", get)
	}
}

// An act that one broker forwards to another keeps its parent.
func TestTracesForwarded(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	export, err := telemetry.Open(telemetry.Exporter{URL: r.url, Sample: 1}, telemetry.New(telemetry.Vocabulary{}, "1.0.0"), "1.0.0", "two brokers", zap.NewNop())
	testkit.Must(t, err)
	at := testkit.StartServer(t)
	exported := func(o *server.BrokerOptions) { o.Traces = export.Traces }
	one, nc := at.OpenBroker(exported)
	two, _ := at.OpenBroker(exported)
	for _, b := range []*server.Broker{one, two, one, two} {
		testkit.Must(t, b.Parts.Members.Heartbeat(t.Context()))
	}
	forwarded := func() uint64 {
		first, _ := one.Gateway.Forwarded()
		second, _ := two.Gateway.Forwarded()
		return first + second
	}
	asked := 0
	for ; asked < 20 || forwarded() == 0 && asked < 1000; asked++ {
		m, err := nc.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: api.Submit(alpha, testkit.NewSession()), Data: []byte("{}"), Header: nats.Header{"traceparent": {parent}}})
		testkit.Must(t, err)
		testkit.Refused(t, m, session.MalformedEnvelope)
	}
	for _, b := range []*server.Broker{one, two} {
		testkit.Must(t, b.Close(t.Context()))
	}
	export.Close()
	acts := r.all("act")
	if forwarded() == 0 || len(acts) != asked || slices.ContainsFunc(acts, func(s *tracepb.Span) bool { return hex.EncodeToString(s.ParentSpanId) != caller }) {
		t.Errorf("%d spans of %d acts, %d of them forwarded: %v", len(acts), asked, forwarded(), acts)
	}
}

// A trace that begins here is exported by its share, one that a sender names as that says.
func TestTracesSampled(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	w := testkit.NewWorld(t, testkit.Options{OTLP: telemetry.Exporter{URL: r.url}}) // a share of 0
	a, b := w.Principal(alpha), w.Principal(beta)
	id := w.Open(a, b)
	testkit.Accepted(t, withTrace(a, id, a.Envelope(id, testkit.Offer("p", 1)), nats.Header{"traceparent": {parent}}))
	w.Down()
	if s := r.one(t, "PROPOSE"); hex.EncodeToString(s.ParentSpanId) != caller || len(r.all("ACCEPT")) != 0 {
		t.Errorf("exported are %v", r.spans)
	}
}

// OPERATIONS.md, Metrics and logs by OTLP: without --monitor a collector gets the families of /metrics and each line of
// the log at its level, with the broker's id. A variable of OpenTelemetry leaves a signal out.
func TestMetricsAndLogs(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	r := startReceiver(t)
	core, own := observer.New(zap.InfoLevel)
	w := testkit.NewWorld(t, testkit.Options{OTLP: telemetry.Exporter{URL: r.url, Sample: 1}, Log: zap.New(core)})
	a, b := w.Principal(alpha), w.Principal(beta)
	w.Open(a, b)
	w.Down()

	if len(r.spans) != 0 {
		t.Errorf("%d spans are exported", len(r.spans))
	}
	for name, want := range map[string][]string{
		"parley_acts_total":  {"sum:", "is_monotonic:true", "AGGREGATION_TEMPORALITY_CUMULATIVE", `"ACCEPT"`, `"accepted"`},
		"parley_act_seconds": {"exponential_histogram:", "count:3"}, "parley_sessions": {"gauge:", `"CONVERSING"`},
	} {
		for _, part := range append(want, w.ID) {
			if got := strings.ReplaceAll(r.metrics[name], " ", ""); !strings.Contains(got, part) {
				t.Errorf("%s has no %s: %s", name, part, got)
			}
		}
	}
	if len(r.lines) != own.Len() || own.Len() == 0 {
		t.Errorf("%d lines are exported, of %d", len(r.lines), own.Len())
	}
	for _, line := range r.lines {
		if !strings.Contains(line, w.ID) || strings.Contains(line, "DEBUG") {
			t.Errorf("a line is %s", line)
		}
	}
}

// A collector that hangs delays no act and does not hold up the end; without one there is nothing.
func TestTracesHang(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}, 1), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ended
	}))
	defer hangs.Close()
	defer close(ended)
	w := testkit.NewWorld(t, testkit.Options{OTLP: telemetry.Exporter{URL: hangs.URL, Sample: 1}})
	a, b := w.Principal(alpha), w.Principal(beta)
	id := w.Open(a, b)
	for n := range 100 { // more spans than a batch
		a.Say(id, testkit.Fact(fmt.Sprint(n)))
	}
	<-asked
	a.Say(id, testkit.Fact("while it hangs"))
	w.Down()
}

// Without --otlp there is no provider, and a traceparent goes nowhere.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	a, b := w.Principal(alpha), w.Principal(beta)
	if w.Server.Broker.Options.Traces != nil {
		t.Error("there are traces that nobody asked for")
	}
	id := testkit.NewSession()
	testkit.Accepted(t, withTrace(a, id, a.Envelope(id, testkit.Invitation(beta)), nats.Header{"traceparent": {parent}}))
	if h := delivered(b); h.Get("traceparent") != "" {
		t.Errorf("a copy has %v", h)
	}
}

// Agents that answer each message in its trace keep a negotiation one trace, over NATS and HTTP.
func TestTracedClients(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0", OTLP: telemetry.Exporter{URL: r.url, Sample: 1}})
	buyer, seller := w.Client(alpha), w.Client(beta)
	s, err := buyer.Invite(client.WithTrace(w.Ctx, parent), client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
	testkit.Must(t, err)
	answer := func(c *client.Client, act func(ctx context.Context, s *client.Session) error) {
		t.Helper()
		for m, err := range c.Messages(w.Ctx) {
			testkit.Must(t, err)
			testkit.Must(t, act(client.WithTrace(w.Ctx, m.Trace()), m.Session()))
			testkit.Must(t, m.Ack())
			break
		}
	}
	answer(seller, func(ctx context.Context, s *client.Session) error {
		_, err := s.Accept(ctx, "inv")
		return err
	})
	answer(buyer, func(ctx context.Context, s *client.Session) error {
		_, err := s.Observe(ctx, "x", "y")
		return err
	})
	web, err := client.Connect(w.Ctx, "", alpha, client.Key(w.Principal(alpha).Signer), client.HTTP("http://"+w.HTTPAddr, w.Token(api.AddToken{Agent: alpha})))
	testkit.Must(t, err)
	t.Cleanup(func() { web.Close() })
	_, err = web.Session(s.ID()).Close(client.WithTrace(w.Ctx, another), client.Closing{})
	testkit.Must(t, err)
	w.Down() // all are exported
	for act, want := range map[string]string{"PROPOSE": traced, "ACCEPT": traced, "OBSERVE": traced, "CLOSE": another[3:35]} {
		if got := hex.EncodeToString(r.one(t, act).TraceId); got != want {
			t.Errorf("%s is in the trace %s, want %s", act, got, want)
		}
	}
}
