package client

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/client/internal/web"
)

// WithTrace is a context whose acts and calls join a trace: traceparent is a header of W3C Trace Context, that of
// a message or of a span of the caller's. An agent that answers each message in its trace keeps a negotiation one trace:
//
//	for m, err := range agent.Messages(ctx) {
//		…
//		m.Session().Accept(client.WithTrace(ctx, m.Trace()), m.Ref())
func WithTrace(ctx context.Context, traceparent string) context.Context {
	return web.WithTrace(ctx, traceparent)
}

// Trace is the traceparent with which the message came, of the act's span; "" where the broker exports none, over HTTP, and
// of a message that was read from the transcript.
func (m *Message) Trace() string { return m.trace }

// traced are the headers of a request.
func traced(ctx context.Context) nats.Header {
	if traceparent := web.Trace(ctx); traceparent != "" {
		return nats.Header{web.TraceParent: {traceparent}}
	}
	return nil
}
