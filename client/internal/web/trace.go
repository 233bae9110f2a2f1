package web

import (
	"context"
	"regexp"
)

// TraceParent is the header of W3C Trace Context, over HTTP and over NATS.
const TraceParent = "traceparent"

type traceKey struct{}

// traceparents are those of W3C Trace Context.
var traceparents = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// WithTrace is a context whose requests name a trace; what is no traceparent names none.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	if !traceparents.MatchString(traceparent) {
		traceparent = ""
	}
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// Trace is what the requests of a context name, "" for none.
func Trace(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}
