package web

import "context"

// TraceParent is the header of W3C Trace Context, over HTTP and over NATS.
const TraceParent = "traceparent"

type traceKey struct{}

// WithTrace is a context whose requests name a trace.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// Trace is what the requests of a context name, "" for none.
func Trace(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}
