package telemetry

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// The trace that headers name; what is malformed or too long is ignored.
func TestParent(t *testing.T) {
	t.Parallel()
	long := "k=" + strings.Repeat("v", 250)
	for _, c := range []struct {
		headers map[string][]string
		valid   bool
		state   string
	}{
		{nil, false, ""},
		{map[string][]string{"traceparent": {parent}}, true, ""},
		{map[string][]string{"Traceparent": {parent}, "Tracestate": {"a=1", "b=2"}}, true, "a=1,b=2"},
		{map[string][]string{"traceparent": {parent}, "tracestate": {"=,;"}}, true, ""},
		{map[string][]string{"traceparent": {parent}, "tracestate": {long, "x" + long, "y" + long}}, true, ""},
		{map[string][]string{"traceparent": {parent}, "Traceparent": {parent}}, false, ""},
		{map[string][]string{"traceparent": {parent + "-more"}}, false, ""},
		{map[string][]string{"traceparent": {strings.Repeat("0", 1<<20)}}, false, ""},
		{map[string][]string{"tracestate": {"a=1"}}, false, ""},
	} {
		got := trace.SpanContextFromContext((&Traces{}).Parent(c.headers))
		if got.IsValid() != c.valid || got.TraceState().String() != c.state {
			t.Errorf("%.80v: %v, state %q", c.headers, got.IsValid(), got.TraceState().String())
		}
	}
	for list, valid := range map[string]bool{
		`[{"traceparent":"` + parent + `"}]`: true, `["x",[1],{"a":1},{"traceparent":"` + parent + `","tracestate":"a=1"}]`: true,
		`[]`: false, ``: false, `[{"traceparent":7}]`: false, `{"traceparent":"` + parent + `"}`: false, `[{"traceparent":"0"}]`: false,
	} {
		if got := trace.SpanContextFromContext(inContext(t.Context(), []byte(list))).IsValid(); got != valid {
			t.Errorf("content.context %s: %v", list, got)
		}
	}
}

// A URL with a password is refused and not repeated.
func TestExporterCheck(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"": true, "http://localhost:4318": true, "https://acme.com/otlp/": true,
		"localhost:4318": false, "http://": false, "grpc://acme.com": false, "http://a:hush@acme.com": false, "http://acme.com?key=hush": false, "http://a b:hush": false,
	} {
		if err := (Exporter{URL: url, Sample: 1}).Check(); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, share := range []float64{-0.1, 1.1, zero() / zero()} {
		if (Exporter{Sample: share}).Check() == nil {
			t.Errorf("a share of %g", share)
		}
	}
}

func zero() float64 { return 0 }

// That spans are lost is logged once a minute, and of the collector's words only the beginning.
func TestFailures(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	x := &failures{log: zap.New(core)}
	for range 3 {
		x.add(errors.New(strings.Repeat("no\n", 1<<20)))
	}
	if logs.Len() != 1 || len(logs.All()[0].ContextMap()["error"].(string)) > maxFailure {
		t.Errorf("%d lines", logs.Len())
	}
	x.said.Add(-failuresEvery)
	x.add(errors.New("no"))
	if logs.Len() != 2 {
		t.Errorf("%d lines after a minute", logs.Len())
	}
}

// Off, nothing is allocated.
func TestNoTraces(t *testing.T) { //nolint:paralleltest // it counts allocations
	var off *Traces
	headers := map[string][]string{"traceparent": {parent}}
	handler := off.HTTP(nil)
	if n := testing.AllocsPerRun(100, func() {
		act := Begin(off.Parent(headers), nil, off, "s")
		act.Is("PROPOSE", "m", nil)
		act.Reached(Wait)
		act.Onward().Header(headers)
		act.Onward().Delivered()
		act.Answered(Accepted, "")
		_ = act.Field()
		ctx, ended := off.Call(t.Context(), context.Background(), "session.get")
		ended("")
		_ = Headers(ctx)
	}); n != 0 || handler != nil {
		t.Errorf("%g allocations", n)
	}
	(*Export)(nil).Close()
	(&Export{}).Close()
}

// What the spans of one act cost.
func BenchmarkSpans(b *testing.B) {
	collector := httptest.NewServer(nil)
	defer collector.Close()
	for name, share := range map[string]float64{"all": 1, "none": 0} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			x, err := Open(Exporter{URL: collector.URL, Sample: share}, New(Vocabulary{}, "1.0.0"), "1.0.0", "id", zap.NewNop())
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			traces := x.Traces
			for b.Loop() {
				act := Begin(traces.Parent(nil), nil, traces, "s")
				act.Is("PROPOSE", "m", nil)
				for s := Wait; s < Answer; s++ {
					act.Reached(s)
				}
				act.Answered(Accepted, "")
			}
		})
	}
}
