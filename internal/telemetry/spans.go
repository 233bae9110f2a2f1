package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// begin starts the span of an act.
func (a *Act) begin(name, id string) {
	a.ctx, a.span = a.t.tracer.Start(a.ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(a.begun), trace.WithAttributes(ofAct(a.session, id)...))
	if !a.waited.IsZero() {
		a.t.stage(a.ctx, Wait, a.begun, a.waited)
	}
}

// end ends it.
func (a *Act) end(outcome, code string) {
	if a.span == nil {
		a.begin("act", "") // it was refused before it was read
	}
	a.span.SetAttributes(outcomeOf(outcome))
	refused(a.span, code)
	a.span.End(trace.WithTimestamp(a.last))
}

// refused notes the code of a refusal, and nothing else of it: its text may have a sender's words.
func refused(span trace.Span, code string) {
	if code != "" {
		span.SetAttributes(codeIs(code))
		span.SetStatus(codes.Error, code)
	}
}

// stage is a span of one stage of an act.
func (t *Traces) stage(of context.Context, s Stage, from, to time.Time) {
	if trace.SpanFromContext(of).IsRecording() {
		_, span := t.tracer.Start(of, stageNames[s], trace.WithTimestamp(from))
		span.End(trace.WithTimestamp(to))
	}
}

// Field is the id of the act's trace, for the log.
func (a *Act) Field() zap.Field {
	if a == nil || a.span == nil {
		return zap.Skip()
	}
	return zap.Stringer("trace_id", a.span.SpanContext().TraceID())
}

// Onward is what the entry of an act carries to whom it is delivered. A nil one is nothing.
type Onward struct {
	t         *Traces
	ctx       context.Context //nolint:containedctx // of the act's span, which has ended by then
	appended  time.Time
	delivered bool
}

// Onward is of an act that was appended just now.
func (a *Act) Onward() *Onward {
	if a == nil || a.span == nil {
		return nil
	}
	return &Onward{t: a.t, ctx: trace.ContextWithSpanContext(context.Background(), a.span.SpanContext()), appended: a.last}
}

// Header sets the traceparent of a copy. The tracestate stays here: it is between the sender and this broker.
func (o *Onward) Header(headers map[string][]string) {
	if o != nil {
		headers[traceParent] = Headers(o.ctx)[traceParent]
	}
}

// Delivered notes that all inboxes have a copy. Only the first call counts.
func (o *Onward) Delivered() {
	if o == nil || o.delivered {
		return
	}
	o.delivered = true
	if trace.SpanContextFromContext(o.ctx).IsSampled() {
		_, span := o.t.tracer.Start(o.ctx, stageNames[Deliver], trace.WithTimestamp(o.appended))
		span.End()
	}
}

// Call begins the span of a verb that was called in the trace of parent, under ctx. ended takes the code of a refusal.
func (t *Traces) Call(ctx, parent context.Context, verb string) (_ context.Context, ended func(code string)) {
	if t == nil {
		return ctx, func(string) {}
	}
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(parent)), verb,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(ofVerb(verb)...))
	return ctx, func(code string) {
		refused(span, code)
		span.End()
	}
}
