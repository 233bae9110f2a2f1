/** The trace that a program names now, a `traceparent` of W3C Trace Context; undefined for what is none. */
export function traceOf(names: (() => string | undefined) | undefined): string | undefined {
  const trace = names?.();
  return trace !== undefined && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(trace) ? trace : undefined;
}
