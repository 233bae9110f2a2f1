package telemetry

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of W3C Trace Context. A NATS client may have written them as HTTP has them.
const (
	traceParent, canonicalParent = "traceparent", "Traceparent"
	traceState, canonicalState   = "tracestate", "Tracestate"
)

// maxState is how many bytes a tracestate may have; a longer one is ignored.
const maxState = 512

// propagator ignores what is malformed.
var propagator propagation.TraceContext

// Parent is a context with the trace that the headers of a message name, if they do.
func (t *Traces) Parent(headers map[string][]string) context.Context {
	if t == nil {
		return context.Background()
	}
	return extract(context.Background(), headers)
}

func extract(ctx context.Context, headers map[string][]string) context.Context {
	parent := slices.Concat(headers[traceParent], headers[canonicalParent])
	if len(parent) != 1 {
		return ctx
	}
	return within(ctx, parent[0], strings.Join(slices.Concat(headers[traceState], headers[canonicalState]), ","))
}

// within adds a trace to a context.
func within(ctx context.Context, parent, state string) context.Context {
	if len(state) > maxState {
		state = ""
	}
	return propagator.Extract(ctx, propagation.MapCarrier{traceParent: parent, traceState: state})
}

// inContext is the trace that an act names in an item of its content.context.
func inContext(ctx context.Context, list []byte) context.Context {
	var items []jsontext.Value
	if !bytes.Contains(list, []byte(`"`+traceParent+`"`)) || json.Unmarshal(list, &items) != nil {
		return ctx
	}
	for _, item := range items {
		var of struct {
			Parent string `json:"traceparent"`
			State  string `json:"tracestate"`
		}
		if json.Unmarshal(item, &of) == nil && of.Parent != "" {
			return within(ctx, of.Parent, of.State)
		}
	}
	return ctx
}

// Headers are those of a message that belongs to the trace of a context; nil without one.
func Headers(ctx context.Context) map[string][]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier, headers := propagation.MapCarrier{}, map[string][]string{}
	propagator.Inject(ctx, carrier)
	for name, value := range carrier {
		headers[name] = []string{value}
	}
	return headers
}

// HTTP gives the context of each request the trace that its headers name.
func (t *Traces) HTTP(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(extract(r.Context(), r.Header)))
	})
}
